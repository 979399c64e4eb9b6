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
	"github.com/runteam/runteam/internal/workdir"
)

// An Output is a file that a command writes when it is done. Check runs before the command
// starts, so that nothing is spent on a result that could not be written. The file appears whole
// or not at all, and only its owner may read it, since it holds prompts and answers. Links are not
// followed: their target would be replaced with the rights of the user. Only the file that Check
// found may be replaced.
type Output struct {
	Flag     string // the name of the flag, for messages
	Path     string
	Force    bool // replace an existing file
	KeepMode bool // keep the mode of a replaced file instead of setting 0600

	dir    workdir.Dir // of Path
	folder fs.FileInfo // as Check found it
	old    fs.FileInfo // the file to replace, as Check found it; nil if there is none
}

// fail returns an error about the file.
func (f *Output) fail(err error) error { return exit.FileError("--"+f.Flag+" "+f.Path, err) }

// Check refuses a file that could not be written, or that the command reads. All paths start from dir.
func (f *Output) Check(dir workdir.Dir, read ...string) error {
	f.dir = dir
	switch {
	case f.Path == "":
		return exit.Usagef("--%s is empty: name a file", f.Flag)
	case f.Path == "-" || os.IsPathSeparator(f.Path[len(f.Path)-1]):
		return exit.Usagef("--%s %s: name a file", f.Flag, f.Path)
	}
	err := f.checkPath()
	if err == nil {
		err = f.probe()
	}
	if err != nil {
		return f.fail(err)
	}
	if f.old == nil {
		return nil
	}
	for _, path := range read {
		if other, err := dir.Stat(path); err == nil && os.SameFile(f.old, other) {
			return exit.Usagef("--%s %s: the command reads this file: name another one", f.Flag, f.Path)
		}
	}
	return nil
}

// CheckWritable is Check, and also refuses a path that the command uses for something else, even
// if no file exists there yet.
func (f *Output) CheckWritable(dir workdir.Dir, used []string) error {
	own, err := dir.Abs(f.Path)
	for _, path := range used {
		if other, bad := dir.Abs(path); f.Path != "" && path != "" && err == nil && bad == nil && own == other {
			return exit.Usagef("--%s %s: the command uses this file for something else: name another one", f.Flag, f.Path)
		}
	}
	return f.Check(dir, used...)
}

// checkPath checks what exists at the path.
func (f *Output) checkPath() error {
	at, err := f.dir.Stat(f.Path)
	switch {
	case err == nil && at.IsDir():
		return errors.New("it is a folder: name a file in it")
	case err == nil && !at.Mode().IsRegular():
		return errors.New("it is not a regular file: name another one")
	}
	if own, err := f.dir.Lstat(f.Path); err == nil && own.Mode()&fs.ModeSymlink != 0 {
		to, err := f.dir.EvalSymlinks(f.Path)
		if err != nil {
			return errors.New("it is a link that leads nowhere: name another file")
		}
		return fmt.Errorf("it is a link to %s: name that file", to)
	}
	switch {
	case err == nil && !f.Force:
		return errors.New("it exists: add --force to replace it, or name another file")
	case err == nil:
		return f.checkInside()
	case !errors.Is(err, fs.ErrNotExist):
		return err
	}
	if folder, err := f.dir.Stat(filepath.Dir(f.Path)); err != nil || !folder.IsDir() {
		return fmt.Errorf("the folder %s does not exist; create it first", filepath.Dir(f.Path))
	}
	return nil
}

// checkInside refuses to replace a file that a relative path reaches through a link out of the
// working directory.
func (f *Output) checkInside() error {
	if !filepath.IsLocal(f.Path) {
		return nil // the path itself says where it leads
	}
	here, err := f.dir.OpenRoot(".")
	if err != nil {
		return err
	}
	defer here.Close()
	if _, err := here.Stat(f.Path); err == nil {
		return nil
	}
	to, err := f.dir.EvalSymlinks(f.Path)
	if err != nil {
		return err
	}
	return fmt.Errorf("a link on its way leads to %s: name that file", to)
}

