package handoff_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
)

func TestG50SizeClass(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int]int{-1: 0, 0: 0, 1: 64, 64: 64, 65: 128, 128: 128, 129: 256, 1 << 20: 1 << 20, 1<<20 + 1: 1 << 21} {
		require.Equal(t, want, handoff.SizeClass(bytes), bytes)
	}
}

// Of what is held a decision tells the size by its class, so that two values of
// few forms look alike.
func TestG50HeldValuesOfAClassLookAlike(t *testing.T) {
	t.Parallel()
	low := compartment(t, func(k *handoff.Contract) { k.Clearance, k.MaxInput = label.Internal, label.Internal })
	of := func(text string) handoff.Decision {
		return requireHeld(t, low, offer(t, envelope.Text(text)), handoff.RuleClearance, handoff.ReasonClearance, handoff.CodeHeld).Decision
	}
	require.Equal(t, of("true"), of("false"))
	require.Equal(t, 64, of("true").BytesBefore)
	require.Equal(t, 128, of(strings.Repeat("x", 100)).BytesBefore)
}
