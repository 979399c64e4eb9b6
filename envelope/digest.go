package envelope

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"sync"
	"time"
)

// version opens what is hashed, so that a later layout cannot be mistaken for this one.
const version = "runteam/envelope/1"

// truncatedVersion opens what is hashed of a truncated answer, so that the digest
// covers the mark and the digests of all other envelopes stay as they were.
const truncatedVersion = "runteam/envelope/1/truncated"

// buffers holds the scratch space of digests, so that hashing allocates nothing.
var buffers = sync.Pool{New: func() any { return new(make([]byte, 0, 4096)) }}

// sum returns the SHA-256 of the header and both parts of the payload, in hex. Every
// field has a length before it, so no two envelopes share a byte string.
func (e *Envelope) sum() string {
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
	d := sha256.Sum256(b)
	if cap(b) <= 1<<20 { // what one giant payload needed is not kept for ever
		*scratch = b
		buffers.Put(scratch)
	}
	return hex.EncodeToString(d[:])
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
