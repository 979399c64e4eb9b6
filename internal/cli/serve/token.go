package serve

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/workdir"
)

// minToken is the least number of characters of a token.
const minToken = 16

// isToken matches the content of a token file. Other files are not replaced.
var isToken = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9_-]{16,256}\n?$`)
})

// errInUse reports the token file of another server that still works.
var errInUse = errors.New("another runteam serve that still works uses this file; name another file")

// programToken returns the token of programs: that of the environment, else a new one if they get one in a
// file, else none.
func programToken(con *console.Console, inFile bool) (string, error) {
	token, _ := con.LookupEnv(inspector.EnvToken)
	switch {
	case token != "" && len(token) < minToken:
		return "", exit.Usagef("%s: a token has %d or more characters", inspector.EnvToken, minToken)
	case token == "" && inFile:
		return rand.Text(), nil
	}
	return token, nil
}

// callerOf returns what the journal calls the sender of a token: a name from which nobody can tell the token.
func callerOf(j *journal.Journal, token string) string {
	_, digest, _ := strings.Cut(j.Masked("the caller with the token "+token), ":")
	return "token " + digest[:8]
}

// writeToken writes the token of a server that listens into a file, whose path starts from dir and which appears whole. The server
// keeps the returned file open while it works: it is locked, so that another server does not replace it. It is
// nil where files are not locked.
func writeToken(dir workdir.Dir, path, token string) (locked *os.File, err error) {
	at := dir.Path(path)
	old, err := lockOld(at)
	if err != nil {
		return nil, badFile(path, err)
	}
	defer unlock(old)
	if err := checkToken(dir, path); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(at), ".runteam-token-*") // with mode 0600
	if err != nil {
		return nil, badFile(path, err)
	}
	locked, err = lockNew(f.Name())
	if err == nil {
		err = files.WriteSynced(f, []byte(token+"\n"))
	} else {
		_ = f.Close()
	}
	if err == nil {
		err = os.Rename(f.Name(), at)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		unlock(locked)
		return nil, badFile(path, err)
	}
	return locked, nil
}

// badFile returns the error about a token file that cannot be read or written.
func badFile(path string, err error) error {
	if errors.Is(err, errInUse) {
		return exit.FileError("--token-file "+path, err)
	}
	return exit.Errorf(exit.KindIO, "--token-file %s: %w; name a file in a folder that exists and that you may write to", path, exit.WithoutPath(err))
}

// checkToken refuses to replace a file that has no token.
func checkToken(dir workdir.Dir, path string) error {
	switch old, err := os.ReadFile(dir.Path(path)); {
	case errors.Is(err, fs.ErrNotExist):
		if _, err := dir.Stat(filepath.Dir(path)); err != nil {
			return badFile(path, err)
		}
	case err != nil:
		return badFile(path, err)
	case !isToken().Match(old):
		return exit.Errorf(exit.KindIO, "--token-file %s: the file exists and has no token; name another file", path)
	}
	return nil
}
