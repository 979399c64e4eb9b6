package journal

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
)

// reserveBytes is the room that a journal keeps on its disk for the day when that
// is full: SQLite cannot remove anything without writing first what it is about
// to change, and the index of that.
const reserveBytes = 256 << 10

func (f *file) reserve() string { return f.path + ".reserve" }

// keepReserve makes the file whose room is the reserve, if it is not there and
// the disk has room. Its bytes are random, so that no file system stores less.
func (f *file) keepReserve() {
	out, err := os.OpenFile(f.reserve(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return // it is there, or the next one who opens the journal makes it
	}
	noise := make([]byte, reserveBytes)
	rand.Read(noise) //nolint:errcheck // it never returns an error
	_, err = out.Write(noise)
	if err = errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(f.reserve())
	}
}

// useReserve gives the reserve back to the disk, and reports whether there was one.
func (f *file) useReserve() bool {
	at, err := os.Lstat(f.reserve())
	return err == nil && at.Mode().IsRegular() && !errors.Is(os.Remove(f.reserve()), fs.ErrNotExist)
}
