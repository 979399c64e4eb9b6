package journal

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
)

// reserveBytes is the disk space, in bytes, that a journal keeps in reserve for a
// full disk: SQLite cannot remove anything without first writing the changed
// pages, and their index, to its log.
const reserveBytes = 256 << 10

func (d *sqliteDB) reserve() string { return d.path + ".reserve" }

// keepReserve creates the reserve file if it does not exist and the disk has room.
// Its bytes are random, so that no file system can store less.
func (d *sqliteDB) keepReserve() {
	if d.path == "" {
		return
	}
	out, err := os.OpenFile(d.reserve(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return // it exists, or the next process that opens the journal creates it
	}
	noise := make([]byte, reserveBytes)
	rand.Read(noise) //nolint:errcheck // it never returns an error
	_, err = out.Write(noise)
	if err = errors.Join(err, out.Close()); err != nil {
		_ = os.Remove(d.reserve())
	}
}

// useReserve gives the reserve back to the disk, and reports whether there was one.
func (d *sqliteDB) useReserve() bool {
	if d.path == "" {
		return false
	}
	at, err := os.Lstat(d.reserve())
	return err == nil && at.Mode().IsRegular() && !errors.Is(os.Remove(d.reserve()), fs.ErrNotExist)
}
