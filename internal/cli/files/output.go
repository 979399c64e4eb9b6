// Package files opens the files that flags and arguments name, and writes new ones safely.
package files

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/runteam/runteam/internal/cli/exit"
)

// Output is a file that a command writes when it is done. Whether it can be
// written is looked at before the command begins, so that nothing is spent on
// what cannot be kept; it appears whole or not at all, and nobody else may read
// it: it holds what agents said, or were to be told. No link is followed: what
// it leads to would be replaced with the rights of whoever runs the command.
// What may be replaced is settled at the beginning: what stands there in the
// end and is anything else is left alone.
type Output struct {
	Flag     string // that names it, for messages
	Path     string
	Force    bool // take the place of a file that exists
	KeepMode bool // and keep the mode of that file; any other gets 0600

	folder fs.FileInfo // as check found it
	old    fs.FileInfo // what is replaced, as check found it; nil for nothing
}

// Check refuses a file that could not be written, and one that is read too.
func (f *Output) Check(read ...string) error {
	switch {
	case f.Path == "":
		return exit.Usagef("--%s is empty: name a file", f.Flag)
	case f.Path == "-" || os.IsPathSeparator(f.Path[len(f.Path)-1]):
		return exit.Usagef("--%s %s: name a file", f.Flag, f.Path)
	}
	err := f.place()
	if err == nil {
		err = f.settle()
	}
	if err != nil {
		return &exit.Error{Kind: exit.KindIO, Err: fmt.Errorf("--%s %s: %w", f.Flag, f.Path, err)}
	}
	if f.old == nil {
		return nil
	}
	for _, path := range read {
		if other, err := os.Stat(path); err == nil && os.SameFile(f.old, other) {
			return exit.Usagef("--%s %s: the command reads this file: name another one", f.Flag, f.Path)
		}
	}
	return nil
}

// place checks what is at the path.
func (f *Output) place() error {
	at, err := os.Stat(f.Path)
	switch {
	case err == nil && at.IsDir():
		return errors.New("it is a folder: name a file in it")
	case err == nil && !at.Mode().IsRegular():
		return errors.New("it is not a regular file: name another one")
	}
	if own, err := os.Lstat(f.Path); err == nil && own.Mode()&fs.ModeSymlink != 0 {
		to, err := filepath.EvalSymlinks(f.Path)
		if err != nil {
			return errors.New("it is a link that leads nowhere: name another file")
		}
		return fmt.Errorf("it is a link to %s: name that file", to)
	}
	switch {
	case err == nil && !f.Force:
		return errors.New("it exists: add --force to replace it, or name another file")
	case err == nil:
		return f.stays()
	case !errors.Is(err, fs.ErrNotExist):
		return exit.WithoutPath(err)
	}
	if folder, err := os.Stat(filepath.Dir(f.Path)); err != nil || !folder.IsDir() {
		return fmt.Errorf("there is no folder %s: make it first", filepath.Dir(f.Path))
	}
	return nil
}

// stays refuses to replace a file behind a folder that is a link out of the
// working directory, from which the path starts.
func (f *Output) stays() error {
	if !filepath.IsLocal(f.Path) {
		return nil // it says itself where it leads
	}
	here, err := os.OpenRoot(".")
	if err != nil {
		return exit.WithoutPath(err)
	}
	defer here.Close()
	if _, err := here.Stat(f.Path); err == nil {
		return nil
	}
	to, err := filepath.EvalSymlinks(f.Path)
	if err != nil {
		return exit.WithoutPath(err)
	}
	return fmt.Errorf("a link on its way leads to %s: name that file", to)
}

