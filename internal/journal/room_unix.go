//go:build linux || darwin

package journal

import "syscall"

// leastRoom is how many bytes SQLite needs before it writes anything: those of
// the index of what is written ahead, and some pages.
const leastRoom = 64 << 10

// roomless reports whether a disk has too little room to write to a journal on it.
func isDiskFull(folder string) bool {
	var s syscall.Statfs_t
	err := syscall.Statfs(folder, &s)
	return err == nil && int64(s.Bavail) < leastRoom/int64(s.Bsize) //nolint:unconvert // they have other types elsewhere
}
