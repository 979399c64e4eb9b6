package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The token file of a server that has ended can be used again, even while a process that the server has just forked
// still has all its files.
func TestServeUnlocksItsToken(t *testing.T) {
	t.Parallel()
	dir, _ := offlineFolder(t)
	path := filepath.Join(dir, "token")
	server := call{dir: dir, args: []string{filepath.Join(dir, "team.yaml"), "--offline", "--token-file", path}}
	s := serveHere(t, server)
	forked := duplicates(t, path)
	require.NotEmpty(t, forked, "the server has its file open")
	s.stop()
	serveHere(t, server).stop()
}

// duplicates returns what a process would get that this one forks: duplicates of the open files at a path.
func duplicates(t *testing.T, path string) (all []int) {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range open {
		if at, err := os.Readlink(filepath.Join("/proc/self/fd", entry.Name())); err != nil || at != path {
			continue
		}
		number, err := strconv.Atoi(entry.Name())
		require.NoError(t, err)
		duplicate, err := unix.FcntlInt(uintptr(number), unix.F_DUPFD_CLOEXEC, 0)
		require.NoError(t, err)
		t.Cleanup(func() { _ = unix.Close(duplicate) })
		all = append(all, duplicate)
	}
	return all
}
