package workspace

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// OpenFile opens a regular file or a folder of a workspace, as [os.Root.OpenFile] does. It never
// waits for the other end of a named pipe: a program that still runs in the workspace can put one
// in place of a file whose type was checked before.
func OpenFile(root *os.Root, name string, flag int, perm fs.FileMode) (*os.File, fs.FileInfo, error) {
	f, err := root.OpenFile(name, flag|syscall.O_NONBLOCK, perm)
	if err != nil {
		return nil, nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		err = &fs.PathError{Op: "open", Path: name, Err: errors.New("not a regular file")}
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, info, nil
}

// FS returns the files of a workspace, opened with [OpenFile].
func FS(root *os.Root) fs.FS { return files{root} }

type files struct{ root *os.Root }

func (f files) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	file, _, err := OpenFile(f.root, name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	return file, nil
}
