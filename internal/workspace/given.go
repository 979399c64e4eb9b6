package workspace

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// givenTime is the time of files as a task was given them, so that it shows which ones were written again, also to a
// process that resumes the run.
var givenTime = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// A givenFile is a file as a task was given it.
type givenFile struct {
	info fs.FileInfo
	text *string
}

// Give writes files into a new workspace. A nil text is of no file. Those that begin with #! are executable. Each file
// is a copy: a link would let a task change the files of another one. sum returns the digest of a text, which the caller may
// know already.
func (f *Folder) Give(files map[string]*string, sum func(text *string) [sha256.Size]byte) (err error) {
	f.given, f.sumOf = make(map[string]givenFile, len(files)), sum
	dir := givenDir{top: f.Root, at: ".", root: f.Root}
	defer func() { err = errors.Join(err, dir.close()) }()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		text := files[name]
		if text == nil {
			continue
		}
		if err := dir.enter(path.Dir(name)); err != nil {
			return err
		}
		info, err := dir.give(path.Base(name), *text)
		if errors.Is(err, fs.ErrExist) {
			return fmt.Errorf("%s: this file system takes the name for that of another file of the folder: rename one of the two", name)
		}
		if err != nil {
			return err
		}
		f.given[name] = givenFile{info, text}
	}
	return nil
}

// Put writes a file in place of what has its name, as one that the task has written.
func (f *Folder) Put(name, text string) (err error) {
	if err := f.RemoveAll(name); err != nil {
		return err
	}
	delete(f.given, name)
	dir := givenDir{top: f.Root, at: ".", root: f.Root}
	defer func() { err = errors.Join(err, dir.close()) }()
	if err := dir.enter(path.Dir(name)); err != nil {
		return err
	}
	return dir.write(path.Base(name), text)
}

// A givenDir is the folder into which files are written. Most files are in the folder of the one before, which
// saves the way to it.
type givenDir struct {
	top, root *os.Root
	at        string
}

func (d *givenDir) enter(dir string) error {
	if dir == d.at {
		return nil
	}
	if err := d.close(); err != nil {
		return err
	}
	if d.at, d.root = ".", d.top; dir == "." {
		return nil
	}
	if err := d.top.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root, err := d.top.OpenRoot(dir)
	if err == nil {
		d.at, d.root = dir, root
	}
	return err
}

func (d *givenDir) close() error {
	if d.root == d.top {
		return nil
	}
	return d.root.Close()
}

// give writes a file and returns what it is like as given.
func (d *givenDir) give(name, text string) (fs.FileInfo, error) {
	if err := d.write(name, text); err != nil {
		return nil, err
	}
	if err := d.root.Chtimes(name, givenTime, givenTime); err != nil {
		return nil, err
	}
	return d.root.Lstat(name)
}

func (d *givenDir) write(name, text string) error {
	mode := fs.FileMode(0o644)
	if strings.HasPrefix(text, "#!") {
		mode = 0o755
	}
	out, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = out.WriteString(text)
	return errors.Join(err, out.Close())
}

// IsWritten reports whether a file was written since the task was given it with a text, if only with the same one. A
// nil text is of a file that the task was not given. The folder may be one that an earlier process made.
func (f *Folder) IsWritten(name string, info fs.FileInfo, text *string) bool {
	switch {
	case text == nil:
		return true
	case f.isGiven(name, info):
		return false
	case info.Size() != int64(len(*text)) || !info.ModTime().Equal(givenTime):
		return true
	}
	in, _, err := OpenFile(f.Root, name, os.O_RDONLY, 0)
	if err != nil {
		return true
	}
	defer in.Close()
	now, err := io.ReadAll(io.LimitReader(in, info.Size()+1))
	return err != nil || !bytes.Equal(now, []byte(*text))
}

// isGiven reports whether a file is as [Folder.Give] left it. On a system that does not tell when a file was changed, no
// file is known to be.
func (f *Folder) isGiven(name string, info fs.FileInfo) bool {
	_, tells := changeTime(info)
	return tells && isSame(f.given[name].info, info)
}
