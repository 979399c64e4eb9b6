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
)

// KeyBytes is how many bytes a journal key has.
const KeyBytes = 32

// ParseKey reads a journal key as people give it: 64 hex digits, or the base64
// of 32 bytes in 44 characters. One line feed may stand at its end. The error
// says how to make a key, and nothing of the text.
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

// ErrNoKey reports that something is encrypted under a key that was not given.
// A [*KeyError] wraps it.
var ErrNoKey = errors.New("encrypted under a key that was not given")

// ErrDamaged reports that what was encrypted is not what stands there now, or
// that it was written for another place.
var ErrDamaged = errors.New("damaged: what is encrypted here was altered, or belongs elsewhere")

// ErrAltered reports that a text that was kept as it is does not stand there as
// it was, or that it was written for another place.
var ErrAltered = errors.New("altered: it is not the text whose digest was stored with it, or belongs elsewhere")

// A KeyError says under which key something is encrypted, and which was given.
// Both are ids, which tell keys apart and say nothing of them.
type KeyError struct {
	Want string
	Have string // empty if no key was given
}

func (e *KeyError) Error() string {
	have := "no key was given"
	if e.Have != "" {
		have = "the key given is " + e.Have
	}
	return fmt.Sprintf(underKey+"%s, and %s: give that key with --journal-key FILE or RUNTEAM_JOURNAL_KEY", e.Want, have)
}

func (e *KeyError) Unwrap() error { return ErrNoKey }

// underKey begins the text of a [KeyError].
const underKey = "encrypted under the key "

// Locked reports whether something of which Missing says why it cannot be had, as
// an [record.AgentCall] and a [File] do, can be had with another key: it is
// encrypted under one that was not given.
func Locked(missing string) bool { return strings.HasPrefix(missing, underKey) }

// sealedText is a text that is encrypted, as a line of the journal has it.
type sealedText struct {
	Key   string `json:"key"` // the id of the key
	Nonce []byte `json:"nonce"`
	Data  []byte `json:"data"` // the ciphertext, with the tag at its end

	// Padded says that the text was padded before it was encrypted. The tag covers it.
	Padded bool `json:"padded,omitempty"`
}

// A sealer encrypts under one key, with AES-256-GCM and a nonce of its own for
// each text. It is safe for concurrent use if its source of randomness is. A
// nil sealer has no key: it opens nothing, and says so.
type sealer struct {
	aead   cipher.AEAD
	id     string
	random io.Reader
}

// checkKey returns why something is no key; nil is none, and right.
func checkKey(key []byte) error {
	if key == nil || len(key) == KeyBytes {
		return nil
	}
	return fmt.Errorf("a journal key has %d bytes and this one %d: make one with `openssl rand -hex 32`", KeyBytes, len(key))
}

// newSealer returns a sealer under a key of [KeyBytes] bytes; a nil key gives
// nil. Nonces are read from random, which is crypto/rand's but in tests: a
// nonce that comes twice under one key gives both texts away.
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

// keyID is what stands beside a ciphertext to find its key by.
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

// seal encrypts plain. Only who names the same aad opens it again. If it is padded,
// the ciphertext tells the class of its length alone.
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

// open returns what was sealed with the same aad, or a [*KeyError], or [ErrDamaged].
func (s *sealer) open(t sealedText, aad []byte) ([]byte, error) {
	if s == nil {
		return nil, &KeyError{Want: t.Key}
	}
	if t.Key != s.id {
		return nil, &KeyError{Want: t.Key, Have: s.id}
	}
	if len(t.Nonce) != s.aead.NonceSize() { // which Open panics at
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

// additional is what the tag covers beside the ciphertext.
func additional(aad []byte, padded bool) []byte {
	if padded {
		return joinLengths("runteam/journal/2 sealed and padded", string(aad))
	}
	return joinLengths("runteam/journal/1 sealed", string(aad))
}
