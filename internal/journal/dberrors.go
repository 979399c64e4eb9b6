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

// Errors of the file or the database of a journal. An [*Error] wraps them.
var (
	ErrFull       = errors.New("the disk is full: make room; what was written before is safe")
	ErrLocked     = errors.New("another process has kept the file locked for too long")
	ErrUnwritable = errors.New("the file or its folder cannot be written")
	ErrUnreadable = errors.New("the file cannot be read: see whose it is, and the modes of it and of its folders")
	ErrCorrupt    = errors.New("the journal is damaged: restore it from a backup, or begin another one elsewhere")
	ErrGone       = errors.New("the file was removed or replaced while it was open, so nothing more is stored: put it back, or begin again")
	ErrAway       = errors.New("the server of the database cannot be reached: see that it runs, and that this host may connect to it; what was written before is safe")
	errForeign    = errors.New("the file is no journal of runteam: give another path")
	errNoJournal  = errors.New("there is no journal yet; a run makes one")
)

// reasons maps codes of SQLite to errors.
var reasons = map[int]error{
	sqlite3.SQLITE_FULL: ErrFull, sqlite3.SQLITE_BUSY: ErrLocked, sqlite3.SQLITE_LOCKED: ErrLocked, sqlite3.SQLITE_READONLY: ErrUnwritable,
	sqlite3.SQLITE_CORRUPT: ErrCorrupt, sqlite3.SQLITE_NOTADB: errForeign, sqlite3.SQLITE_PERM: ErrUnwritable, sqlite3.SQLITE_CANTOPEN: ErrUnwritable,
}

// code returns the SQLite code of an error, whose low byte is the kind; zero if the error
// is not one of SQLite.
func code(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return sqlite3.SQLITE_OK
}

// Explain returns the error that an error of SQLite or of the file system means.
func (d *sqliteDB) Explain(err error) error {
	why, ok := reasons[code(err)&0xff]
	if !ok && writing(code(err)) && isDiskFull(filepath.Dir(d.path)) {
		why, ok = ErrFull, true
	}
	switch {
	case ok && why == ErrFull: // the text of SQLite says nothing more
		return why
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

// writing reports whether a code of SQLite is of a failed write, which a full disk may have
// caused although SQLite does not say so.
func writing(code int) bool {
	switch code {
	case sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC, sqlite3.SQLITE_IOERR_DIR_FSYNC, sqlite3.SQLITE_IOERR_TRUNCATE, sqlite3.SQLITE_IOERR_CLOSE,
		sqlite3.SQLITE_IOERR_SHMOPEN, sqlite3.SQLITE_IOERR_SHMSIZE, sqlite3.SQLITE_IOERR_SHMLOCK, sqlite3.SQLITE_IOERR_SHMMAP:
		return true
	}
	return false
}

// unreadable adds ErrUnreadable to an error if permission was denied.
func unreadable(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return err
}
