package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
)

// newFile is a file that a command writes when it is done. Whether it can be
// written is looked at before the command begins, so that nothing is spent on
// what cannot be kept; it appears whole or not at all, and nobody else may read
// it: it holds what agents said, or were to be told. No link is followed: what
// it leads to would be replaced with the rights of whoever runs the command.
// What may be replaced is settled at the beginning: what stands there in the
// end and is anything else is left alone.
type newFile struct {
	flag    string // that names it, for messages
	path    string
	force   bool // take the place of a file that exists
	ownMode bool // and keep the mode of that file; any other gets 0600

	folder fs.FileInfo // as check found it
	old    fs.FileInfo // what is replaced, as check found it; nil for nothing
}

// check refuses a file that could not be written, and one that is read too.
func (f *newFile) check(read ...string) error {
	switch {
	case f.path == "":
		return usageError("--%s is empty: name a file", f.flag)
	case f.path == "-" || os.IsPathSeparator(f.path[len(f.path)-1]):
		return usageError("--%s %s: name a file", f.flag, f.path)
	}
	err := f.place()
	if err == nil {
		err = f.settle()
	}
	if err != nil {
		return &fault{kind: kindIO, err: fmt.Errorf("--%s %s: %w", f.flag, f.path, err)}
	}
	if f.old == nil {
		return nil
	}
	for _, path := range read {
		if other, err := os.Stat(path); err == nil && os.SameFile(f.old, other) {
			return usageError("--%s %s: the command reads this file: name another one", f.flag, f.path)
		}
	}
	return nil
}

// place looks at what stands at the path.
func (f *newFile) place() error {
	at, err := os.Stat(f.path)
	switch {
	case err == nil && at.IsDir():
		return errors.New("it is a folder: name a file in it")
	case err == nil && !at.Mode().IsRegular():
		return errors.New("it is not a regular file: name another one")
	}
	if own, err := os.Lstat(f.path); err == nil && own.Mode()&fs.ModeSymlink != 0 {
		to, err := filepath.EvalSymlinks(f.path)
		if err != nil {
			return errors.New("it is a link that leads nowhere: name another file")
		}
		return fmt.Errorf("it is a link to %s: name that file", to)
	}
	switch {
	case err == nil && !f.force:
		return errors.New("it exists: add --force to replace it, or name another file")
	case err == nil:
		return f.stays()
	case !errors.Is(err, fs.ErrNotExist):
		return plainly(err)
	}
	if folder, err := os.Stat(filepath.Dir(f.path)); err != nil || !folder.IsDir() {
		return fmt.Errorf("there is no folder %s: make it first", filepath.Dir(f.path))
	}
	return nil
}

// stays refuses to replace a file behind a folder that is a link out of the
// working directory, from which the path starts.
func (f *newFile) stays() error {
	if !filepath.IsLocal(f.path) {
		return nil // it says itself where it leads
	}
	here, err := os.OpenRoot(".")
	if err != nil {
		return plainly(err)
	}
	defer here.Close()
	if _, err := here.Stat(f.path); err == nil {
		return nil
	}
	to, err := filepath.EvalSymlinks(f.path)
	if err != nil {
		return plainly(err)
	}
	return fmt.Errorf("a link on its way leads to %s: name that file", to)
}

// settle remembers the folder and what is to be replaced in it, and tries
// whether the folder takes a file.
func (f *newFile) settle() error {
	root, err := f.open()
	if err != nil {
		return fmt.Errorf("nothing can be written there: %w", plainly(err))
	}
	defer root.Close()
	if f.folder, err = root.Stat("."); err != nil {
		return plainly(err)
	}
	f.old, err = root.Lstat(filepath.Base(f.path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return plainly(err)
	}
	probe, name, err := f.temporary(root)
	if err != nil {
		return fmt.Errorf("nothing can be written there: %w", plainly(err))
	}
	_ = probe.Close()
	return root.Remove(name)
}

// open opens the folder of the file, if it is still the one that check found.
func (f *newFile) open() (*os.Root, error) {
	root, err := os.OpenRoot(filepath.Dir(f.path))
	if err != nil || f.folder == nil {
		return root, err
	}
	at, err := root.Stat(".")
	if err == nil && !os.SameFile(at, f.folder) {
		err = errors.New("its folder is another one than when the command began")
	}
	if err != nil {
		_ = root.Close()
		return nil, err
	}
	return root, nil
}

// temporary makes a file in the folder, under a name that nobody has.
func (f *newFile) temporary(root *os.Root) (*os.File, string, error) {
	for {
		name := fmt.Sprintf(".runteam-%016x", rand.Uint64())
		file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return file, name, err
		}
	}
}

