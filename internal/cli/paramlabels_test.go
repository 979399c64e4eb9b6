package cli

import (
	"path/filepath"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
)

// A parameter is as sensitive as the goal that quotes it, whether the coordinator
// plans the goal or only answers it.
func TestParametersTakeTheLabelOfTheGoalThatQuotesThem(t *testing.T) {
	t.Parallel()
	for name, tasks := range map[string]string{
		"planned":  "",
		"answered": "tasks: [{title: Plain, assignee: a, description: Say something.}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{
				"team.yaml": `
params: {pin: }
agents: [{name: a, accepts: confidential}]
coordinator: {accepts: confidential}
goal: {text: 'Use ${params.pin}.', classification: confidential}
` + tasks,
			})
			db := filepath.Join(dir, "runs.db")
			got := call{bare: true, dir: dir, args: []string{"run", "--offline", "--journal", db, "--param", "pin=4711"}}.run(t)
			require.NotEqual(t, exit.StatusUsage, got.status, "%+v", got)
			j, err := journal.Open(db, journal.Options{ReadOnly: true})
			require.NoError(t, err)
			defer j.Close()
			s, err := j.Load(t.Context(), "")
			require.NoError(t, err)
			found := false
			for _, f := range s.Info.Files {
				if f.Path == journal.GivenParam+"pin" {
					require.Equal(t, label.Confidential, f.Label)
					found = true
				}
			}
			require.True(t, found)
		})
	}
}
