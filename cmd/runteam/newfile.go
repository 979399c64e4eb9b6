package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// newFile is a file that a command writes when it is done. Whether it can be
// written is looked at before the command begins, so that nothing is spent on
// what cannot be kept; it appears whole or not at all, and nobody else may
// read it: it holds what agents said, or were to be told. A link is never
// followed, neither before nor at the end: what it leads to would be replaced
// with the rights of whoever runs the command.
type newFile struct {
	flag  string // that names it, for messages
	path  string
	force bool // take the place of a file that exists
}

// check refuses a file that could not be written, and one that is read too.
func (f *newFile) check(read ...string) error {
	switch {
	case f.path == "":
		return usageError("--%s is empty: name a file", f.flag)
	case f.path == "-" || os.IsPathSeparator(f.path[len(f.path)-1]):
		return usageError("--%s %s: name a file", f.flag, f.path)
	}
	if err := f.place(); err != nil {
		return &fault{kind: kindIO, err: fmt.Errorf("--%s %s: %w", f.flag, f.path, err)}
	}
	own, err := os.Stat(f.path)
	if err != nil {
		return nil
	}
	for _, path := range read {
		if other, err := os.Stat(path); err == nil && os.SameFile(own, other) {
			return usageError("--%s %s: the command reads this file: name another one", f.flag, f.path)
		}
	}
	return nil
}

// place looks at what stands at the path, and whether its folder takes a file.
func (f *newFile) place() error {
	at, err := os.Lstat(f.path)
	switch {
	case err == nil && at.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("it is a link: name the file itself%s", leadsTo(f.path))
	case err == nil && at.IsDir():
		return errors.New("it is a folder: name a file in it")
	case err == nil && !at.Mode().IsRegular():
		return errors.New("it is not a regular file: name another one")
	case err == nil && !f.force:
		return errors.New("it exists: add --force to replace it, or name another file")
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return plainly(err)
	}
	if err != nil {
		if folder, err := os.Stat(filepath.Dir(f.path)); err != nil || !folder.IsDir() {
			return fmt.Errorf("there is no folder %s: make it first", filepath.Dir(f.path))
		}
	}
	probe, err := f.temporary()
	if err != nil {
		return fmt.Errorf("nothing can be written there: %w", plainly(err))
	}
	_ = probe.Close()
	return os.Remove(probe.Name())
}

// leadsTo says what a link leads to, if anything stands there.
func leadsTo(link string) string {
	if real, err := filepath.EvalSymlinks(link); err == nil {
		return ", " + real
	}
	return ""
}

// temporary makes a file beside the one to be, under a name that nobody has.
func (f *newFile) temporary() (*os.File, error) {
	for {
		name := filepath.Join(filepath.Dir(f.path), fmt.Sprintf(".runteam-%016x", rand.Uint64()))
		file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return file, err
		}
	}
}

// write writes the file, whole or not at all.
func (f *newFile) write(data []byte) error {
	err := f.replace(data)
	if err != nil {
		return &fault{kind: kindIO, err: fmt.Errorf("--%s %s: not written: %w", f.flag, f.path, plainly(err))}
	}
	return nil
}

func (f *newFile) replace(data []byte) error {
	temp, err := f.temporary()
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name()) // gone already if it was renamed
	_, err = temp.Write(data)
	if err == nil {
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if f.force {
		return os.Rename(temp.Name(), f.path) // in the place of a link that came to be, not of what it leads to
	}
	return name(temp.Name(), f.path)
}

// name gives a file another name, unless something has that name: also if it
// came to be in the meantime.
func name(from, to string) error {
	err := os.Link(from, to)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, err := os.Lstat(to); err == nil { // a file system without links
		return fs.ErrExist
	}
	return os.Rename(from, to)
}

// plainly leaves the operation and the path out of an error, which names
// a file that nobody asked for.
func plainly(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err
	}
	return err
}
