// Package workdir opens files by paths that start from a given folder instead of the working
// directory of the process.
//
//	dir := workdir.Dir("/srv/claims")
//	f, err := dir.Open("team.yaml") // opens /srv/claims/team.yaml; an error names team.yaml
//
// A relative path means what it would mean if the process worked in that folder: links on the way are
// followed before "..". Errors name paths as the caller wrote them.
package workdir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// A Dir is a working directory: an absolute path. The zero value is the working directory of the
// process.
type Dir string

// Path returns where a file is. An absolute path is returned as it is, and so is every path for the
// zero Dir.
func (d Dir) Path(name string) string {
	if d == "" || name == "" || filepath.VolumeName(name) != "" || os.IsPathSeparator(name[0]) {
		return name
	}
	return string(d) + string(filepath.Separator) + name // not joined, which would drop a link before ".."
}

// Getwd returns the absolute path of the folder.
func (d Dir) Getwd() (string, error) {
	if d == "" {
		return os.Getwd()
	}
	return string(d), nil
}

// Abs is [filepath.Abs] in the folder.
func (d Dir) Abs(name string) (string, error) {
	if d == "" || filepath.IsAbs(name) {
		return filepath.Abs(name)
	}
	return filepath.Join(string(d), name), nil
}

// Open is [os.Open] in the folder.
func (d Dir) Open(name string) (*os.File, error) {
	f, err := os.Open(d.Path(name))
	return f, d.asWritten(err, name)
}

// OpenFile is [os.OpenFile] in the folder.
func (d Dir) OpenFile(name string, flag int, perm fs.FileMode) (*os.File, error) {
	f, err := os.OpenFile(d.Path(name), flag, perm)
	return f, d.asWritten(err, name)
}

// OpenRoot is [os.OpenRoot] in the folder.
func (d Dir) OpenRoot(name string) (*os.Root, error) {
	root, err := os.OpenRoot(d.Path(name))
	return root, d.asWritten(err, name)
}

// Stat is [os.Stat] in the folder.
func (d Dir) Stat(name string) (fs.FileInfo, error) {
	info, err := os.Stat(d.Path(name))
	return info, d.asWritten(err, name)
}

// Lstat is [os.Lstat] in the folder.
func (d Dir) Lstat(name string) (fs.FileInfo, error) {
	info, err := os.Lstat(d.Path(name))
	return info, d.asWritten(err, name)
}

// IsDir reports whether a folder exists.
func (d Dir) IsDir(name string) bool {
	info, err := os.Stat(d.Path(name))
	return err == nil && info.IsDir()
}

// MkdirAll is [os.MkdirAll] in the folder.
func (d Dir) MkdirAll(name string, perm fs.FileMode) error {
	return d.asWritten(os.MkdirAll(d.Path(name), perm), name)
}

// Remove is [os.Remove] in the folder.
func (d Dir) Remove(name string) error { return d.asWritten(os.Remove(d.Path(name)), name) }

// EvalSymlinks is [filepath.EvalSymlinks] in the folder.
func (d Dir) EvalSymlinks(name string) (string, error) {
	to, err := filepath.EvalSymlinks(d.Path(name))
	if err != nil || d.Path(name) == name {
		return to, d.asWritten(err, name)
	}
	if here, err := filepath.EvalSymlinks(string(d)); err == nil {
		if short, err := filepath.Rel(here, to); err == nil && filepath.IsLocal(short) {
			return short, nil
		}
	}
	return to, nil
}

// asWritten returns the error of a file operation without the folder in its path.
func (d Dir) asWritten(err error, name string) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok && d.Path(name) != name {
		at.Path = strings.TrimPrefix(at.Path, string(d)+string(filepath.Separator))
	}
	return err
}
