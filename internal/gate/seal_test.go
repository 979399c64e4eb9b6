package gate_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// Requirement: G4.
func TestSealedComesFromTheGateOnly(t *testing.T) {
	t.Parallel()
	for field := range reflect.TypeFor[gate.Sealed]().Fields() {
		require.False(t, field.IsExported(), field.Name)
	}
	var zero gate.Sealed
	require.True(t, zero.Withheld())
	require.Zero(t, zero.Payload().Size())
	k := negotiate(t, request(), writer())
	require.ErrorIs(t, zero.For(&k), gate.ErrUnsealed)
	require.ErrorIs(t, zero.For(&gate.Contract{}), gate.ErrUnsealed, "nor does it belong to the zero contract")

	e, d, err := newCompartment(t).GateInbound(gate.Reply{ID: "e", Text: "x"}, []gate.Sealed{zero}, nil, noon)
	require.ErrorIs(t, err, gate.ErrUnsealed)
	require.Nil(t, e)
	require.Equal(t, gate.Withheld, d.Verdict)
}

// Requirement: G4.
func TestZeroRulingSealsNothing(t *testing.T) {
	t.Parallel()
	s, err := newCompartment(t).Seal(offer(t, envelope.Text("x")), &gate.Ruling{})
	require.Error(t, err)
	require.Zero(t, s)
	// A forged ruling delivers nothing.
	o := offer(t, envelope.Text("x"))
	forged := gate.Ruling{Decision: decide(t, newCompartment(t), o).Decision}
	s, err = newCompartment(t).Seal(o, &forged)
	require.Error(t, err)
	require.Zero(t, s)
}

// Requirement: G18.
func TestRulingBelongsToItsOffer(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*testing.T, *gate.Offer)
	}{
		{"another source", func(_ *testing.T, o *gate.Offer) { o.Source.Name = "t-other" }},
		{"another kind of source", func(_ *testing.T, o *gate.Offer) { o.Source.Kind = handoff.Input }},
		{"no envelope", func(_ *testing.T, o *gate.Offer) { o.Envelope = nil }},
		{"another envelope", func(t *testing.T, o *gate.Offer) {
			o.Envelope = envelopeOf(t, envelope.Text("numbers"), func(h *envelope.Header) { h.ID = "e-2" })
		}},
		{"an envelope of the same id that is endorsed", func(t *testing.T, o *gate.Offer) {
			o.Envelope = envelopeOf(t, envelope.Text("numbers"), func(h *envelope.Header) { h.Trust = label.Endorsed })
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, o := newCompartment(t), offer(t, envelope.Text("numbers"))
			r := decide(t, c, o)
			_, err := c.Seal(o, &r)
			require.NoError(t, err, "for its own offer it does")
			tt.change(t, o)
			s, err := c.Seal(o, &r)
			require.ErrorContains(t, err, "about something else")
			require.Zero(t, s)
		})
	}
}

// Requirement: G18.
func TestRulingBelongsToItsContract(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*gate.Contract){
		"another reader":      func(k *gate.Contract) { k.Callee = "critic" },
		"another task":        func(k *gate.Contract) { k.Task = "t-other" },
		"the next attempt":    func(k *gate.Contract) { k.Session = "r1/t-down/2" },
		"another run":         func(k *gate.Contract) { k.Session = "r2/t-down/1" },
		"one with no session": func(k *gate.Contract) { k.Session = "" },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := offer(t, envelope.Text("numbers"))
			r := decide(t, newCompartment(t), o)
			s, err := newCompartment(t, change).Seal(o, &r)
			require.Error(t, err)
			require.Zero(t, s)
		})
	}
}

// Requirement: G18.
func TestContractWithoutASessionSealsNothing(t *testing.T) {
	t.Parallel()
	c := newCompartment(t, func(k *gate.Contract) { k.Session = "" })
	s, err := c.GateOutbound(t.Context(), offer(t, envelope.Text("x")), noon)
	require.ErrorContains(t, err, "no session")
	require.Zero(t, s)
}