// write writes the file, whole or not at all. What cannot get its name is kept
// under another one, which the error says.
func (f *newFile) write(data []byte) error {
	err := f.replace(data)
	if err != nil {
		return &fault{kind: kindIO, err: fmt.Errorf("--%s %s: not written: %w", f.flag, f.path, err)}
	}
	return nil
}

func (f *newFile) replace(data []byte) error {
	root, err := f.open()
	if err != nil {
		return f.elsewhere(data, plainly(err))
	}
	defer root.Close()
	temp, name, err := f.temporary(root)
	if err != nil {
		return f.elsewhere(data, plainly(err))
	}
	if err := fill(temp, data); err != nil {
		_ = root.Remove(name)
		return plainly(err)
	}
	if err := f.moveIn(root, name); err != nil {
		return fmt.Errorf("%w; what was to be written is in %s", plainly(err), f.aside(root, name))
	}
	return nil
}

// moveIn gives a file that was written its name. It replaces nothing but the
// file that check found, as it was then.
func (f *newFile) moveIn(root *os.Root, temp string) error {
	base := filepath.Base(f.path)
	at, err := root.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return name(root, temp, base)
	case err != nil:
		return err
	case f.old == nil || !f.force:
		return errTaken
	case !os.SameFile(at, f.old) || at.Size() != f.old.Size() || !at.ModTime().Equal(f.old.ModTime()):
		return errors.New("the file that stands there was changed or replaced while the command ran, and is left as it is")
	}
	if f.ownMode {
		if err := root.Chmod(temp, at.Mode().Perm()); err != nil {
			return err
		}
	}
	return root.Rename(temp, base)
}

// aside gives a file that cannot have its name one like it, and returns its path.
func (f *newFile) aside(root *os.Root, temp string) string {
	base := filepath.Base(f.path)
	ext := filepath.Ext(base)
	other := fmt.Sprintf("%s.new-%08x%s", strings.TrimSuffix(base, ext), rand.Uint32(), ext)
	if name(root, temp, other) != nil {
		other = temp
	}
	return filepath.Join(filepath.Dir(f.path), other)
}

// elsewhere keeps what the folder does not take any more in the system's
// folder for temporary files, and returns why, with its path.
func (f *newFile) elsewhere(data []byte, why error) error {
	file, err := os.CreateTemp("", "runteam-*"+filepath.Ext(f.path)) // with the mode 0600
	if err != nil {
		return fmt.Errorf("%w, and it cannot be kept elsewhere: %w", why, plainly(err))
	}
	if err := fill(file, data); err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("%w, and it cannot be kept elsewhere: %w", why, plainly(err))
	}
	return fmt.Errorf("%w; what was to be written is in %s", why, file.Name())
}

// fill writes a file to the disk and closes it.
func fill(file *os.File, data []byte) error {
	_, err := file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	return err
}

var errTaken = errors.New("a file came to be there while the command ran, and is left as it is")

// name gives a file of a folder its name, unless something has that name: also
// if it came to be in the meantime.
func name(root *os.Root, from, to string) error {
	err := root.Link(from, to)
	if err == nil {
		return root.Remove(from)
	}
	if _, at := root.Lstat(to); at == nil {
		return errTaken
	}
	return root.Rename(from, to) // a file system without links
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
