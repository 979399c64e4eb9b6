package journal

import (
	"encoding/hex"
	"strings"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// plainLimit is the highest label of values that are stored in the clear.
const plainLimit = label.Confidential

// withheld replaces texts above the plaintext limit.
const withheld = "[withheld: secret]"

// noKey is why a value is missing if only its digest was stored.
const noKey = "it is above confidential, and the run that made it had no journal key: only a digest of it was stored"

// A vault protects values that readers of the file must not see, by encryption or digests.
// It is safe for concurrent use.
type vault struct {
	sealer  *sealer   // nil without a key
	digests *digester // nil if the key file does not exist
}

// hidden is the stored form of a text above the plaintext limit. Exactly one field is set.
type hidden struct {
	Sealed *sealedText    `json:"sealed,omitempty"`
	Digest *record.Digest `json:"digest,omitempty"`
}

// hide returns the stored form of a text. Showing it requires the same place.
func (v *vault) hide(plain []byte, place ...string) (*hidden, error) {
	if v.sealer == nil {
		return &hidden{Digest: new(v.digest("hidden", plain))}, nil
	}
	s, err := v.sealer.seal(plain, joinLengths(place...), true)
	return &hidden{Sealed: &s}, err
}

// show returns a hidden text, or why it is missing.
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

// digest returns the keyed digest of a digest or a text.
func (v *vault) digest(kind string, of []byte) record.Digest {
	if v.digests == nil {
		return record.Digest{}
	}
	return v.digests.mac(kind, of)
}

// maskedPrefix is the prefix of masked fingerprints.
const maskedPrefix = "hmac-sha256:"

// masked returns the masked form of a fingerprint; of an empty one, the empty string.
func (v *vault) masked(fingerprint string) string {
	if fingerprint == "" || strings.HasPrefix(fingerprint, maskedPrefix) {
		return fingerprint
	}
	d := v.digest("fingerprint", []byte(fingerprint))
	return maskedPrefix + hex.EncodeToString(d[:])
}

// mask returns the masked form of a key; of the zero key, the zero key.
func (v *vault) mask(k record.Key) record.Key {
	if k == (record.Key{}) {
		return k
	}
	return record.Key(v.digest("key", k[:]))
}
