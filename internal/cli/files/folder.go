package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/workdir"
)

// A Folder is a folder into which a command writes files when it is done. Open runs before the
// command starts, so that nothing is spent on results that could not be written. Each file appears
// whole or not at all, only its owner may read it, and none is written outside the folder.
type Folder struct {
	Flag  string // the name of the flag, for messages
	Path  string
	Force bool // replace existing files

	dir     workdir.Dir // of Path
	root    *os.Root
	created bool // Open created the folder
}

// Open creates the folder unless it exists. It refuses a folder that has one of the names, or in
// which nothing can be written. The path starts from dir.
func (f *Folder) Open(dir workdir.Dir, names []string) (err error) {
	f.dir = dir
	if f.Path == "" {
		return exit.Usagef("--%s is empty: name a folder", f.Flag)
	}
	at, err := dir.Stat(f.Path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		f.created = true
		err = dir.MkdirAll(f.Path, 0o755)
	case err == nil && !at.IsDir():
		err = errors.New("it is a file: name a folder")
	}
	if err == nil {
		f.root, err = dir.OpenRoot(f.Path)
	}
	if err != nil {
		return f.fail(err)
	}
	for _, name := range names {
		if _, err := f.root.Lstat(name); !f.Force && !errors.Is(err, fs.ErrNotExist) {
			return f.fail(fmt.Errorf("%s exists: name another folder, or add --force to replace it", name))
		}
	}
	probe, name, err := createTemp(f.root)
	if err != nil {
		return f.fail(fmt.Errorf("nothing can be written there: %w", exit.WithoutPath(err)))
	}
	_ = probe.Close()
	return f.root.Remove(name)
}

// fail returns an error about the folder.
func (f *Folder) fail(err error) error { return exit.FileError("--"+f.Flag+" "+f.Path, err) }

// WriteFile writes a file of the folder. It replaces one only with Force.
func (f *Folder) WriteFile(name string, data []byte) error {
	temp, as, err := createTemp(f.root)
	if err == nil {
		err = WriteSynced(temp, data)
	}
	switch {
	case err != nil:
	case f.Force:
		err = f.root.Rename(as, name)
	default:
		if err = renameNew(f.root, as, name); errors.Is(err, errTaken) {
			err = errors.New("it exists, and is left as it is")
		}
	}
	if err != nil && temp != nil {
		_ = f.root.Remove(as)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, exit.WithoutPath(err))
	}
	return nil
}

// Close closes the folder, and removes it if Open created it and it is empty.
func (f *Folder) Close() {
	if f.root == nil {
		return
	}
	_ = f.root.Close()
	if f.root = nil; f.created {
		_ = f.dir.Remove(f.Path) // not if something was written
	}
}

// Slug returns the letters and digits of a title with a hyphen for each other character, for a name
// of a file. It is empty for a title without letters and digits of ASCII.
func Slug(title string) string {
	return strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		return '-'
	}, title), "-")
}
