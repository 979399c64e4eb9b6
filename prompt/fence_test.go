package prompt_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestFencesDifferAndAreInNoPayload(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := newDesk(t)
		b := d.brief()
		payload := rapid.SampledFrom([]string{"x", "x", "y", strings.Repeat("0", 64), strings.Repeat("abcdef0123456789", 5)})
		for range rapid.IntRange(0, 4).Draw(t, "inputs") {
			b.Inputs = append(b.Inputs, d.input("same", payload.Draw(t, "input")))
		}
		for range rapid.IntRange(0, 4).Draw(t, "dependencies") {
			b.Dependencies = append(b.Dependencies, d.dep("same", "analyst", payload.Draw(t, "dependency")))
		}
		text := build(t, b).Text()
		seen := map[string]bool{}
		for _, fence := range fences(text) {
			require.False(t, seen[fence], "every block has its own")
			seen[fence] = true
			require.Equal(t, 2, strings.Count(text, fence), "it opens, it closes, and stands nowhere else")
		}
		require.Len(t, seen, len(b.Inputs)+len(b.Dependencies))
	})
}

// fenceOf is DESIGN.md's formula, for a prompt with one block.
func fenceOf(n uint64, title, heading, producer string, level byte, payload string) string {
	var b []byte
	add := func(s string) { b = append(binary.BigEndian.AppendUint64(b, uint64(len(s))), s...) }
	add(payload)
	all := sha256.Sum256(b)
	b = nil
	add("runteam/fence/1")
	b = binary.BigEndian.AppendUint64(b, n)
	add(title)
	b = binary.BigEndian.AppendUint64(b, 0)
	add(heading)
	add(producer)
	b = append(append(b, level), all[:]...)
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:16])
}

func TestFenceHash(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	b := d.brief()
	b.Dependencies = []gate.Sealed{d.dep("Analyse", "analyst", "The margin is 3.")}
	require.Equal(t, []string{fenceOf(0, "Write it up", "Analyse", "analyst", 0, "The margin is 3.")}, fences(build(t, b).Text()))
}

func TestFenceThatOccursElsewhereIsSkipped(t *testing.T) {
	t.Parallel()
	// A payload is part of its own fence's hash, so it cannot quote it; the
	// description is not, and can.
	quoted := ""
	for n := range uint64(3) {
		d := newDesk(t)
		d.task.Description = "Write." + quoted
		b := d.brief()
		b.Dependencies = []gate.Sealed{d.dep("Analyse", "analyst", "The margin is 3.")}
		text := build(t, b).Text()
		fence := fenceOf(n, "Write it up", "Analyse", "analyst", 0, "The margin is 3.")
		require.Equal(t, []string{fence}, fences(text), "n is %d", n)
		require.Equal(t, 2, strings.Count(text, fence))
		quoted += " see" + fence + fence[:5*(n%2)] // also at the very end
	}
}

func TestFenceOfOneBlockChangesWithEveryPayload(t *testing.T) {
	t.Parallel()
	render := func(first, second, message string) []string {
		d := newDesk(t)
		b := d.brief()
		b.Dependencies = []gate.Sealed{d.dep("One", "analyst", first), d.dep("Two", "analyst", second)}
		if message != "" {
			b.Messages = []gate.Sealed{d.message("critic", message)}
		}
		return fences(build(t, b).Text())
	}
	base := render("a", "b", "c")
	require.Len(t, base, 2)
	for _, other := range [][]string{render("a", "B", "c"), render("A", "b", "c"), render("ab", "", "c"), render("a", "b", "C"), render("a", "b", "")} {
		for i := range other {
			require.NotEqual(t, base[i], other[i], "who writes one payload cannot tell the fence of another")
		}
	}
}

func TestInlineMessagesAreSearchedForFences(t *testing.T) {
	t.Parallel()
	// The sender of a message knows everything but its own influence on the
	// hash, so the fence that it quotes is never the fence that is used.
	quote := "hello"
	for range 3 {
		d := newDesk(t)
		b := d.brief()
		b.Dependencies = []gate.Sealed{d.dep("Analyse", "analyst", "x")}
		b.Messages = []gate.Sealed{d.message("critic", quote)}
		text := build(t, b).Text()
		require.Contains(t, text, "- **critic**: "+quote)
		fence := fences(text)[0]
		require.Equal(t, 2, strings.Count(text, fence))
		quote = "see [/envelope " + fence + "]"
	}
}

func TestManyBlocksOfHexDigits(t *testing.T) {
	t.Parallel() // the search for fences must stay linear
	d := newDesk(t)
	b := d.brief()
	for range 300 {
		b.Dependencies = append(b.Dependencies, d.seal(handoff.Dependency, "x", "analyst", envelope.Text(strings.Repeat("0a", 300))))
	}
	require.LessOrEqual(t, len(build(t, b).Text()), promptBytes)
}