// Requirement: G18.
func TestSealedBelongsToItsContract(t *testing.T) {
	t.Parallel()
	c := newCompartment(t)
	for _, s := range []gate.Sealed{seal(t, c, offer(t, envelope.Text("x"))), withheld(t, c)} {
		require.NoError(t, s.For(&c.Contract))
		for name, change := range map[string]func(*gate.Contract){
			"another reader":   func(k *gate.Contract) { k.Callee = "critic" },
			"another task":     func(k *gate.Contract) { k.Task = "t-other" },
			"another session":  func(k *gate.Contract) { k.Session = "r1/t-down/2" },
			"no session":       func(k *gate.Contract) { k.Session = "" },
			"the zero of them": func(k *gate.Contract) { *k = gate.Contract{} },
		} {
			k := c.Contract
			change(&k)
			require.ErrorIs(t, s.For(&k), gate.ErrUnsealed, name)
			_, _, err := (&gate.Compartment{Contract: k}).GateInbound(gate.Reply{ID: "e", Text: "x"}, []gate.Sealed{s}, nil, noon)
			require.Error(t, err, name)
		}
	}
}

// withheld returns the line of an optional dependency that failed.
func withheld(t require.TestingT, c *gate.Compartment) gate.Sealed {
	s, err := c.GateOutbound(context.Background(), &gate.Offer{Source: upstream, Title: "Analyse", Assignee: "analyst", Status: task.Failed, Optional: true}, noon)
	require.NoError(t, err)
	return s
}

// Requirement: G33.
func TestOptionalBecomesALineWithTheRightWord(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*testing.T, *gate.Compartment, *gate.Offer){
		gate.ReasonRule:      func(_ *testing.T, c *gate.Compartment, _ *gate.Offer) { c.Contract.Grants = nil },
		gate.ReasonClearance: func(_ *testing.T, c *gate.Compartment, _ *gate.Offer) { c.Contract.MaxInput = label.Public },
		gate.ReasonExpired: func(t *testing.T, _ *gate.Compartment, o *gate.Offer) {
			remake(t, o, func(r *envelope.Record) { r.CreatedAt = noon.Add(1) })
		},
		gate.ReasonTampered: func(t *testing.T, _ *gate.Compartment, o *gate.Offer) { o.Envelope = tampered(t, o.Envelope) },
		gate.ReasonFailed:   func(_ *testing.T, _ *gate.Compartment, o *gate.Offer) { o.Envelope, o.Status = nil, task.Failed },
		gate.ReasonSkipped:  func(_ *testing.T, _ *gate.Compartment, o *gate.Offer) { o.Envelope, o.Status = nil, task.Skipped },
	}
	for word, change := range tests {
		t.Run(string(word), func(t *testing.T) {
			t.Parallel()
			c, o := newCompartment(t), offer(t, envelope.Text("x"))
			o.Optional = true
			change(t, c, o)
			s, err := c.GateOutbound(t.Context(), o, noon)
			require.NoError(t, err)
			require.True(t, s.Withheld())
			require.Equal(t, word, s.Decision().Reason)
			require.Equal(t, o.Status, s.Status())
			require.Equal(t, "Analyse", s.Title())
		})
	}
}

// Requirement: G11.
func TestSealedOutlivesItsOffer(t *testing.T) {
	t.Parallel()
	c, o := newCompartment(t), offer(t, envelope.Text("numbers "+fakeToken))
	r := decide(t, c, o)
	s, err := c.Seal(o, &r)
	require.NoError(t, err)
	o.Title, o.Assignee, o.Status, o.Envelope = "changed", "changed", task.Failed, nil
	r.Verdict, r.After = gate.Withheld, label.Public
	c.Contract.Session = "changed"
	require.Equal(t, "Analyse", s.Title())
	require.Equal(t, "numbers [REDACTED:token]", s.Payload().Text())
	require.Equal(t, label.Confidential, s.Decision().After)
	require.False(t, s.Withheld())
}

