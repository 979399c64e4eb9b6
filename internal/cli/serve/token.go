package serve

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
)

// envToken is the environment variable with the token of programs.
const envToken = "RUNTEAM_INSPECT_TOKEN"

// minToken is the least number of characters of a token.
const minToken = 16

// isToken matches the content of a token file. Other files are not replaced.
var isToken = regexp.MustCompile(`^[A-Za-z0-9_-]{16,256}\n?$`)

// errInUse reports the token file of another server that still works.
var errInUse = errors.New("another runteam serve that still works uses this file; name another file")

// programToken returns the token of programs: that of the environment, else a new one if they get one in a
// file, else none.
func programToken(con *console.Console, inFile bool) (string, error) {
	token, _ := con.LookupEnv(envToken)
	switch {
	case token != "" && len(token) < minToken:
		return "", exit.Usagef("%s: a token has %d or more characters", envToken, minToken)
	case token == "" && inFile:
		return rand.Text(), nil
	}
	return token, nil
}

// A tokenFile is the file in which programs find the token of a server. The server locks it while it
// works, so that another one does not replace it.
type tokenFile struct {
	path   string
	locked *os.File // nil where files are not locked
}

// writeToken writes the token of a server that listens into the file at path. The file appears whole. The
// caller closes it at the end of the server.
func writeToken(path, token string) (tokenFile, error) {
	old, err := lockOld(path)
	if err != nil {
		return tokenFile{}, badFile(path, err)
	}
	if old != nil {
		defer old.Close() //nolint:errcheck // only read
	}
	if err := checkToken(path); err != nil {
		return tokenFile{}, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".runteam-token-*") // with mode 0600
	if err != nil {
		return tokenFile{}, badFile(path, err)
	}
	held, err := lockNew(f.Name())
	if err == nil {
		err = files.WriteSynced(f, []byte(token+"\n"))
	} else {
		_ = f.Close()
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		t := tokenFile{path, held}
		t.close()
		return tokenFile{}, badFile(path, err)
	}
	return tokenFile{path, held}, nil
}

// badFile returns the error about a token file that cannot be read or written.
func badFile(path string, err error) error {
	if errors.Is(err, errInUse) {
		return exit.FileError("--token-file "+path, err)
	}
	return exit.Errorf(exit.KindIO, "--token-file %s: %w; name a file in a folder that exists and that you may write to", path, exit.WithoutPath(err))
}

// close lets another server replace the file.
func (t *tokenFile) close() {
	if t.locked != nil {
		_ = t.locked.Close() // it was only locked
	}
}

// checkToken refuses to replace a file that has no token.
func checkToken(path string) error {
	switch old, err := os.ReadFile(path); {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := os.Stat(filepath.Dir(path)); err != nil {
			return badFile(path, err)
		}
	case err != nil:
		return badFile(path, err)
	case !isToken.Match(old):
		return exit.Errorf(exit.KindIO, "--token-file %s: the file exists and has no token; name another file", path)
	}
	return nil
}
