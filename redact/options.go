package redact

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// New returns a redactor that finds the secrets, the given personal kinds (see [PersonalKinds]) and
// own patterns. An error lists everything wrong with them.
func New(personal []Kind, own []Pattern) (*Redactor, error) {
	var problems []error
	for _, kind := range personal {
		switch {
		case kind.Secret():
			problems = append(problems, fmt.Errorf("kind %q is a secret and always on: leave it out", kind))
		case !slices.Contains(PersonalKinds(), kind):
			problems = append(problems, fmt.Errorf("kind %q is unknown: the personal kinds are %v", kind, PersonalKinds()))
		}
	}
	patterns, err := compile(own)
	if err = errors.Join(append(problems, err)...); err != nil {
		return nil, err
	}
	r := built(personal)
	r.patterns = patterns
	for _, p := range patterns {
		if out, _, err := r.Text(p.kind.Placeholder()); err != nil || out != p.kind.Placeholder() {
			return nil, fmt.Errorf("pattern %q: its placeholder would be redacted itself: choose another name", p.kind)
		}
	}
	return r, nil
}

// Secrets returns the redactor for the secrets, which are always redacted. All calls return the
// same Redactor.
func Secrets() *Redactor { return secrets() }

// Default returns the redactor for secrets and the personal kinds of [DefaultKinds], which is used
// for context between agents. All calls return the same Redactor.
func Default() *Redactor { return standard() }

// All returns the redactor for all built-in kinds, which is used for logs and events. Every call
// returns the same Redactor.
func All() *Redactor { return all() }

// The shared redactors, built at the first use since a program may start without one. Their
// detectors only read after that.
var (
	secrets  = sync.OnceValue(func() *Redactor { return built(nil) })
	standard = sync.OnceValue(func() *Redactor { return built(DefaultKinds()) })
	all      = sync.OnceValue(func() *Redactor { return built(PersonalKinds()) })
)

// built returns a redactor of the secrets and of personal kinds.
func built(kinds []Kind) *Redactor {
	found := secretDetectors()
	for _, d := range personalDetectors() {
		if slices.Contains(kinds, d.kind) {
			found = append(found, d)
		}
	}
	return build(found...)
}

// PersonalKinds returns every personal kind.
func PersonalKinds() []Kind { return []Kind{Card, IBAN, Email, Phone, SSN, IP, MAC} }

// DefaultKinds returns the personal kinds that [Default] finds. Addresses of machines are not among
// them: agents that work on networks need them.
func DefaultKinds() []Kind { return []Kind{Card, IBAN, Email, Phone, SSN} }

// Secret reports whether k is always on and never revealed.
func (k Kind) Secret() bool { return k.rank() >= kindPassword.rank() }

// ranking orders the built-in kinds, the most specific last. Own patterns rank below all of them,
// or an own pattern over a secret could be revealed.
var ranking = [...]Kind{Phone, IP, MAC, SSN, Email, IBAN, Card, kindPassword, kindToken, kindJWT, kindKey}

// rank is the index in ranking. Of overlapping spans, the higher rank names the union.
func (k Kind) rank() int { return slices.Index(ranking[:], k) }

// placeholders has the placeholder of each kind in ranking, so that built-in kinds need no
// concatenation.
var placeholders = func() (all [len(ranking)]string) {
	for i, kind := range ranking {
		all[i] = placeholder(kind)
	}
	return all
}()

func placeholder(k Kind) string { return "[REDACTED:" + string(k) + "]" }
