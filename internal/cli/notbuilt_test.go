package cli

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// TestReplayNamesPromptsThatWereNotBuilt checks that a replay that did not build a prompt again names its task and the
// prompt, also if no task differs. Prompts after calls of tools, also those of children, are not built, and are no
// difference.
func TestReplayNamesPromptsThatWereNotBuilt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		calls []record.CallID
		want  string // on stderr
		code  int
	}{
		{"of children", []record.CallID{{Attempt: 1, Part: "/child/call_1_1"}, {Attempt: 1, Part: "/child/call_1_1/turn/2"}}, `^runteam: replayed 2 of 2 prompts, equal to the byte\n`, exit.StatusOK},
		{"a corrective call", []record.CallID{{Attempt: 1, Part: "/repair/1"}}, `^runteam: replayed 2 of 3 prompts; the replay differs from the run\ndiffers: First: its prompt of attempt 1 repair 1 was not built again\n$`, exit.StatusFailed},
		{"an attempt", []record.CallID{{Attempt: 2}}, `^runteam: replayed 1 of 2 prompts; the replay differs from the run\ndiffers: First: its prompt of attempt 2 was not built again\n$`, exit.StatusFailed},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"team.yaml": twoInTurn})
			require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir, env: map[string]string{"KEY": "k"}}).status)
			j := openTest(t, dir, journal.Options{})
			run, stored, err := j.Resume(t.Context(), "")
			require.NoError(t, err)
			w := &writtenRun{t: t, run: run, info: stored.Info}
			for i, id := range tt.calls {
				id.Task, id.Title, id.Agent = task.NewID("First"), "First", "solo"
				id.Session = stored.Info.Run + "/" + string(id.Task) + "/1" + id.Part
				w.add(record.Entry{Exchange: &record.AgentCall{CallID: id, Keys: record.Keys{Key: record.Key{9, byte(i)}}, Start: clitest.Noon, End: clitest.Noon}})
			}
			w.end("")
			require.NoError(t, j.Close())
			got := call{dir: dir, args: []string{"replay"}, env: forbidCalls(t)}.run(t)
			require.Regexp(t, tt.want, got.stderr)
			require.Equal(t, tt.code, got.status)
		})
	}
}
