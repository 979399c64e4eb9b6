package journal

import (
	"encoding/hex"
	"strings"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// plainLimit is the highest label that is kept as it is.
const plainLimit = label.Confidential

// withheld stands for words above the plaintext limit.
const withheld = "[withheld: secret]"

// noKey says why something of which there is only a digest cannot be had.
const noKey = "it is above confidential, and the run that made it had no journal key: only a digest of it was kept"

// A vault decides in which form things are kept that must not be read by
// whoever reads the file. It is safe for concurrent use.
type vault struct {
	sealer  *sealer   // nil without a key
	digests *digester // nil if the file of its key is not there
	pads    bool      // texts are padded before they are encrypted
}

// hidden is what is kept of words above the plaintext limit: one of both.
type hidden struct {
	Sealed *sealedText    `json:"sealed,omitempty"`
	Digest *record.Digest `json:"digest,omitempty"`
}

// hide returns what is kept of a text. The parts of place say whose it is: it
// can be shown under these only.
func (v *vault) hide(plain []byte, place ...string) (*hidden, error) {
	if v.sealer == nil {
		return &hidden{Digest: new(v.digest("hidden", plain))}, nil
	}
	s, err := v.sealer.seal(plain, joinLengths(place...), v.pads)
	return &hidden{Sealed: &s}, err
}

// show returns a text that was hidden, or why it cannot be had.
func (v *vault) show(h *hidden, place ...string) (plain []byte, missing string) {
	if h.Sealed == nil {
		return nil, noKey
	}
	plain, err := v.sealer.open(*h.Sealed, joinLengths(place...))
	if err != nil {
		return nil, err.Error()
	}
	return plain, ""
}

// digest returns what is kept of a digest or of a text.
func (v *vault) digest(kind string, of []byte) record.Digest {
	if v.digests == nil {
		return record.Digest{}
	}
	return v.digests.mac(kind, of)
}

// maskedPrefix is how a fingerprint begins in its stored form.
const maskedPrefix = "hmac-sha256:"

// masked returns what is kept of a fingerprint; that of none is none.
func (v *vault) masked(fingerprint string) string {
	if fingerprint == "" || strings.HasPrefix(fingerprint, maskedPrefix) {
		return fingerprint
	}
	d := v.digest("fingerprint", []byte(fingerprint))
	return maskedPrefix + hex.EncodeToString(d[:])
}

// mask returns what is kept of a key; that of no key is none.
func (v *vault) mask(k record.Key) record.Key {
	if k == (record.Key{}) {
		return k
	}
	return record.Key(v.digest("key", k[:]))
}