// Requirement: G11.
func TestChangingASharedDecisionChangesNoRuling(t *testing.T) {
	t.Parallel()
	c := newCompartment(t)
	s := seal(t, c, offer(t, envelope.Text("x"), func(h *envelope.Header) { h.ExpiresAt = noon.Add(time.Hour) }))
	s.Decision().Verdict = gate.Withheld // receipts share it, and agents get receipts
	line := withheld(t, c)
	line.Decision().Verdict = gate.Passed
	require.False(t, s.Withheld())
	require.True(t, line.Withheld())
	e, _, err := c.GateInbound(gate.Reply{ID: "e", Text: "x"}, []gate.Sealed{s, line}, nil, noon)
	require.NoError(t, err)
	require.Equal(t, noon.Add(time.Hour), e.ExpiresAt())
	require.Equal(t, []envelope.ID{"e-up"}, e.Header().DerivedFrom)
}

// Requirement: G42.
func TestNoVerbPrintsDeliveredText(t *testing.T) {
	t.Parallel()
	const canary = "CANARY-51c"
	c, o := newCompartment(t), offer(t, structured(t, `["`+canary+`"]`).WithText(canary))
	o.As = task.Both
	r := decide(t, c, o)
	s := seal(t, c, o)
	for _, value := range []any{r, &r, s, &s, []gate.Sealed{s}, []gate.Ruling{r}, r.Decision, s.Decision()} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
			require.NotContains(t, fmt.Sprintf(verb, value), canary, verb)
		}
		raw, err := json.Marshal(value)
		require.NoError(t, err)
		require.NotContains(t, string(raw), canary)
	}
	require.Equal(t, `dependency "Analyse" for "writer", passed`, s.String())
	require.Equal(t, "not sealed", gate.Sealed{}.String())
}

func TestWithheldErrorIsFoundByErrorsAs(t *testing.T) {
	t.Parallel()
	_, err := newCompartment(t, func(k *gate.Contract) { k.Grants = nil }).GateOutbound(t.Context(), offer(t, envelope.Text("x")), noon)
	held, ok := errors.AsType[*gate.WithheldError](fmt.Errorf("task: %w", err))
	require.True(t, ok)
	require.Equal(t, gate.CodeWithheld, held.Code())
}

// Translation: the gate requests it, a fake model translates, the gate decides
// again.

// translating returns a gate that delivers only translations.
func translating(t require.TestingT, changes ...func(*gate.Contract)) *gate.Compartment {
	return under(t, exactly(handoff.PairRule{Translate: &handoff.Translation{MaxTokens: 10, ByModel: true}}), changes...)
}

// retell is a translator: it returns the translation that the ruling requests.
func translationOf(t require.TestingT, o *gate.Offer, text string, changes ...func(*envelope.Header)) *envelope.Envelope {
	derive := func(h *envelope.Header) {
		h.ID, h.Producer, h.DerivedFrom = "e-up/short", "translator", []envelope.ID{o.Envelope.ID()}
	}
	return envelopeOf(t, envelope.Text(text), append([]func(*envelope.Header){derive}, changes...)...)
}

func TestTranslationRound(t *testing.T) {
	t.Parallel()
	c, o := translating(t), offer(t, envelope.Text("a long story"))
	r := decide(t, c, o)
	require.Equal(t, gate.NeedsTranslation, r.Verdict)
	require.Equal(t, 10, r.Translate.MaxTokens)
	s, err := c.Seal(o, &r)
	require.ErrorContains(t, err, "translation")
	require.Zero(t, s)
	require.Error(t, r.Err(), "it has not passed")
	o.Optional = true
	_, err = c.GateOutbound(t.Context(), o, noon)
	require.Error(t, err, "optional does not stand in for a translation")

	o.Translated = translationOf(t, o, "short "+fakeToken)
	s = seal(t, c, o)
	require.Equal(t, "short [REDACTED:token]", s.Payload().Text(), "and it is redacted like anything else")
	require.Equal(t, envelope.ID("e-up"), s.Decision().Envelope)
}

func TestTranslationOfferedUnaskedIsIgnored(t *testing.T) {
	t.Parallel()
	o := offer(t, envelope.Text("numbers"))
	o.Translated = translationOf(t, o, "something else")
	require.Equal(t, "numbers", sealed(t, newCompartment(t), o).Payload().Text())
}

