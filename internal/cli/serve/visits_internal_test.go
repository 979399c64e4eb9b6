package serve

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// TestRequestsReadEachRowOnce checks that the documents of a run that ended are made from one reading of its rows,
// however often they are requested.
func TestRequestsReadEachRowOnce(t *testing.T) {
	t.Parallel()
	const tasks, times = 30, 5
	driver, rows := journaltest.CountRows()
	j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{Driver: driver})
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	stored := runChain(t, j, tasks)
	for _, accepts := range []label.Classification{label.Confidential, label.Public} {
		t.Run(accepts.String(), func(t *testing.T) {
			con, _, _ := clitest.Console(t)
			d := newSite(con, j, &journals.Flags{}, accepts).options("test").Documents
			last := fmt.Sprintf("Task %d", tasks-1)
			requests := map[string]func() (any, error){
				"run":        func() (any, error) { return d.Runs.Run(t.Context(), stored) },
				"task":       func() (any, error) { return d.Runs.Task(t.Context(), stored, last) },
				"usage":      func() (any, error) { return d.Runs.Usage(t.Context(), stored) },
				"artifacts":  func() (any, error) { return d.Runs.Artifacts(t.Context(), stored) },
				"receipts":   func() (any, error) { return d.Receipts.Receipts(t.Context(), stored, "", "") },
				"of a task":  func() (any, error) { return d.Receipts.Receipts(t.Context(), stored, last, "") },
				"containing": func() (any, error) { return d.Receipts.Receipts(t.Context(), stored, "", "answer") },
				"handoffs": func() (any, error) {
					return d.Handoffs.Handoffs(t.Context(), stored, inspector.HandoffQuery{Task: last})
				},
				"list": func() (any, error) { return d.Runs.List(t.Context(), inspector.Page{Limit: 10}) },
			}
			rows()
			require.NoError(t, hasMade(requests["run"]()))
			require.LessOrEqual(t, rows(), all(t, j, stored, rows)+10, "the first request reads each row once")
			for name, request := range requests {
				for range times {
					require.NoError(t, hasMade(request()), name)
				}
				require.LessOrEqual(t, rows(), 10*times, "%d requests of %s", times, name)
			}
		})
	}
}

func hasMade(_ any, err error) error { return err }

// all returns how many rows a run has.
func all(t *testing.T, j *journal.Journal, run string, rows func() int) (n int) {
	t.Helper()
	tail, err := j.Tail(t.Context(), run)
	require.NoError(t, err)
	for ended := false; !ended; {
		var page [][]byte
		page, ended, err = tail.Next(t.Context())
		require.NoError(t, err)
		n += len(page)
	}
	rows() // these do not count
	return n
}

// runChain runs tasks, each of which depends on the one before, and returns the ID of the run.
func runChain(t *testing.T, j *journal.Journal, n int) (run string) {
	t.Helper()
	answer := agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "The answer.", Turns: 1}, nil
	})
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "worker", Agent: answer}}})
	require.NoError(t, err)
	specs := make([]task.Spec, n)
	for i := range specs {
		specs[i] = task.Spec{Title: fmt.Sprintf("Task %d", i), Description: "Do your part.", Assignee: "worker"}
		if i > 0 {
			specs[i].DependsOn = task.On(specs[i-1].Title)
		}
	}
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r1", Journal: journaltest.Opened(r)})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	_, err = r.Close(t.Context())
	require.NoError(t, err)
	return "r1"
}
