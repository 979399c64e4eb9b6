package replay

import (
	"testing"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/stretchr/testify/require"
)

// A prompt is the same if the new run says so, or if both runs took its answer from the same place.
func TestEqualPrompts(t *testing.T) {
	t.Parallel()
	k := &journals.StoredRun{Summary: journal.Summary{Run: "run"}}
	own, taken := &record.AgentCall{}, &record.AgentCall{From: "earlier"}
	tests := []struct {
		repeated bool
		reused   string
		before   *record.AgentCall
		want     bool
	}{
		{false, "", own, false},
		{false, "", nil, false},
		{true, "", own, true}, // its answer had expired
		{false, "run", own, true},
		{false, "earlier", own, false},
		{false, "earlier", taken, true},
		{false, "earlier", nil, false},
		{false, "another", taken, false},
	}
	for i, tt := range tests {
		require.Equal(t, tt.want, repeats(k, tt.repeated, tt.reused, tt.before), i)
	}
}
