package cli

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/scripted"
)

// An askedQuestion is a question that runteam questions lists.
type askedQuestion struct{ ID, RunID, Prompt, AnswerCommand string }

// openQuestions returns what runteam questions lists.
func openQuestions(t *testing.T, at func(args ...string) outcome) (list []askedQuestion) {
	t.Helper()
	got := at("questions", "-o", "json")
	require.Zero(t, got.status, got.stderr)
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &list))
	return list
}

// scriptedFolder returns a folder with a spec, and a function that runs a command in it while a server answers from a script.
func scriptedFolder(t *testing.T, spec, replies string) (dir string, at func(args ...string) outcome) {
	t.Helper()
	dir = clitest.Folder(t, map[string]string{"team.yaml": spec, "script.yaml": replies})
	script, err := scripted.ReadFile("", filepath.Join(dir, "script.yaml"))
	require.NoError(t, err)
	server, err := scripted.Start(script, scripted.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return dir, func(args ...string) outcome {
		return call{dir: dir, args: args, env: map[string]string{"OPENAI_BASE_URL": server.URL()}}.run(t)
	}
}

// waitingPlan runs a team whose plan waits for a person.
func waitingPlan(t *testing.T) (dir string, at func(args ...string) outcome, q askedQuestion) {
	t.Helper()
	dir, at = scriptedFolder(t, approvedPlan, planScript)
	require.Equal(t, exit.StatusWaiting, at("run").status)
	return dir, at, openQuestions(t, at)[0]
}
