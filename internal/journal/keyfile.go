package journal

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/runteam/runteam/internal/workdir"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// loadDigestKey reads the key file of a journal. If the file does not exist and create is
// set, it is created: of several processes that start at once, one creates it and all use it.
func loadDigestKey(dir workdir.Dir, path string, random io.Reader, create bool) (key []byte, err error) {
	key, err = readKeyFile(dir, path)
	if create && errors.Is(err, fs.ErrNotExist) {
		if err = makeKeyFile(dir, path, random); err == nil || errors.Is(err, fs.ErrExist) {
			key, err = readKeyFile(dir, path)
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		if folder := filepath.Dir(path); isMissing(dir.Path(folder)) {
			return nil, fmt.Errorf("the folder %s does not exist: create it, or name another file: %w", folder, fs.ErrNotExist)
		}
		return nil, fmt.Errorf("the key file %s is missing: without it the digests in the journal verify nothing, so that no run in it can be resumed or reused. Restore the file from a backup, or move the journal away to begin a new one: %w", path, fs.ErrNotExist)
	}
	return key, err
}

// NewDigestKey returns a new key for the digests of a journal.
func NewDigestKey(random io.Reader) ([]byte, error) {
	key := make([]byte, sha256.Size)
	if _, err := io.ReadFull(random, key); err != nil {
		return nil, fmt.Errorf("read randomness: %w", err)
	}
	return key, nil
}

// ErrKeyMissing reports a database for whose journal no key was given.
var ErrKeyMissing = errors.New("no journal key was given")

// SealDigestKey returns the key of the digests encrypted under the journal key, as a database of several hosts has it.
func SealDigestKey(journalKey, digestKey []byte) ([]byte, error) {
	s, err := newSealer(journalKey, rand.Reader)
	if err != nil {
		return nil, err
	}
	sealed, err := s.seal(digestKey, joinLengths("digest key"), false)
	if err != nil {
		return nil, err
	}
	return json.Marshal(sealed)
}

// OpenDigestKey decrypts what [SealDigestKey] returned. The error says if it was another journal key.
func OpenDigestKey(journalKey, stored []byte) ([]byte, error) {
	s, err := newSealer(journalKey, rand.Reader)
	if err != nil {
		return nil, err
	}
	var sealed sealedText
	if err := json.Unmarshal(stored, &sealed); err != nil {
		return nil, fmt.Errorf("the key of the digests cannot be read: %w", err)
	}
	key, err := s.open(sealed, joinLengths("digest key"))
	if err == nil && len(key) != sha256.Size {
		err = ErrDamaged
	}
	if err != nil {
		return nil, fmt.Errorf("the key of the digests is %w", err)
	}
	return key, nil
}

// isMissing reports whether there is no file or folder with this name.
func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// readKeyFile reads a key from a file that only its owner may read.
func readKeyFile(dir workdir.Dir, path string) ([]byte, error) {
	in, err := openPlain(dir.Path(path))
	if err != nil {
		return nil, unreadable(err)
	}
	defer in.Close() //nolint:errcheck // it is only read
	info, err := in.Stat()
	if err != nil {
		return nil, unreadable(err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("the key file %s is not a regular file: move it away", path)
	}
	if mode := info.Mode().Perm(); mode&^0o600 != 0 && runtime.GOOS != "windows" { // which has no modes
		return nil, fmt.Errorf("the key file %s has mode %04o, so that other users may have read it: `chmod 600` it if they could not", path, mode)
	}
	text, err := io.ReadAll(io.LimitReader(in, 4<<10))
	if err != nil {
		return nil, unreadable(err)
	}
	digits, whole := bytes.CutSuffix(text, []byte("\n"))
	key, err := hex.AppendDecode(nil, digits)
	if err != nil || !whole || len(key) != sha256.Size {
		return nil, fmt.Errorf("the key file %s does not have 64 hex digits and a line feed: restore it from a backup; if the journal has no runs yet, remove both", path)
	}
	return key, nil
}

// makeKeyFile creates the file under another name, makes it durable, and links it to its own
// name if that is free: no process sees it empty, and no file is replaced.
func makeKeyFile(dir workdir.Dir, path string, random io.Reader) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("make the key file %s: %w", path, err)
		}
	}()
	key, err := NewDigestKey(random)
	if err != nil {
		return err
	}
	at := dir.Path(path)
	draft, err := writeDraft(at, append(hex.AppendEncode(nil, key), '\n'))
	if draft != "" {
		defer os.Remove(draft)
	}
	if err != nil {
		return err
	}
	linked := os.Link(draft, at)
	return errors.Join(linked, syncFolder(filepath.Dir(at))) // the process that came first may not have synced yet
}

// writeDraft writes a durable file of mode 0600 next to path and returns its name.
func writeDraft(path string, text []byte) (string, error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // of mode 0600, and O_EXCL
	if err != nil {
		return "", err
	}
	_, err = f.Write(text)
	return f.Name(), errors.Join(err, f.Sync(), f.Close())
}

// syncFolder makes the entries of a folder durable.
func syncFolder(path string) error {
	if runtime.GOOS == "windows" { // where a folder cannot be opened for it
		return nil
	}
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
