package journal

import (
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// defaultEncryptFrom is the lowest label of values that are hidden unless [Options.EncryptFrom] says another.
const defaultEncryptFrom = label.Secret

// unlabeled is the label of texts without one of their own: policies, the flags of commands, and warnings before the first
// prompt.
const unlabeled = label.Internal

// withheldFrom replaces texts above the plaintext limit, if the lowest label of what is hidden is this one.
func withheldFrom(level label.Classification) string { return "[withheld: " + level.String() + "]" }

// noKey is why a value is missing if only its digest was stored.
const noKey = "it is above confidential, and the run that made it had no journal key: only a digest of it was stored"

// A vault protects values that readers of the file or the database must not see, by encryption or digests.
// It is safe for concurrent use.
type vault struct {
	sealer    *sealer   // nil without a key
	digests   *digester // nil if the key file does not exist
	digestKey []byte    // of digests

	encryptFrom label.Classification // values with this label or a higher one are hidden
}

// newVault returns the vault of a journal; a nil digestKey is that of a key file that does not exist.
func newVault(o Options, s *sealer, digestKey []byte) *vault {
	v := &vault{sealer: s, encryptFrom: defaultEncryptFrom}
	if digestKey != nil {
		v.digests, v.digestKey = newDigester(digestKey), digestKey
	}
	if o.EncryptFrom != nil {
		v.encryptFrom = *o.EncryptFrom
	}
	return v
}

// hides reports whether values with a label are hidden.
func (v *vault) hides(level label.Classification) bool { return level >= v.encryptFrom }

// plainLimit returns the plaintext limit: the highest label of values that are stored in the clear. It is below
// [label.Public] if there is none.
func (v *vault) plainLimit() label.Classification { return v.encryptFrom - 1 }

// sizeAt returns the stored size of a value with this label.
func (v *vault) sizeAt(level label.Classification, bytes int) int {
	if v.hides(level) {
		return bytesize.Class(bytes)
	}
	return bytes
}

// withheld replaces texts above the plaintext limit.
func (v *vault) withheld() string { return withheldFrom(v.encryptFrom) }

// hidden is the stored form of a text above the plaintext limit. Sealed or Digest is set.
type hidden struct {
	Sealed *sealedText    `json:"sealed,omitempty"`
	Digest *record.Digest `json:"digest,omitempty"`

	// From is the lowest label of what was hidden; nil means secret.
	From *label.Classification `json:"from,omitempty"`
}

// withheld replaces the text.
func (h *hidden) withheld() string {
	if h.From == nil {
		return withheldFrom(defaultEncryptFrom)
	}
	return withheldFrom(*h.From)
}

// hide returns the stored form of a text. Showing it requires the same place.
func (v *vault) hide(plain []byte, place ...string) (*hidden, error) {
	if v.sealer == nil {
		return &hidden{Digest: new(v.digest("hidden", plain))}, nil
	}
	s, err := v.sealer.seal(plain, joinLengths(place...), true)
	h := &hidden{Sealed: &s}
	if v.encryptFrom != defaultEncryptFrom {
		h.From = &v.encryptFrom
	}
	return h, err
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

// withheldPolicy replaces the text of a policy. It is no policy, so that a program which does not know that the text may
// be hidden refuses it.
var withheldPolicy = json.RawMessage(`"[withheld]"`)

// hidePolicy returns the stored form of a policy, and its text if that is above the plaintext limit: it has reasons, and
// patterns of what is redacted. Who may be named in it, and where its rules are written, is in the clear.
func (v *vault) hidePolicy(p *record.Policy, place ...string) (low *record.Policy, text *hidden, err error) {
	if p == nil || len(p.Text) == 0 || !v.hides(unlabeled) {
		return p, nil, nil
	}
	low = new(*p)
	low.Text = withheldPolicy
	text, err = v.hide(p.Text, policyPlace(p, place)...)
	return low, text, err
}

// showPolicy restores the text of a policy, or sets why it cannot be read.
func (v *vault) showPolicy(p *record.Policy, text *hidden, place ...string) {
	if p != nil && text != nil {
		p.Text, p.Unreadable = v.show(text, policyPlace(p, place)...)
	}
}

// policyPlace is the place of the text of a policy in a line.
func policyPlace(p *record.Policy, line []string) []string { return append(line, "policy", p.Digest) }

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

// Signature returns a digest of a text that only holders of the key of the journal's digests can compute, for what is said to be
// from them. ok is false if the journal has no such key, as where its key file is missing.
func (a *archive) Signature(text string) (signature string, ok bool) {
	if a.vault.digests == nil {
		return "", false
	}
	d := a.vault.digest("signature", []byte(text))
	return hex.EncodeToString(d[:]), true
}

// mask returns the masked form of a key; of the zero key, the zero key.
func (v *vault) mask(k record.Key) record.Key {
	if k == (record.Key{}) {
		return k
	}
	return record.Key(v.digest("key", k[:]))
}
