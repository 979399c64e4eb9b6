package journal

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"
)

// What can be wrong with the file of a journal. An [*Error] wraps these.
var (
	ErrFull       = errors.New("the disk is full: make room; what was written before is safe")
	ErrLocked     = errors.New("another process has kept the file locked for too long")
	ErrUnwritable = errors.New("the file or its folder cannot be written")
	ErrUnreadable = errors.New("the file cannot be read: see whose it is, and the modes of it and of its folders")
	ErrCorrupt    = errors.New("the file is damaged: restore it from a backup, or move it away to begin a new one")
	errForeign    = errors.New("the file is no journal of runteam: give another path")
	errNoJournal  = errors.New("there is no journal yet; a run makes one")
)

// reasons are what the codes of SQLite mean here.
var reasons = map[int]error{
	sqlite3.SQLITE_FULL: ErrFull, sqlite3.SQLITE_BUSY: ErrLocked, sqlite3.SQLITE_LOCKED: ErrLocked, sqlite3.SQLITE_READONLY: ErrUnwritable,
	sqlite3.SQLITE_CORRUPT: ErrCorrupt, sqlite3.SQLITE_NOTADB: errForeign, sqlite3.SQLITE_PERM: ErrUnwritable, sqlite3.SQLITE_CANTOPEN: ErrUnwritable,
}

// code returns what SQLite calls an error, of which the low byte is the kind;
// zero if it is none of SQLite's.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return sqlite3.SQLITE_OK
}

// explain says what an error of SQLite, or of the file system, means.
func (d *database) explain(err error) error {
	why, ok := reasons[code(err)&0xff]
	if !ok && writing(code(err)) && isDiskFull(filepath.Dir(d.path)) {
		why, ok = ErrFull, true
	}
	switch {
	case ok:
		return fmt.Errorf("%w (%s)", why, strings.TrimSpace(err.Error()))
	case errors.Is(err, ErrUnreadable):
		return err
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("%w: %w", ErrFull, err)
	case errors.Is(err, fs.ErrPermission) || errors.Is(err, syscall.EROFS):
		return fmt.Errorf("%w: %w", ErrUnwritable, err)
	case errors.Is(err, sql.ErrConnDone):
		return ErrClosed
	}
	return err
}

// writing reports whether a code of SQLite is of a failure that it may have
// because there is no room, and that it does not call so.
func writing(code int) bool {
	switch code {
	case sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE, sqlite3.SQLITE_IOERR_CLOSE,
		sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMLOCK, sqlite3.SQLITE_IOERR_SHMMAP:
		return true
	}
	return false
}

// unreadable says of an error of who would read a file what it means.
func unreadable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return err
}
