package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
)

// A prompt is the same if the run says so, or if its answer was taken from where
// the stored run has it from.
func TestPromptsThatAreTheSame(t *testing.T) {
	t.Parallel()
	k := &storedRun{Summary: journal.Summary{Run: "run"}}
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
		require.Equal(t, tt.want, k.repeats(tt.repeated, tt.reused, tt.before), i)
	}
}

// A result that only begins like one that is withheld is compared.
func TestResultThatLooksWithheld(t *testing.T) {
	t.Parallel()
	const script = "replies: [{task: Second, text: '[withheld: so he said]'}]"
	dir := folder(t, map[string]string{"team.yaml": relay, "note.md": "the note", "s.yaml": script})
	first := offlineRun(t, call{dir: dir}, "--script", "s.yaml", "-o", "json")
	require.Equal(t, statusOK, first.status, "%+v", first)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "s.yaml"), []byte("replies: [{task: Second, text: '[withheld: so she said]'}]"), 0o600))
	second := offlineRun(t, call{dir: dir}, "--script", "s.yaml")
	require.Equal(t, statusOK, second.status, "%+v", second)
	got := call{dir: dir, args: []string{"replay", object(t, first.stdout)["runId"].(string), "--diff", shownOf(t, dir).Run, "-o", "json"}}.run(t)
	var d struct{ Tasks []comparedTask }
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &d), got.stdout)
	require.Equal(t, []any{"Second", changedTo}, []any{d.Tasks[1].Title, d.Tasks[1].Result})
}
