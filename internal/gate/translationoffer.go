package gate

import (
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// TranslationOffer returns the offer and the grant for the call that translates an
// offer about which d is [NeedsTranslation]: what grant and block have left of
// it, for the reader of the same contract, under the same ceiling and
// redaction. What is left keeps the label of the original, and the declassifier
// that lowered the original lowers it again for this reader: a viewer below the
// label sees neither.
func (c *Compartment) TranslationOffer(o *Offer, d *Ruling, now time.Time) (Offer, Grant, error) {
	if c == nil || o == nil || d == nil {
		return Offer{}, Grant{}, errNothing
	}
	if d.Verdict != NeedsTranslation || d.about != o.Envelope || d.session != c.Contract.Session {
		return Offer{}, Grant{}, fmt.Errorf("translate %s %q: the gate asks for no translation of it", o.Source.Kind, o.Source.Name)
	}
	g := c.grant(o)
	if g == nil || g.Terms == nil {
		return Offer{}, Grant{}, fmt.Errorf("translate %s %q: nothing grants it", o.Source.Kind, o.Source.Name)
	}
	h := o.Envelope.Header()
	left, err := envelope.New(envelope.Header{
		ID: leftOf(o.Envelope), Producer: h.Producer, Task: h.Task, Run: h.Run, Classification: d.Before, Trust: d.trust,
		CreatedAt: h.CreatedAt, ExpiresAt: d.expires, Hops: h.Hops, DerivedFrom: []envelope.ID{h.ID}, Truncated: h.Truncated,
	}, d.left)
	if err != nil {
		return Offer{}, Grant{}, err
	}
	translated := *o
	translated.Envelope, translated.Translated, translated.Optional, translated.Status = left, nil, false, o.Status
	translated.As = task.Output
	terms := *g.Terms
	terms.selection, terms.needs, terms.mode = pick.Everything(), false, handoff.Full
	terms.translation = translation{}
	terms.lower, terms.renew, terms.endorse = nil, nil, nil
	if d.lowers != nil { // the paths are picked already: all that is left may be lowered
		whole := *d.lowers
		whole.Paths, whole.UnsafeText = []task.Path{task.Whole}, true
		terms.lower = &whole
	}
	return translated, Grant{Source: o.Source, Paths: whole, Line: g.Line, Terms: &terms, Reveal: g.Reveal, MaxBytes: g.MaxBytes}, nil
}

// leftOf names the envelope of what grant and block have left of another one.
func leftOf(e *envelope.Envelope) envelope.ID { return e.ID() + "/left" }

// derives reports whether an envelope was made from another one, or from what
// grant and block had left of it.
func derives(e, from *envelope.Envelope) bool {
	parents := e.Header().DerivedFrom
	return slices.Contains(parents, from.ID()) || slices.Contains(parents, leftOf(from))
}
