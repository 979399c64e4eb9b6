package journal

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/runteam/runteam/internal/workdir"
	"github.com/stretchr/testify/require"
)

func names(t *testing.T, folder string) []string {
	t.Helper()
	list := []string{}
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range entries {
		list = append(list, e.Name())
	}
	return list
}

func TestDigests(t *testing.T) {
	t.Parallel()
	d := newDigester(someKey(1))
	require.Equal(t, d.mac("result", []byte("text")), newDigester(someKey(1)).mac("result", []byte("text")))
	for name, other := range map[string][32]byte{
		"another text":  d.mac("result", []byte("texts")),
		"another kind":  d.mac("prompt", []byte("text")),
		"moved letters": d.mac("resultt", []byte("ext")),
		"another key":   newDigester(someKey(2)).mac("result", []byte("text")),
		"no key":        sha256.Sum256([]byte("text")),
	} {
		require.NotEqual(t, d.mac("result", []byte("text")), other, name)
	}
}

func TestDigesterKeepsItsKey(t *testing.T) {
	t.Parallel()
	key := someKey(1)
	d := newDigester(key)
	clear(key)
	require.Equal(t, newDigester(someKey(1)).mac("k", nil), d.mac("k", nil))
}

func TestKeyFileIsMadeOnce(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db.key")
	made, err := loadDigests("", path, bytes.NewReader(someKey(7)), true)
	require.NoError(t, err)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, hex.EncodeToString(someKey(7))+"\n", string(text))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.Equal(t, fs.FileMode(0o600), info.Mode())
	require.Equal(t, []string{"runs.db.key"}, names(t, filepath.Dir(path)))

	for _, create := range []bool{true, false} {
		again, err := loadDigests("", path, nil, create)
		require.NoError(t, err)
		require.Equal(t, made.mac("k", []byte("x")), again.mac("k", []byte("x")))
	}
}

// TestSecondProcessUsesTheExistingKey makes another process's file appear
// after this one found none.
func TestSecondProcessUsesTheExistingKey(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db.key")
	var first *digester
	second, err := loadDigests("", path, readerFunc(func(p []byte) (int, error) {
		var err error
		first, err = loadDigests("", path, bytes.NewReader(someKey(1)), true)
		return copy(p, someKey(2)), err
	}), true)
	require.NoError(t, err)
	require.Equal(t, macLine(newDigester(someKey(1))), macLine(first))
	require.Equal(t, macLine(first), macLine(second))
	require.Equal(t, []string{"runs.db.key"}, names(t, filepath.Dir(path)))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

func TestMissingKeyFileIsNotCreatedNextToRuns(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db.key")
	_, err := loadDigests("", path, rand.Reader, false)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "the key file "+path+" is missing: ")
	require.ErrorContains(t, err, "Restore the file from a backup")

	folder := filepath.Join(t.TempDir(), "none")
	_, err = loadDigests("", filepath.Join(folder, "x.db.key"), rand.Reader, true)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.ErrorContains(t, err, "the folder "+folder+" does not exist: create it, or name another file")
	require.Empty(t, names(t, filepath.Dir(path)))
}

func TestInvalidKeyFileIsRefused(t *testing.T) {
	t.Parallel()
	good := strings.Repeat("ab", 32) + "\n"
	for name, tt := range map[string]struct {
		text string
		mode fs.FileMode
		want string
	}{
		"others can read it": {good, 0o644, "has mode 0644"},
		"its group can":      {good, 0o640, "`chmod 600`"},
		"it can be run":      {good, 0o700, "has mode 0700"},
		"empty":              {"", 0o600, "64 hex digits and a line feed"},
		"a line feed":        {"\n", 0o600, "64 hex digits and a line feed"},
		"cut":                {good[:40], 0o600, "restore it from a backup"},
		"no line feed":       {good[:64], 0o600, "64 hex digits and a line feed"},
		"longer":             {good + "\n", 0o600, "64 hex digits and a line feed"},
		"no hex":             {"x" + good[1:], 0o600, "64 hex digits and a line feed"},
	} {
		path := filepath.Join(t.TempDir(), "runs.db.key")
		require.NoError(t, os.WriteFile(path, []byte(tt.text), tt.mode))
		require.NoError(t, os.Chmod(path, tt.mode))
		_, err := loadDigests("", path, rand.Reader, true)
		require.ErrorContains(t, err, tt.want, name)
		require.ErrorContains(t, err, path, name)
		require.NotContains(t, err.Error(), "abab", name)
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Equal(t, tt.text, string(text), "%s: it stays as it is", name)
	}
	folder := t.TempDir()
	_, err := loadDigests("", folder, rand.Reader, true)
	require.ErrorContains(t, err, "is not a regular file")
}

