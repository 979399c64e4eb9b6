package envelope

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"sync"
	"time"
)

// A Digest is the SHA-256 of an envelope's versioned header and payload.
type Digest [sha256.Size]byte

// String returns the digest in hex.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// MarshalText writes the digest in hex.
func (d Digest) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalText reads 64 hex digits.
func (d *Digest) UnmarshalText(text []byte) error {
	if hex.DecodedLen(len(text)) != len(d) {
		return fmt.Errorf("%w: a digest has %d hex digits", ErrInvalid, 2*len(d))
	}
	if _, err := hex.Decode(d[:], text); err != nil {
		return fmt.Errorf("%w: a digest has %d hex digits", ErrInvalid, 2*len(d))
	}
	return nil
}

// version opens what is hashed, so that a later layout cannot be mistaken for this one.
const version = "runteam/envelope/1"

// truncatedVersion opens what is hashed of a truncated answer, so that the digest
// covers the mark and the digests of all other envelopes stay as they were.
const truncatedVersion = "runteam/envelope/1/truncated"

// buffers holds the scratch space of digests, so that hashing allocates nothing.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, 4096)) }}

// sum hashes the header and both parts of the payload. Every field has a
// length before it, so no two envelopes share a byte string.
func (e *Envelope) sum() Digest {
	scratch := buffers.Get().(*[]byte)
	h := &e.header
	opening := version
	if h.Truncated {
		opening = truncatedVersion
	}
	b := appendString((*scratch)[:0], opening)
	b = appendString(b, string(h.ID))
	b = appendString(b, h.Producer)
	b = appendString(b, string(h.Task))
	b = appendString(b, h.Run)
	b = append(b, byte(h.Classification), byte(h.Trust))
	b = appendTime(b, h.CreatedAt)
	b = appendTime(b, h.ExpiresAt)
	b = binary.BigEndian.AppendUint64(b, uint64(h.Hops))
	b = appendStrings(b, h.DerivedFrom)
	b = appendStrings(b, h.Tags)
	b = appendString(b, *e.text)
	b = appendString(b, *e.structured)
	d := Digest(sha256.Sum256(b))
	if cap(b) <= 1<<20 { // what one giant payload needed is not kept for ever
		*scratch = b
		buffers.Put(scratch)
	}
	return d
}

func appendString[S ~string](b []byte, s S) []byte {
	return append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...)
}

func appendStrings[S ~string](b []byte, list []S) []byte {
	b = binary.BigEndian.AppendUint64(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

// appendTime writes the instant to the nanosecond, and one byte that tells zero from the epoch.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, 0)
	}
	b = binary.BigEndian.AppendUint64(append(b, 1), uint64(t.Unix()))
	return binary.BigEndian.AppendUint32(b, uint32(t.Nanosecond()))
}
