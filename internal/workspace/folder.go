// Package workspace keeps the folders in which the tools of an attempt work: it makes and
// removes them, limits their size, and finds out whether one has changed.
package workspace

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// A Folder is a workspace. Its methods are not safe for concurrent use; those of its root are.
type Folder struct {
	*os.Root
	seen  map[string]seenFile                  // by path: contents that need not be read again
	given map[string]givenFile                 // by path: what [Folder.Give] wrote
	sumOf func(text *string) [sha256.Size]byte // of what it wrote
}

// keptPrefix begins the names of folders that stay when their run has ended.
const keptPrefix = "kept-"

// Make makes an empty folder that only this user can open. The name begins with a prefix. The
// parent is made too, and it and the folder above must belong to this user, unless it is a folder
// for temporary files of all users; empty means the one of the system.
func Make(parent, prefix string) (*Folder, error) {
	dir, err := makeDir(parent, prefix)
	for range 3 {
		if !errors.Is(err, fs.ErrNotExist) {
			break
		}
		dir, err = makeDir(parent, prefix) // another run has removed an empty folder above
	}
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, errors.Join(err, os.Remove(dir))
	}
	return &Folder{Root: root, seen: map[string]seenFile{}}, nil
}

// makeDir makes a folder with a name of its own, which no other program can guess: a confined command
// can find out whether a file exists wherever it is.
func makeDir(parent, prefix string) (string, error) {
	prefix += rand.Text()
	if parent == "" {
		return os.MkdirTemp("", prefix)
	}
	if err := os.MkdirAll(parent, 0o700); err != nil {
		return "", err
	}
	if info, err := os.Stat(parent); err == nil && info.Mode()&fs.ModeSticky != 0 {
		return os.MkdirTemp(parent, prefix)
	}
	if err := checkOwn(filepath.Dir(parent), parent); err != nil {
		return "", err
	}
	return os.MkdirTemp(parent, prefix)
}

// Open opens a folder that an earlier process made.
func Open(parent, name string) (*Folder, error) {
	if filepath.Base(name) != name || !filepath.IsLocal(name) || name == "." {
		return nil, fmt.Errorf("%q is not the name of a workspace", name)
	}
	dir := filepath.Join(parent, name)
	if err := checkOwn(filepath.Dir(parent), parent, dir); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &Folder{Root: root, seen: map[string]seenFile{}}, nil
}

// checkOwn refuses what is not a folder of this user that no other user can write.
func checkOwn(paths ...string) error {
	for _, path := range paths {
		info, err := os.Lstat(path)
		switch {
		case err != nil:
			return err
		case !info.IsDir():
			return fmt.Errorf("%s is not a folder: move it away", path)
		case !isOwn(info):
			return fmt.Errorf("%s belongs to another user: move it away", path)
		case info.Mode().Perm()&0o022 != 0 && runtime.GOOS != "windows": // which has no modes
			return fmt.Errorf("%s can be written by other users (mode %04o): `chmod go-w` it", path, info.Mode().Perm())
		}
	}
	return nil
}

// Remove closes and removes the folder.
func (f *Folder) Remove() error { return errors.Join(f.Close(), Remove(f.Name())) }

// Keep closes the folder and renames it so that [RemoveRun] leaves it there. It replaces one
// that was kept for the same ID, and returns the new path.
func (f *Folder) Keep(id string) (path string, err error) {
	path = filepath.Join(filepath.Dir(f.Name()), keptPrefix+FileName(id))
	if err := errors.Join(f.Close(), Remove(path), os.Rename(f.Name(), path)); err != nil {
		return "", err
	}
	return path, nil
}

// Remove removes a folder with everything in it, even if a tool has taken its own rights away.
func Remove(dir string) error {
	if os.RemoveAll(dir) == nil {
		return nil
	}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, _ error) error {
		if d != nil && d.IsDir() {
			return os.Chmod(path, 0o700)
		}
		return nil
	})
	return os.RemoveAll(dir)
}

// RemoveRun removes the workspaces of a run, except those that were kept, and their parent if
// nothing is left in it. A folder that does not exist is no error.
func RemoveRun(parent string) error {
	entries, err := os.ReadDir(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err}
	kept := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), keptPrefix) {
			kept++
			continue
		}
		errs = append(errs, Remove(filepath.Join(parent, e.Name())))
	}
	if kept == 0 {
		errs = append(errs, os.Remove(parent))
		_ = os.Remove(filepath.Dir(parent)) // unless another run has workspaces
	}
	return errors.Join(errs...)
}

// Base returns the name of the folder in its parent.
func (f *Folder) Base() string { return filepath.Base(f.Name()) }
