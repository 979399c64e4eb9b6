package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/view"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/stretchr/testify/require"
)

// largeRun stores a run of n tasks in a chain of rows of 50.
func largeRun(b *testing.B, dir string, n int) {
	b.Helper()
	j, err := journal.Open(filepath.Join(dir, "runs.db"), journal.Options{})
	require.NoError(b, err)
	defer j.Close() //nolint:errcheck // it ends with the benchmark
	echo := team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: strings.Repeat("word ", 20)}, nil
	})
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "a", Agent: echo}}})
	require.NoError(b, err)
	tasks := make([]task.Spec, n)
	for i := range tasks {
		tasks[i] = task.Spec{Title: fmt.Sprintf("T%d", i), Assignee: "a", Description: "Do it."}
		if i >= 50 {
			tasks[i].DependsOn = task.On(fmt.Sprintf("T%d", i-50))
		}
	}
	_, err = tm.RunTasks(b.Context(), tasks, &team.RunOptions{RunID: "large", Journal: j, MaxConcurrency: 16})
	require.NoError(b, err)
}

// BenchmarkOpenRun reads a run of 5,000 tasks and makes its document, as for a viewer who opens it. It took
// 1.0 s of processor time on two busy cores.
func BenchmarkOpenRun(b *testing.B) {
	dir := clitest.Folder(b, nil)
	largeRun(b, dir, 5000)
	con, _, _ := clitest.Console(b)
	j, _, err := journals.Open(con, &journals.Flags{Named: filepath.Join(dir, "runs.db")}, journals.ToRead)
	require.NoError(b, err)
	defer j.Close() //nolint:errcheck // nothing was written
	for b.Loop() {
		found, err := journals.Find(b.Context(), j, "large")
		require.NoError(b, err)
		k, err := journals.Load(b.Context(), con, j, found, "")
		require.NoError(b, err)
		text, err := json.Marshal(view.Of(k))
		require.NoError(b, err)
		require.Greater(b, len(text), 1<<20)
	}
}
