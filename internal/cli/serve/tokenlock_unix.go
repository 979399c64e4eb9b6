//go:build unix

package serve

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// lockOld opens and locks the token file at path, unless there is none. It returns errInUse for that of a
// server that works.
func lockOld(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // a pipe is refused later, without a wait for its writer
		if errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if err := lockFile(f); err != nil {
			return nil, errors.Join(err, f.Close())
		}
		mine, err := f.Stat()
		if at, gone := os.Stat(path); err == nil && gone == nil && os.SameFile(mine, at) {
			return f, nil
		}
		_ = f.Close() // another server replaced it meanwhile
		if err != nil {
			return nil, err
		}
	}
}

// lockNew opens and locks a new file, until unlock.
func lockNew(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	if err := lockFile(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// lockFile locks a file. A file system without locks has no token file in use.
func lockFile(f *os.File) error {
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); errors.Is(err, unix.EWOULDBLOCK) {
		return errInUse
	}
	return nil
}

// unlock unlocks and closes a file, or does nothing if it is nil. Closing alone would not unlock it: a process that was
// just forked has the file, too, until it begins its program.
func unlock(f *os.File) {
	if f == nil {
		return
	}
	_ = unix.Flock(int(f.Fd()), unix.LOCK_UN)
	_ = f.Close()
}
