package journal

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/runteam/runteam/internal/bytesize"
)

// KeyBytes is how many bytes a journal key has.
const KeyBytes = 32

// ParseKey parses a journal key: 64 hex digits, or the base64 of 32 bytes in 44 characters,
// with an optional line feed. The error does not quote the text.
func ParseKey(text []byte) ([]byte, error) {
	text = bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r"))
	var key []byte
	var err error
	switch len(text) {
	case hex.EncodedLen(KeyBytes):
		key, err = hex.AppendDecode(nil, text)
	case base64.StdEncoding.EncodedLen(KeyBytes):
		key, err = base64.StdEncoding.Strict().AppendDecode(nil, text)
	}
	if err != nil || len(key) != KeyBytes {
		return nil, fmt.Errorf("a journal key is 64 hex digits, or the base64 of 32 bytes in 44 characters; this is neither, with %d bytes: make one with `openssl rand -hex 32`", len(text))
	}
	return key, nil
}

// ErrNoKey reports a value that is encrypted under a key that was not given. A [*KeyError]
// wraps it.
var ErrNoKey = errors.New("encrypted under a key that was not given")

// ErrDamaged reports a ciphertext that was altered or moved.
var ErrDamaged = errors.New("damaged: the ciphertext was altered, or belongs elsewhere")

// ErrAltered reports a text in the clear that was altered or moved.
var ErrAltered = errors.New("altered: it is not the text whose digest was stored with it, or belongs elsewhere")

// A KeyError names the key under which a value is encrypted, and the key that was given, by
// IDs that reveal nothing of the keys.
type KeyError struct {
	Want string
	Have string // empty if no key was given
}

func (e *KeyError) Error() string {
	have := "no key was given"
	if e.Have != "" {
		have = "the key given is " + e.Have
	}
	return fmt.Sprintf(underKey+"%s, and %s", e.Want, have)
}

func (e *KeyError) Unwrap() error { return ErrNoKey }

// underKey is the prefix of the text of a [KeyError].
const underKey = "encrypted under the key "

// Locked reports whether a value can be read with another key. Missing is the field of that
// name of a [record.AgentCall] or a [File].
func Locked(missing string) bool { return strings.HasPrefix(missing, underKey) }

// sealedText is the stored form of an encrypted text.
type sealedText struct {
	Key   string `json:"key"` // its ID
	Nonce []byte `json:"nonce"`
	Data  []byte `json:"data"` // the ciphertext and the tag

	// Padded reports that the text was padded before it was encrypted. The tag covers it.
	Padded bool `json:"padded,omitempty"`
}

// A sealer encrypts under one key, with AES-256-GCM and a new nonce for each text. It is
// safe for concurrent use if its source of randomness is. A nil sealer has no key, and
// returns errors.
type sealer struct {
	aead   cipher.AEAD
	id     string
	random io.Reader
}

// checkKey checks the length of a key; nil is no key, and valid.
func checkKey(key []byte) error {
	if key == nil || len(key) == KeyBytes {
		return nil
	}
	return fmt.Errorf("Key has %s; use %d: `openssl rand -hex 32` writes a key that ParseKey reads", bytesize.Text(len(key)), KeyBytes)
}

// newSealer returns a sealer for a key of [KeyBytes] bytes; nil for a nil key. It reads
// nonces from random, which must be crypto/rand except in tests: a nonce that is used twice
// under one key reveals both texts.
func newSealer(key []byte, random io.Reader) (*sealer, error) {
	if key == nil {
		return nil, nil
	}
	if err := checkKey(key); err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		return nil, err
	}
	return &sealer{aead: aead, id: keyID(key), random: random}, nil
}

// keyID returns the ID of a key, which is stored with ciphertexts.
func keyID(key []byte) string {
	sum := sha256.Sum256(append(joinLengths("runteam/journal/1 id of a key"), key...))
	return hex.EncodeToString(sum[:8])
}

// joinLengths joins parts, each behind its length, so that no other parts give the same
// bytes. A ciphertext is bound to the run, the session and the kind of what is encrypted
// by such bytes.
func joinLengths(parts ...string) []byte {
	size := 0
	for _, part := range parts {
		size += binary.MaxVarintLen32 + len(part)
	}
	b := make([]byte, 0, size)
	for _, part := range parts {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	return b
}

// seal encrypts plain. Opening it requires the same additional data. If it is padded, the
// ciphertext reveals only the class of its length.
func (s *sealer) seal(plain, aad []byte, padded bool) (sealedText, error) {
	if s == nil {
		return sealedText{}, errors.New("encrypt: there is no journal key")
	}
	nonce := make([]byte, s.aead.NonceSize())
	if _, err := io.ReadFull(s.random, nonce); err != nil {
		return sealedText{}, fmt.Errorf("encrypt: read randomness: %w", err)
	}
	if padded {
		plain = pad(plain)
	}
	return sealedText{Key: s.id, Nonce: nonce, Data: s.aead.Seal(nil, nonce, plain, additional(aad, padded)), Padded: padded}, nil
}

// open decrypts a text. Its errors are a [*KeyError] and [ErrDamaged].
func (s *sealer) open(t sealedText, aad []byte) ([]byte, error) {
	if s == nil {
		return nil, &KeyError{Want: t.Key}
	}
	if t.Key != s.id {
		return nil, &KeyError{Want: t.Key, Have: s.id}
	}
	if len(t.Nonce) != s.aead.NonceSize() { // Open would panic
		return nil, ErrDamaged
	}
	plain, err := s.aead.Open(nil, t.Nonce, t.Data, additional(aad, t.Padded))
	if err != nil {
		return nil, ErrDamaged
	}
	if t.Padded {
		return unpad(plain)
	}
	return plain, nil
}

// additional returns the additional data that the tag covers.
func additional(aad []byte, padded bool) []byte {
	if padded {
		return joinLengths("runteam/journal/2 sealed and padded", string(aad))
	}
	return joinLengths("runteam/journal/1 sealed", string(aad))
}
