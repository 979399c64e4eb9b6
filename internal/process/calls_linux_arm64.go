package process

// arm64 has no older forms of calls.
var oldPermitted, oldPretended []callGroup
