package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/runteam/runteam/internal/workdir"
)

// ErrForeign reports a file that another user may have created or changed: one of another owner,
// one that others may write, or a symbolic link.
var ErrForeign = errors.New("it may be the work of another user")

// fileSuffixes are the endings of the names of a journal's files.
var fileSuffixes = [...]string{"", "-wal", "-shm", "-journal", ".key", ".reserve"}

// Files returns the paths of all files that the journal at path may use, whether they exist
// or not. Other programs must not write to them.
func Files(path string) []string {
	all := make([]string, len(fileSuffixes))
	for i, suffix := range fileSuffixes {
		all[i] = path + suffix
	}
	return all
}

// checkFiles refuses a journal with a file that is a symbolic link, is not a regular file,
// belongs to another user or can be written by one. Files need not exist.
func checkFiles(path string) error {
	for _, suffix := range fileSuffixes {
		at, err := os.Lstat(path + suffix)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return unreadable(err)
		}
		if at.IsDir() && suffix == "" {
			return errors.New("it is a folder: give a file in it")
		}
		if err := checkOwn(path+suffix, at); err != nil {
			return err
		}
		if !at.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file: give another path", path+suffix)
		}
		if err := checkUnshared(path+suffix, at); err != nil {
			return err
		}
	}
	return nil
}

// checkPresent returns [ErrGone] if the path leads to another file than that which was opened, or to none. What is
// written then would end with this process, and other processes would not read it.
func (d *sqliteDB) checkPresent() error {
	if d.opened == nil {
		return nil
	}
	at, err := os.Stat(d.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(at, d.opened) {
		return ErrGone
	}
	return nil
}

// CheckFolder refuses a folder for a journal that is a symbolic link, belongs to another user
// than this one and root, or can be written by other users. A folder for temporary files of all
// users is sticky: others can make files in it and not exchange those of the journal, each of
// which must belong to this user. It does not check the folders above: a user who can replace
// those can replace the spec too.
func CheckFolder(dir workdir.Dir, path string) error {
	at, err := dir.Lstat(path)
	if err != nil {
		return err
	}
	owner, _, known := ownerOf(at)
	if ofRoot := known && owner == 0; !ofRoot || at.Mode()&fs.ModeSymlink != 0 {
		if err := checkOwn(path, at); err != nil {
			return err
		}
	}
	if !at.IsDir() {
		return fmt.Errorf("%s is not a folder: move it away", path)
	}
	if at.Mode()&fs.ModeSticky != 0 {
		return nil
	}
	return checkUnshared(path, at)
}

// CheckWorkspaces refuses a folder for workspaces that [CheckFolder] refuses for a journal. One that does not exist is
// made with the first workspace. The folder above it must exist: if a disk is not mounted, the files would be on another one.
func CheckWorkspaces(dir workdir.Dir, path string) error {
	path = filepath.Clean(path)
	err := CheckFolder(dir, path)
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if above := filepath.Dir(path); !dir.IsDir(above) {
		return fmt.Errorf("the folder %s does not exist: create it first", above)
	}
	return nil
}

// checkOwn refuses symbolic links and files of other users.
func checkOwn(path string, at fs.FileInfo) error {
	if at.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a symbolic link: give the path that it leads to: %w", path, ErrForeign)
	}
	if owner, me, known := ownerOf(at); known && owner != me {
		return fmt.Errorf("%s belongs to user %d, and this process runs as user %d: only its owner can use it: %w", path, owner, me, ErrForeign)
	}
	return nil
}

// checkUnshared refuses what other users can write, where the system tells that.
func checkUnshared(path string, at fs.FileInfo) error {
	if _, _, known := ownerOf(at); known && at.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("%s can be written by other users (mode %04o): make sure that none of them has changed it, then `chmod go-w` it: %w", path, at.Mode().Perm(), ErrForeign)
	}
	return nil
}
