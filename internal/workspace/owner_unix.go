//go:build unix

package workspace

import (
	"io/fs"
	"os"
	"syscall"
)

// isOwn reports whether a file belongs to this user.
func isOwn(info fs.FileInfo) bool {
	at, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(at.Uid) == os.Geteuid()
}
