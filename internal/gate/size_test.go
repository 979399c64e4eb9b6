package gate_test

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A decision shows only the size class of a withheld value, so that values of few
// forms look alike.
//
// Requirement: G50.
func TestWithheldValuesOfAClassLookAlike(t *testing.T) {
	t.Parallel()
	low := newCompartment(t, func(k *gate.Contract) { k.Clearance, k.MaxInput = label.Internal, label.Internal })
	of := func(text string) gate.Decision {
		return requireWithheld(t, low, offer(t, envelope.Text(text)), gate.RuleClearance, gate.ReasonClearance, gate.CodeWithheld).Decision
	}
	require.Equal(t, of("true"), of("false"))
	require.Equal(t, of("true"), of(strings.Repeat("x", 1000)))
	require.Equal(t, 1<<10, of("true").BytesBefore)
	require.Equal(t, 4<<10, of(strings.Repeat("x", 3000)).BytesBefore)
}

// The outline of a decision has no path, no count and no exact size; two
// values of one class have the same outline, whatever members and findings they
// have. The reader's own form has what was delivered and nothing of the rest.
//
// Requirement: G50.
func TestOutlineRevealsNothingOfTheValue(t *testing.T) {
	t.Parallel()
	short := &gate.Decision{
		Verdict: gate.Passed, Mode: handoff.Scoped, Rule: "rule", From: "a", To: "b", Envelope: "a/1", Before: label.Secret, After: label.Internal,
		Entries: []gate.Entry{{Use: gate.EntryLowered, Name: "entry"}}, Translated: true,
		Sizes: gate.Sizes{BytesBefore: 4, BytesAfter: 2},
	}
	long := *short
	long.Narrowing = &gate.Narrowing{Narrowed: true, Kept: []task.Path{"/score"}, Dropped: []task.Path{"/hiv"}, TextDropped: true, Unmatched: []task.Path{"/x"}}
	long.Redacted, long.Revealed = redact.Counts{redact.Card: 2}, redact.Counts{redact.Email: 1}
	long.Broken, long.CutFrom, long.BytesBefore, long.BytesAfter = 3, 900, 1000, 500
	require.Equal(t, short.Outline(), long.Outline())
	o := long.Outline()
	require.Equal(t, o, o.Outline())
	require.Equal(t, gate.Decision{
		Verdict: gate.Passed, Mode: handoff.Scoped, Rule: "rule", From: "a", To: "b", Envelope: "a/1", Before: label.Secret, After: label.Internal,
		Entries: short.Entries, Translated: true,
		Sizes: gate.Sizes{Coarse: true},
	}, o)

	own := long.ForReader()
	require.Empty(t, own.Parts().Dropped)
	require.Empty(t, own.Parts().Unmatched)
	require.False(t, own.Parts().TextDropped)
	require.Equal(t, 900, own.BytesBefore, "what the mark of the cut says")
	require.Empty(t, own.Parts().Kept)
	require.Equal(t, long.Redacted, own.Redacted)
	held := long
	held.Verdict = gate.Withheld
	require.Equal(t, held.Outline(), held.ForReader())
	whole := *short
	whole.Before = whole.After
	require.Equal(t, whole, whole.ForReader())
}

// Requirement: G50.
func TestTokenClass(t *testing.T) {
	t.Parallel()
	for tokens, want := range map[int]int{-1: 0, 0: 0, 1: 256, 256: 256, 257: 1024, 1024: 1024, 1025: 4096, math.MaxInt: math.MaxInt} {
		require.Equal(t, want, gate.TokenClass(tokens), tokens)
	}
}
