//go:build unix

package journal

import (
	"io/fs"
	"os"
	"syscall"
)

// ownerOf returns the user that a file belongs to, and the user that the process
// runs as.
func ownerOf(at fs.FileInfo) (owner, me int, known bool) {
	s, known := at.Sys().(*syscall.Stat_t)
	if !known {
		return 0, 0, false
	}
	return int(s.Uid), os.Geteuid(), true
}

// openPlain opens a file for reading. It does not block on a named pipe.
func openPlain(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
}
