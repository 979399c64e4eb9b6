package cli

import (
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// A title that is wider than half of the terminal is clipped in tables, and
// not elsewhere.
func TestWideTitlesAreClippedOnATerminal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("wide title ", 12) + "ends"
	dir := clitest.Folder(t, map[string]string{"team.yaml": strings.Replace(one, "Answer", long, 1)})
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}).status)
	run := listRuns(t, call{dir: dir})[0].Run
	for _, args := range [][]string{{"show"}, {"show", "--usage"}, {"replay", run, "--diff", run}} {
		for _, width := range []int{0, 60, 400} {
			con, stdout, stderr := clitest.Console(t, args...)
			con.WorkDir, con.IsTerminal = workdir.Dir(dir), func(any) bool { return width > 0 }
			con.TerminalSize = func(any) (int, int) { return width, 24 }
			require.Equal(t, exit.StatusOK, runCommandLine(con), stderr.String())
			clipped := strings.Contains(stdout.String(), terminal.Clip(long, width/2)+"  ")
			require.Equal(t, width == 60, clipped && !strings.Contains(stdout.String(), long+"  "), "%v %d: %s", args, width, stdout.String())
		}
	}
}

// The reason why a task of an ended run was skipped is not secret.
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
		{"timeout", task.Skipped, hidden, "the run timed out"},
		{"budget_exhausted", task.Skipped, hidden, "the budget was spent"},
		{"error", task.Skipped, hidden, hidden},
		{"cancelled", task.Failed, hidden, hidden},
		{"cancelled", task.Skipped, "its own words", "its own words"},
	}
	for _, tt := range tests {
		k := &journals.StoredRun{Summary: journal.Summary{Status: tt.run}, State: runstate.New()}
		k.State.Apply(&record.Entry{End: &record.RunEnd{Tasks: []record.TaskEnd{{Task: "a", Status: tt.status, Reason: tt.reason}}}})
		require.Equal(t, tt.want, k.WhyNoResult(k.State.Find("a")), "%v", tt)
	}
}