// probe remembers the folder and the file to replace, and tries to create a file in the folder.
func (f *Output) probe() error {
	root, err := f.open()
	if err != nil {
		return fmt.Errorf("nothing can be written there: %w", exit.WithoutPath(err))
	}
	defer root.Close()
	if f.folder, err = root.Stat("."); err != nil {
		return err
	}
	f.old, err = root.Lstat(filepath.Base(f.Path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	probe, name, err := createTemp(root)
	if err != nil {
		return fmt.Errorf("nothing can be written there: %w", exit.WithoutPath(err))
	}
	_ = probe.Close()
	return root.Remove(name)
}

// open opens the folder of the file, if it is still the one that Check found.
func (f *Output) open() (*os.Root, error) {
	root, err := f.dir.OpenRoot(filepath.Dir(f.Path))
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

// createTemp creates a file in a folder under an unused name.
func createTemp(root *os.Root) (*os.File, string, error) {
	for {
		name := fmt.Sprintf(".runteam-%016x", rand.Uint64())
		file, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if !errors.Is(err, fs.ErrExist) {
			return file, name, err
		}
	}
}

// Write writes the file, whole or not at all. If the file cannot get its name, the data is saved
// under another one, which the error names.
func (f *Output) Write(data []byte) error {
	if err := f.replace(data); err != nil {
		return f.fail(fmt.Errorf("not written: %w", exit.WithoutPath(err)))
	}
	return nil
}

func (f *Output) replace(data []byte) error {
	root, err := f.open()
	if err != nil {
		return f.saveElsewhere(data, err)
	}
	defer root.Close()
	temp, name, err := createTemp(root)
	if err != nil {
		return f.saveElsewhere(data, err)
	}
	if err := WriteSynced(temp, data); err != nil {
		_ = root.Remove(name)
		return err
	}
	if err := f.moveIn(root, name); err != nil {
		return fmt.Errorf("%w; what was to be written is in %s", exit.WithoutPath(err), f.moveAside(root, name))
	}
	return nil
}

// moveIn gives a written file its name. It replaces nothing but the unchanged file that Check
// found.
func (f *Output) moveIn(root *os.Root, temp string) error {
	base := filepath.Base(f.Path)
	at, err := root.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return renameNew(root, temp, base)
	case err != nil:
		return err
	case f.old == nil || !f.Force:
		return errTaken
	case !os.SameFile(at, f.old) || at.Size() != f.old.Size() || !at.ModTime().Equal(f.old.ModTime()):
		return errors.New("the file was changed or replaced while the command ran, and is left as it is")
	}
	if f.KeepMode {
		if err := root.Chmod(temp, at.Mode().Perm()); err != nil {
			return err
		}
	}
	return root.Rename(temp, base)
}

// moveAside gives a file that cannot have its name a similar one, and returns its path.
func (f *Output) moveAside(root *os.Root, temp string) string {
	base := filepath.Base(f.Path)
	ext := filepath.Ext(base)
	other := fmt.Sprintf("%s.new-%08x%s", strings.TrimSuffix(base, ext), rand.Uint32(), ext)
	if renameNew(root, temp, other) != nil {
		other = temp
	}
	return filepath.Join(filepath.Dir(f.Path), other)
}

// saveElsewhere writes data that the folder no longer accepts to the system's folder for temporary
// files, and adds that path to the reason.
func (f *Output) saveElsewhere(data []byte, reason error) error {
	reason = exit.WithoutPath(reason)
	file, err := os.CreateTemp("", "runteam-*"+filepath.Ext(f.Path)) // with the mode 0600
	if err == nil {
		if err = WriteSynced(file, data); err != nil {
			_ = os.Remove(file.Name())
		}
	}
	if err != nil {
		return fmt.Errorf("%w, and it cannot be saved elsewhere: %w", reason, exit.WithoutPath(err))
	}
	return fmt.Errorf("%w; what was to be written is in %s", reason, file.Name())
}

// WriteSynced writes data to a file, syncs it to the disk and closes it.
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

// Replace writes a file at a path of the file system. At any time, it is there as it was or as it is to be.
func Replace(path string, data []byte, mode fs.FileMode) error {
	temp, err := os.CreateTemp(filepath.Dir(path), ".runteam-*")
	if err != nil {
		return err
	}
	if err = temp.Chmod(mode); err == nil {
		err = WriteSynced(temp, data)
	} else {
		_ = temp.Close()
	}
	if err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		_ = os.Remove(temp.Name())
	}
	return err
}

var errTaken = errors.New("another file was created there while the command ran, and is left as it is")

// renameNew renames a file in a folder without replacing another one, even one created meanwhile.
func renameNew(root *os.Root, from, to string) error {
	err := root.Link(from, to)
	if err == nil {
		return root.Remove(from)
	}
	if _, at := root.Lstat(to); at == nil {
		return errTaken
	}
	return root.Rename(from, to) // a file system without links
}

// A LazyOutput is an output that is created by the first write, so that a run that never starts
// replaces nothing.
type LazyOutput struct {
	*Output
	File *os.File
}

// Write creates the file if it is the first call, and writes to it.
func (f *LazyOutput) Write(p []byte) (int, error) {
	if f.File == nil {
		var err error
		if f.File, err = f.create(); err != nil {
			return 0, exit.WithoutPath(err)
		}
	}
	n, err := f.File.Write(p)
	return n, exit.WithoutPath(err) // the file knows only its first name
}

// create creates the empty file under its name. It replaces the file that Write would replace.
func (f *Output) create() (*os.File, error) {
	root, err := f.open()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, temp, err := createTemp(root)
	if err != nil {
		return nil, err
	}
	if err := f.moveIn(root, temp); err != nil {
		_ = file.Close()
		_ = root.Remove(temp)
		return nil, err
	}
	return file, nil
}

// Sync writes the file to the disk.
func (f *LazyOutput) Sync() error {
	if f.File == nil {
		return nil
	}
	return exit.WithoutPath(f.File.Sync())
}

// Close closes the file if it was created.
func (f *LazyOutput) Close() error {
	if f.File == nil {
		return nil
	}
	return exit.WithoutPath(f.File.Close())
}
