//go:build !race

package specfile_test

const thin = 1
