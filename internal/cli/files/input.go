package files

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/workdir"
)

// CheckReadable is [specfile.CheckReadable] with advice in its error.
func CheckReadable(dir workdir.Dir, path string) error {
	if err := specfile.CheckReadable(dir, path); err != nil {
		return fmt.Errorf("%w: name a file, or use <(command) of your shell", err)
	}
	return nil
}

// OpenInput opens a file that an argument names; - is standard input. The file may be a pipe, so
// opening and reading end when the context does. A read in progress is then abandoned.
func OpenInput(ctx context.Context, stdin io.Reader, dir workdir.Dir, path string) (io.ReadCloser, error) {
	if path == "-" {
		return contextReader{ctx, io.NopCloser(stdin)}, nil
	}
	file, err := Await(ctx, func() (*os.File, error) { return dir.Open(path) })
	return contextReader{ctx, file}, exit.WithoutPath(err)
}

// contextReader reads until its context ends.
type contextReader struct {
	ctx context.Context //nolint:containedctx // the reader lives for one call
	io.ReadCloser
}

func (r contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	text, err := Await(r.ctx, func() ([]byte, error) {
		text := make([]byte, len(p)) // not p, which belongs to the caller again once the context has ended
		n, err := r.ReadCloser.Read(text)
		return text[:n], exit.WithoutPath(err)
	})
	return copy(p, text), err
}

// maxKeyFile is the largest size of a file with a key, in bytes.
const maxKeyFile = 4 << 10

// ReadKey reads the file with a key that a flag names. It must be a regular file, or a link to
// one, that only its owner can read.
func ReadKey(dir workdir.Dir, flag, path string) (string, error) {
	bad := func(err error) error {
		return exit.FileError("--"+flag+" "+path, err)
	}
	at, err := dir.Stat(path) // opening a pipe would wait for its other end
	if err != nil {
		return "", bad(err)
	}
	if !at.Mode().IsRegular() {
		return "", bad(errors.New("it is not a regular file: write the key to a file of its own"))
	}
	if mode := at.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" { // Windows has no modes
		return "", bad(fmt.Errorf("its mode %04o lets other users read or change it: `chmod 600` it", mode))
	}
	file, err := dir.Open(path)
	if err != nil {
		return "", bad(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxKeyFile+1))
	if err != nil {
		return "", bad(err)
	}
	if len(text) > maxKeyFile {
		return "", bad(fmt.Errorf("it is larger than %d bytes: name a file that holds a key and nothing else", maxKeyFile))
	}
	return string(text), nil
}

// SamePath reports whether two paths name the same file, which need not exist.
func SamePath(dir workdir.Dir, a, b string) bool {
	if filepath.Base(a) != filepath.Base(b) {
		return false
	}
	one, err := dir.Stat(filepath.Dir(a))
	if err != nil {
		return false
	}
	other, err := dir.Stat(filepath.Dir(b))
	return err == nil && os.SameFile(one, other)
}

// IsFile reports whether an argument that may be a file or a run is a file.
func IsFile(dir workdir.Dir, arg string) bool {
	if arg == "-" {
		return true
	}
	_, err := dir.Lstat(arg)
	return err == nil
}
