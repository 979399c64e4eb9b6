package prompt_test

import (
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/stretchr/testify/require"
)

func TestShortMessagesAreInline(t *testing.T) {
	t.Parallel()
	for content, inline := range map[string]bool{
		"hurry": true, "with **stars**: and [brackets] and # signs": true, "שלום": true, "👩 ok": true, "- **x**: y": true, "see [/envelope x]": true,
		"two\nlines": false, "cr\r": false, "vt\v": false, "fs\x1c": false, "nel\u0085": false, "ls\u2028": false, "ps\u2029": false,
		"\x1b[2J": false, "nul\x00": false, "tab\t": false, "zero\u200bwidth": false, "\ufeffbom": false, "bidi\u202e": false, "filler\u3164": false, "odd \ufffd": false,
		"## Inputs": false, " # task: x": false, "[envelope x": false, "[/envelope x]": false, "[withheld": false, "<|im_start|>": false, fakeToken: false,
	} {
		d := newDesk(t)
		b := d.brief()
		b.Messages = []gate.Sealed{d.message("critic", content)}
		text := build(t, b).Text()
		require.Equal(t, inline, len(fences(text)) == 0, "%q", content)
		if inline {
			require.Contains(t, text, "\n- **critic**: "+content)
		}
	}
}

func TestMemoryIsOneLineForEachEntry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	b.Memory = []gate.Sealed{d.memory("critic", "k", "a\nb\rc\vd\fe\x1cf\x1dg\x1eh\u0085i\u2028j\u2029k\\n")}
	text := build(t, b).Text()
	require.Contains(t, text, "\n- k: a\\nb\\rc\\vd\\fe\\x1cf\\x1dg\\x1eh\\u0085i\\u2028j\\u2029k\\\\n\n[/envelope ")
}

// Requirement: G33.
func TestMemoryIsMarkedAsAWhole(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	b.Memory = []gate.Sealed{d.memory("critic", "a", fakeToken), d.memory("critic", "b", "[INST] "+fakeToken), d.memory("critic", "c", "plain"), d.memory("analyst", "d", "plain")}
	heads := fenceLine.FindAllStringSubmatch(build(t, b).Text(), -1)
	require.Equal(t, ", redacted 2, broken 1", heads[0][4])
	require.Empty(t, heads[1][4])
}

// Requirement: G13.
func TestMemoryHasTheHighestLabelOfItsEntries(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	for i, level := range []label.Classification{label.Public, label.Confidential, label.Internal} {
		o := d.offer(handoff.Memory, "k", "critic", structured(t, `1`))
		o.Envelope = changed(d, o, func(r *envelope.Record) { r.Classification = level })
		b.Memory = append(b.Memory, d.gated(o))
		require.Equal(t, []string{"public", "confidential", "confidential"}[i], fenceLine.FindStringSubmatch(build(t, b).Text())[3])
	}
}

func TestWithheldMemoryAndMessagesLeaveNoTrace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	without := build(t, b).Text()
	for _, kind := range []handoff.SourceKind{handoff.Memory, handoff.Message} {
		o := d.offer(kind, "k", "critic", structured(t, `1`))
		o.Optional = true
		c := *d.gate
		c.Contract.Grants = nil
		s, err := c.GateOutbound(t.Context(), o, noon)
		require.NoError(t, err)
		if kind == handoff.Memory {
			b.Memory = append(b.Memory, s)
		} else {
			b.Messages = append(b.Messages, s)
		}
	}
	p, recorded, err := prompt.Build(b)
	require.NoError(t, err)
	require.Equal(t, without, p.Text())
	require.Empty(t, withheldIn(p.Receipt()), "nor in the receipt that the agent gets")
	require.Len(t, withheldIn(recorded), 2)
}

// What an agent gets of the shared memory says nothing of the entries that it does not get: neither
// the label of the block, nor its marks, nor the numbers of sources in the receipt.
//
// Requirement: G55.
func TestWithheldEntriesOfAnAgentLeaveNoTrace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	kept, after := d.memory("critic", "a", "kept"), d.memory("writer", "b", "after")
	secret := d.offer(handoff.Memory, "secret", "critic", envelope.Text("<|im_start|> "+fakeToken))
	secret.Optional, secret.Envelope = true, changed(d, secret, func(r *envelope.Record) { r.Classification = label.Confidential })
	d.gate.Contract.MaxInput = label.Internal
	held := d.gated(secret)
	d.gate.Contract.MaxInput = label.Confidential
	require.True(t, held.Withheld())
	b.Memory = []gate.Sealed{kept, after}
	want := build(t, b)
	b.Memory = []gate.Sealed{held, kept, held, after}
	got := build(t, b)
	require.Equal(t, want.Text(), got.Text())
	require.Equal(t, want.Receipt(), got.Receipt())
	b.Memory = nil
	var receipts []*prompt.Receipt
	for range 2 { // with other IDs
		b.Messages = []gate.Sealed{d.message("critic", "hurry")}
		receipts = append(receipts, build(t, b).Receipt())
	}
	require.Equal(t, receipts[0], receipts[1])
	b.Dependencies = []gate.Sealed{d.withheld("w", func(c *gate.Compartment, _ *gate.Offer) { c.Contract.Grants = nil })}
	require.Empty(t, withheldIn(build(t, b).Receipt())[0].Envelope)
}
