//go:build race

package specfile_test

// thin is how many cases of a long table stand for one that is run: the race
// detector makes each of them some ten times as slow, and nothing that it could
// find depends on which of them are run. Without it all are.
const thin = 5
