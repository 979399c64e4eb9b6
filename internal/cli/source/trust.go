package source

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/workdir"
)

// A TrustStore holds which specs may send which variables where. It is a folder in the user's
// configuration, with one file for each spec and list of variables.
type TrustStore struct{ Folder string }

// A Consent is what the user allowed for one spec.
type Consent struct {
	Spec        string            `json:"spec"` // absolute, links resolved
	Digest      string            `json:"digest"`
	Environment []specfile.EnvUse `json:"environment"`
	Time        time.Time         `json:"time"`
}

// NewTrustStore returns the store of the user.
func NewTrustStore(con *console.Console) (*TrustStore, error) {
	config := con.ConfigDir
	if config == "" {
		var err error
		if config, err = os.UserConfigDir(); err != nil {
			return nil, fmt.Errorf("there is no folder for the user's configuration: %w", err)
		}
	}
	return &TrustStore{filepath.Join(config, "runteam", "trust")}, nil
}

// IsTrusted reports whether the user allowed a spec to send these variables.
func IsTrusted(con *console.Console, path string, uses []specfile.EnvUse) bool {
	if info, err := con.WorkDir.Stat(path); err != nil || !info.Mode().IsRegular() {
		return false // the same path is another pipe the next time
	}
	s, err := NewTrustStore(con)
	if err != nil {
		return false
	}
	at, err := RealPath(con.WorkDir, path)
	if err != nil {
		return false
	}
	want := Consent{Spec: at, Digest: specfile.EnvDigest(uses)}
	c, err := s.read(want.file())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		con.Log.Warn("a stored consent is not used", "file", filepath.Join(s.Folder, want.file()), "err", err)
	}
	return err == nil && c.Spec == want.Spec && c.Digest == want.Digest
}

// RealPath returns the absolute path of a file, with links resolved if the file exists.
func RealPath(dir workdir.Dir, path string) (string, error) {
	at, err := dir.Abs(path)
	if err != nil {
		return "", err
	}
	if to, err := filepath.EvalSymlinks(at); err == nil {
		return to, nil
	}
	return at, nil
}

// file returns the name of the file of a consent.
func (c *Consent) file() string {
	return fmt.Sprintf("%x.json", sha256.Sum256([]byte(c.Spec+"\x00"+c.Digest)))
}

// maxConsent bounds a stored consent, in bytes.
const maxConsent = 1 << 20

// read reads a consent. It fails if another user could have written the file.
func (s *TrustStore) read(name string) (c Consent, err error) {
	path := filepath.Join(s.Folder, name)
	for _, at := range []string{s.Folder, path} {
		info, err := os.Lstat(at)
		if err != nil {
			return c, err
		}
		if at == path && !info.Mode().IsRegular() {
			return c, fmt.Errorf("%s is not a regular file: remove it", at)
		}
		if info.Mode().Perm()&0o022 != 0 {
			return c, fmt.Errorf("%s can be written by other users: run chmod go-w on it", at)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return c, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxConsent))
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

// Write stores a consent atomically.
func (s *TrustStore) Write(c *Consent) error {
	if err := os.MkdirAll(s.Folder, 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	if len(text) >= maxConsent {
		return errors.New("the list of variables is too long")
	}
	return files.Replace(filepath.Join(s.Folder, c.file()), append(text, '\n'), 0o600)
}

// List returns all consents, sorted by spec.
func (s *TrustStore) List() ([]Consent, error) {
	entries, err := os.ReadDir(s.Folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var all []Consent
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		if c, err := s.read(e.Name()); err == nil && c.file() == e.Name() {
			all = append(all, c)
		}
	}
	slices.SortFunc(all, func(a, b Consent) int { return cmp.Or(strings.Compare(a.Spec, b.Spec), a.Time.Compare(b.Time)) })
	return all, err
}

// Revoke removes all consents of a spec and returns how many there were.
func (s *TrustStore) Revoke(path string) (int, error) {
	all, err := s.List()
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range all {
		if all[i].Spec != path {
			continue
		}
		if err := os.Remove(filepath.Join(s.Folder, all[i].file())); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