func TestTranslationPassesTheGate(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		give   func(*testing.T, *gate.Offer) *envelope.Envelope
		rule   handoff.Rule
		reason string
	}{
		{"not derived from the original", func(t *testing.T, o *gate.Offer) *envelope.Envelope {
			return translationOf(t, o, "x", func(h *envelope.Header) { h.DerivedFrom = []envelope.ID{"e-other"} })
		}, gate.RuleDigest, gate.ReasonTampered},
		{"derived from nothing", func(t *testing.T, o *gate.Offer) *envelope.Envelope {
			return translationOf(t, o, "x", func(h *envelope.Header) { h.DerivedFrom = nil })
		}, gate.RuleDigest, gate.ReasonTampered},
		{"altered", func(t *testing.T, o *gate.Offer) *envelope.Envelope {
			return tampered(t, translationOf(t, o, "x"))
		}, gate.RuleDigest, gate.ReasonTampered},
		{"of a lower label", func(t *testing.T, o *gate.Offer) *envelope.Envelope {
			return translationOf(t, o, "x", func(h *envelope.Header) { h.Classification = label.Internal })
		}, gate.RuleDigest, gate.ReasonTampered},
		{"above the contract", func(t *testing.T, o *gate.Offer) *envelope.Envelope {
			return translationOf(t, o, "x", func(h *envelope.Header) { h.Classification = label.Secret })
		}, gate.RuleClearance, gate.ReasonClearance},
		{"expired", func(t *testing.T, o *gate.Offer) *envelope.Envelope {
			return translationOf(t, o, "x", func(h *envelope.Header) { h.CreatedAt, h.ExpiresAt = noon.Add(-2), noon })
		}, gate.RuleExpiry, gate.ReasonExpired},
		{"from the future", func(t *testing.T, o *gate.Offer) *envelope.Envelope {
			return translationOf(t, o, "x", func(h *envelope.Header) { h.CreatedAt = noon.Add(1) })
		}, gate.RuleExpiry, gate.ReasonExpired},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			o := offer(t, envelope.Text("a long story"))
			o.Translated = tt.give(t, o)
			requireWithheld(t, translating(t), o, tt.rule, tt.reason, gate.CodeWithheld)
		})
	}
	t.Run("secret without a rule", func(t *testing.T) {
		t.Parallel()
		o := offer(t, envelope.Text("a long story"))
		o.Translated = translationOf(t, o, "x", func(h *envelope.Header) { h.Classification = label.Secret })
		c := translating(t, func(k *gate.Contract) { k.Clearance, k.MaxInput = label.Secret, label.Secret })
		requireWithheld(t, c, o, gate.RuleSecret, gate.ReasonRule, gate.CodeWithheld)
	})
}

// Requirement: G13.
func TestTranslationLowersTrustAndLife(t *testing.T) {
	t.Parallel()
	endorsed := func(h *envelope.Header) { h.Trust, h.ExpiresAt = label.Endorsed, noon.Add(time.Hour) }
	c, o := translating(t), offer(t, envelope.Text("a long story"), endorsed)
	o.Translated = translationOf(t, o, "short", func(h *envelope.Header) { h.ExpiresAt = noon.Add(time.Minute) })
	e, _, err := c.GateInbound(gate.Reply{ID: "e", Text: "x"}, []gate.Sealed{seal(t, c, o)}, nil, noon)
	require.NoError(t, err)
	require.Equal(t, label.Untrusted, e.Trust(), "a model translated it")
	require.Equal(t, noon.Add(time.Minute), e.ExpiresAt())

	plain := newCompartment(t)
	e, _, err = plain.GateInbound(gate.Reply{ID: "e", Text: "x"}, []gate.Sealed{seal(t, plain, offer(t, envelope.Text("x"), endorsed))}, nil, noon)
	require.NoError(t, err)
	require.Equal(t, noon.Add(time.Hour), e.ExpiresAt())
}
