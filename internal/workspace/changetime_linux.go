package workspace

import (
	"io/fs"
	"syscall"
)

// changeTime returns when a file was last changed, which no program can set, in nanoseconds.
func changeTime(info fs.FileInfo) (nanoseconds int64, tells bool) {
	at, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return at.Ctim.Nano(), true
}
