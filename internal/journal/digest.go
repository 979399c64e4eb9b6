package journal

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"hash"
	"sync"
)

// A digester computes keyed digests, so that a short text cannot be guessed from its digest.
// It is safe for concurrent use.
type digester struct{ hashes sync.Pool }

// newDigester returns a digester under a key of 32 random bytes.
func newDigester(key []byte) *digester {
	key = bytes.Clone(key)
	return &digester{hashes: sync.Pool{New: func() any { return hmac.New(sha256.New, key) }}}
}

// mac returns the digest of data. Each kind gives other digests, so that those of different
// kinds are never confused.
func (d *digester) mac(kind string, data []byte) [32]byte {
	h := d.hashes.Get().(hash.Hash)
	defer d.hashes.Put(h)
	h.Reset()
	h.Write(joinLengths("runteam/journal/1 digest", kind)) // a hash returns no error
	h.Write(data)
	return [32]byte(h.Sum(nil))
}
