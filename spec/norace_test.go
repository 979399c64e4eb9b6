//go:build !race

package spec_test

const thin = 1