func TestKeyFileMayBeReadOnly(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db.key")
	require.NoError(t, os.WriteFile(path, []byte(strings.Repeat("ab", 32)+"\n"), 0o400))
	d, err := loadDigests("", path, nil, false)
	require.NoError(t, err)
	require.Equal(t, newDigester(bytes.Repeat([]byte{0xab}, 32)).mac("k", nil), d.mac("k", nil))
}

func TestKeyFileThatCannotBeMadeLeavesNothing(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	_, err := loadDigests("", filepath.Join(folder, "runs.db.key"), strings.NewReader("short"), true)
	require.ErrorContains(t, err, "read randomness")
	require.Empty(t, names(t, folder))

	_, err = loadDigests("", filepath.Join(folder, "absent", "runs.db.key"), rand.Reader, true)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.Empty(t, names(t, folder))

	require.NoError(t, os.Symlink("nowhere", filepath.Join(folder, "link")))
	_, err = loadDigests("", filepath.Join(folder, "link"), rand.Reader, true)
	require.Error(t, err)
	require.Equal(t, []string{"link"}, names(t, folder))
}

// TestProcessesThatBeginAtOnceGetOneKey starts processes of this test that all make
// the key file as soon as they are released, and so do some goroutines.
func TestProcessesThatBeginAtOnceGetOneKey(t *testing.T) {
	t.Parallel()
	const variable = "RUNTEAM_TEST_KEY_FILE"
	if path := os.Getenv(variable); path != "" {
		_, err := os.Stdin.Read(make([]byte, 1)) // until it is closed
		require.Error(t, err)
		printMac(t, path)
		return
	}
	path := filepath.Join(t.TempDir(), "runs.db.key")
	var children sync.WaitGroup
	outputs := make([]bytes.Buffer, 6)
	wait, start, err := os.Pipe()
	require.NoError(t, err)
	for i := range outputs {
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
		child.Env = append(os.Environ(), variable+"="+path)
		child.Stdin, child.Stdout = wait, &outputs[i]
		require.NoError(t, child.Start())
		children.Go(func() { _ = child.Wait() })
	}
	require.NoError(t, wait.Close())
	require.NoError(t, start.Close())
	macs := make([]string, 6)
	for i := range macs {
		children.Go(func() {
			if d, err := loadDigests("", path, rand.Reader, true); err == nil {
				macs[i] = macLine(d)
			}
		})
	}
	children.Wait()
	d, err := loadDigests("", path, nil, false)
	require.NoError(t, err)
	for i := range macs {
		require.Equal(t, macLine(d), macs[i])
		require.Contains(t, outputs[i].String(), macLine(d))
	}
	require.Equal(t, []string{"runs.db.key"}, names(t, filepath.Dir(path)))
}

func printMac(t *testing.T, path string) {
	t.Helper()
	d, err := loadDigests("", path, rand.Reader, true)
	require.NoError(t, err)
	_, err = os.Stdout.WriteString(macLine(d) + "\n")
	require.NoError(t, err)
}

// macLine distinguishes keys.
func macLine(d *digester) string {
	sum := d.mac("test", []byte("text"))
	return "mac " + hex.EncodeToString(sum[:])
}

// loadDigests returns what makes digests with the key in a file.
func loadDigests(dir workdir.Dir, path string, random io.Reader, create bool) (*digester, error) {
	key, err := loadDigestKey(dir, path, random, create)
	if err != nil {
		return nil, err
	}
	return newDigester(key), nil
}
