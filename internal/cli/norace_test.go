package cli

const raced = false
