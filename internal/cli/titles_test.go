package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// A title that is wider than half of the terminal is clipped in tables, and
// nowhere where nobody looks.
func TestWideTitlesAreClippedOnATerminal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("wide title ", 12) + "ends"
	dir := folder(t, map[string]string{"team.yaml": strings.Replace(one, "Answer", long, 1)})
	require.Equal(t, statusOK, offlineRun(t, call{dir: dir}).status)
	run := listRuns(t, call{dir: dir})[0].Run
	for _, args := range [][]string{{"show"}, {"show", "--usage"}, {"replay", run, "--diff", run}} {
		for _, width := range []int{0, 60, 400} {
			a, stdout, stderr := here(t, args...)
			a.folder, a.isTerminal = dir, func(any) bool { return width > 0 }
			a.size = func(any) (int, int) { return width, 24 }
			require.Equal(t, statusOK, a.run(), stderr.String())
			clipped := strings.Contains(stdout.String(), clip(long, width/2)+"  ")
			require.Equal(t, width == 60, clipped && !strings.Contains(stdout.String(), long+"  "), "%v %d: %s", args, width, stdout.String())
		}
	}
}

// Why a task was skipped when its run was ended is no secret.
func TestReasonOfAnAbortedRun(t *testing.T) {
	t.Parallel()
	const hidden = "[withheld: secret]"
	tests := []struct {
		run    string
		status task.Status
		reason string
		want   string
	}{
		{"cancelled", task.Skipped, hidden, "the run was cancelled"},
		{"timeout", task.Skipped, hidden, "the time of the run was over"},
		{"budget_exhausted", task.Skipped, hidden, "the budget was spent"},
		{"error", task.Skipped, hidden, hidden},
		{"cancelled", task.Failed, hidden, hidden},
		{"cancelled", task.Skipped, "its own words", "its own words"},
	}
	for _, tt := range tests {
		k := &storedRun{Summary: journal.Summary{Status: tt.run}}
		require.Equal(t, tt.want, k.because(&storedTask{status: tt.status, ended: record.TaskEnd{Reason: tt.reason}}), "%v", tt)
	}
}
