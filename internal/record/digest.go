package record

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// A Digest is a SHA-256 that is written in hex.
type Digest [sha256.Size]byte

// String returns the digest in hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the digest in hex.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads 64 hex digits.
func (d *Digest) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) == len(d) {
		if _, err := hex.Decode(d[:], text); err == nil {
			return nil
		}
	}
	return fmt.Errorf("a digest has %d hex digits", 2*len(d))
}

// DigestOf returns the digest that is written in hex, or the zero value if none is.
func DigestOf(text string) (d Digest) {
	if d.UnmarshalText([]byte(text)) != nil {
		return Digest{}
	}
	return d
}
