package process

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strings"
)

// A ReadableError says why a confined program must not be given a path to read.
type ReadableError struct{ Path, Problem, Hint string }

func (e *ReadableError) Error() string { return e.Path + ": " + e.Problem + "; " + e.Hint }

// privateFiles are the files of a home that hold keys and passwords.
var privateFiles = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".netrc", ".git-credentials", ".pgpass", ".password-store", ".npmrc", ".pypirc", ".vault-token",
	".config/gcloud", ".config/gh", ".local/share/keyrings", ".mozilla",
}

// CheckReadable returns a [*ReadableError] if a confined program must not read a path and everything
// below it: one that is not absolute or does not exist, or that has keys of the user, files of the
// kernel, or workspaces of other tasks.
func CheckReadable(path string) error {
	if !filepath.IsAbs(path) {
		return &ReadableError{path, "the path is relative", "write an absolute path"}
	}
	real, err := filepath.EvalSymlinks(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &ReadableError{path, "it does not exist", "correct the path, or remove it"}
	case err != nil:
		return &ReadableError{path, err.Error(), "correct the path, or remove it"}
	}
	for _, home := range homes() {
		for _, name := range privateFiles {
			if secret := filepath.Join(home, name); Contains(secret, real) || Contains(real, secret) {
				return &ReadableError{path, "it has " + secret + ", which can hold keys", "name the folder of the program that the command needs"}
			}
		}
	}
	for _, system := range []string{"/proc", "/sys", "/dev", "/run"} {
		if (Contains(system, real) || Contains(real, system)) && !strings.HasPrefix(real, "/dev/shm/") { // a folder for temporary files
			return &ReadableError{path, "the kernel and services show there what other programs do", "name the folder of the program that the command needs"}
		}
	}
	if _, err := os.Lstat(filepath.Join(real, ".runteam")); err == nil || strings.Contains(real, "/.runteam") {
		return &ReadableError{path, "it is, has or lies in a folder .runteam, whose journal holds what other agents read", "name the folder of the program that the command needs"}
	}
	for _, secret := range []string{"/etc/shadow", "/etc/ssh", "/etc/ssl/private", os.TempDir(), "/tmp", "/dev/shm"} {
		if Contains(real, secret) {
			return &ReadableError{path, "it has " + secret + ", which is not for every program", "name the folder of the program that the command needs"}
		}
	}
	return nil
}

// homes returns the homes of the user: the one of the environment, and the one of the system, which counts too if the
// environment names another one or none.
func homes() (list []string) {
	if home, err := os.UserHomeDir(); err == nil {
		list = append(list, home)
	}
	if u, err := user.Current(); err == nil && u.HomeDir != "" {
		list = append(list, u.HomeDir)
	}
	return list
}

// Contains reports whether a path is a folder or lies in it. Both are followed through symbolic links
// as far as they exist.
func Contains(folder, path string) bool {
	rel, err := filepath.Rel(followed(folder), followed(path))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// followed returns the absolute path to which symbolic links lead.
func followed(path string) string {
	path, _ = filepath.Abs(path) // without a working directory, nothing relative could be read
	for at := path; ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, strings.TrimPrefix(path, at))
		}
		if at == filepath.Dir(at) {
			return path
		}
	}
}