// settle remembers the folder and what is to be replaced in it, and tries
// whether the folder takes a file.
func (f *Output) settle() error {
	root, err := f.open()
	if err != nil {
		return fmt.Errorf("nothing can be written there: %w", exit.WithoutPath(err))
	}
	defer root.Close()
	if f.folder, err = root.Stat("."); err != nil {
		return exit.WithoutPath(err)
	}
	f.old, err = root.Lstat(filepath.Base(f.Path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return exit.WithoutPath(err)
	}
	probe, name, err := f.temporary(root)
	if err != nil {
		return fmt.Errorf("nothing can be written there: %w", exit.WithoutPath(err))
	}
	_ = probe.Close()
	return root.Remove(name)
}

// open opens the folder of the file, if it is still the one that check found.
func (f *Output) open() (*os.Root, error) {
	root, err := os.OpenRoot(filepath.Dir(f.Path))
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

// temporary makes a file in the folder, under an unused name.
func (f *Output) temporary(root *os.Root) (*os.File, string, error) {
	for {
		name := fmt.Sprintf(".runteam-%016x", rand.Uint64())
		file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return file, name, err
		}
	}
}

// Write writes the file, whole or not at all. What cannot get its name is kept
// under another one, which the error says.
func (f *Output) Write(data []byte) error {
	err := f.replace(data)
	if err != nil {
		return &exit.Error{Kind: exit.KindIO, Err: fmt.Errorf("--%s %s: not written: %w", f.Flag, f.Path, err)}
	}
	return nil
}

func (f *Output) replace(data []byte) error {
	root, err := f.open()
	if err != nil {
		return f.elsewhere(data, exit.WithoutPath(err))
	}
	defer root.Close()
	temp, name, err := f.temporary(root)
	if err != nil {
		return f.elsewhere(data, exit.WithoutPath(err))
	}
	if err := WriteSynced(temp, data); err != nil {
		_ = root.Remove(name)
		return exit.WithoutPath(err)
	}
	if err := f.moveIn(root, name); err != nil {
		return fmt.Errorf("%w; what was to be written is in %s", exit.WithoutPath(err), f.aside(root, name))
	}
	return nil
}

// moveIn gives a file that was written its name. It replaces nothing but the
// file that check found, as it was then.
func (f *Output) moveIn(root *os.Root, temp string) error {
	base := filepath.Base(f.Path)
	at, err := root.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return name(root, temp, base)
	case err != nil:
		return err
	case f.old == nil || !f.Force:
		return errTaken
	case !os.SameFile(at, f.old) || at.Size() != f.old.Size() || !at.ModTime().Equal(f.old.ModTime()):
		return errors.New("the file that stands there was changed or replaced while the command ran, and is left as it is")
	}
	if f.KeepMode {
		if err := root.Chmod(temp, at.Mode().Perm()); err != nil {
			return err
		}
	}
	return root.Rename(temp, base)
}

// aside gives a file that cannot have its name one like it, and returns its path.
func (f *Output) aside(root *os.Root, temp string) string {
	base := filepath.Base(f.Path)
	ext := filepath.Ext(base)
	other := fmt.Sprintf("%s.new-%08x%s", strings.TrimSuffix(base, ext), rand.Uint32(), ext)
	if name(root, temp, other) != nil {
		other = temp
	}
	return filepath.Join(filepath.Dir(f.Path), other)
}

// elsewhere keeps what the folder does not take any more in the system's
// folder for temporary files, and returns why, with its path.
func (f *Output) elsewhere(data []byte, why error) error {
	file, err := os.CreateTemp("", "runteam-*"+filepath.Ext(f.Path)) // with the mode 0600
	if err != nil {
		return fmt.Errorf("%w, and it cannot be kept elsewhere: %w", why, exit.WithoutPath(err))
	}
	if err := WriteSynced(file, data); err != nil {
		_ = os.Remove(file.Name())
		return fmt.Errorf("%w, and it cannot be kept elsewhere: %w", why, exit.WithoutPath(err))
	}
	return fmt.Errorf("%w; what was to be written is in %s", why, file.Name())
}

// WriteSynced writes a file to the disk and closes it.
func WriteSynced(file *os.File, data []byte) error {
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

// CheckWritable refuses a file that could not be written, or that the command uses
// for something else, whether it exists by now or not.
func (f *Output) CheckWritable(read []string) error {
	own, err := filepath.Abs(f.Path)
	for _, path := range read {
		if other, bad := filepath.Abs(path); f.Path != "" && path != "" && err == nil && bad == nil && own == other {
			return exit.Usagef("--%s %s: the command uses this file for something else: name another one", f.Flag, f.Path)
		}
	}
	return f.Check(read...)
}

// create makes the file at once, empty and under its name, for what cannot
// wait until all is known. It replaces what write would.
func (f *Output) create() (*os.File, error) {
	root, err := f.open()
	if err != nil {
		return nil, exit.WithoutPath(err)
	}
	defer root.Close()
	file, temp, err := f.temporary(root)
	if err != nil {
		return nil, exit.WithoutPath(err)
	}
	if err := f.moveIn(root, temp); err != nil {
		_ = file.Close()
		_ = root.Remove(temp)
		return nil, exit.WithoutPath(err)
	}
	return file, nil
}
