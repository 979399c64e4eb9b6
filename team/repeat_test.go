package team_test

import (
	"context"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// writing is a loop in which a critic accepts a draft in the round with this number.
func writing(t *testing.T, accepted int, loop task.Repeat) (*team.Team, []task.Spec) {
	t.Helper()
	var round atomic.Int64
	writer := agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		n := round.Add(1)
		require.True(t, strings.HasPrefix(p.Text(), "# Task: Write\n"), p.Text())
		require.Equal(t, n > 1, strings.Contains(p.Text(), "### Check (by critic)"), p.Text())
		return agent.Reply{Text: fmt.Sprint("draft ", n)}, nil
	})
	critic := agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		require.Contains(t, p.Text(), fmt.Sprint("draft ", round.Load()))
		return agent.Reply{Text: fmt.Sprintf(`{"valid":%t,"feedback":"more"}`, round.Load() >= int64(accepted))}, nil
	})
	last := agent.Func(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		require.Contains(t, p.Text(), "### Draft (by writer)")
		return agent.Reply{Text: "published: " + p.Sections()[0].Text}, nil
	})
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "writer", Agent: writer}, {Name: "critic", Agent: critic}, {Name: "publisher", Agent: last}}})
	require.NoError(t, err)
	loop.Until, loop.Output = task.Equals("Check", "/valid", true), "Write"
	loop.Tasks = []task.Spec{
		{Title: "Write", Description: "d", Assignee: "writer", DependsOn: []task.Ref{{Task: "Check", Round: task.Previous, Need: []task.Path{"/feedback"}, Optional: true}}},
		{Title: "Check", Description: "d", Assignee: "critic", DependsOn: task.On("Write"),
			OutputSchema: []byte(`{"type":"object","properties":{"valid":{"type":"boolean"},"feedback":{"type":"string"}},"required":["valid","feedback"]}`)},
	}
	return tm, []task.Spec{
		{Title: "Draft", Repeat: &loop},
		{Title: "Publish", Description: "d", Assignee: "publisher", DependsOn: task.On("Draft")},
	}
}

func TestRepeat(t *testing.T) {
	t.Parallel()
	for accepted, rounds := range map[int]int{1: 1, 2: 2, 4: 4, 9: 4} {
		tm, specs := writing(t, accepted, task.Repeat{MaxRounds: 4})
		res, err := tm.RunTasks(t.Context(), specs, nil)
		require.NoError(t, err)
		require.Equal(t, team.StatusOK, res.Status, res.Errors)
		require.Equal(t, fmt.Sprint("published: draft ", rounds), res.Output)
		var titles []string
		for i := range res.Tasks {
			titles = append(titles, res.Tasks[i].Title)
		}
		require.Len(t, titles, 2*rounds+2, titles)
	}
}

func TestRepeatFailsAtItsLimit(t *testing.T) {
	t.Parallel()
	tm, specs := writing(t, 9, task.Repeat{MaxRounds: 2, OnLimit: "fail"})
	res, err := tm.RunTasks(t.Context(), specs, nil)
	require.Error(t, err)
	loop, _ := res.Task("Draft")
	require.Equal(t, "LOOP_LIMIT", loop.Error.Code)
	require.Equal(t, task.Failed, loop.Status)
}

// A loop that is interrupted at any point goes on where it was, and asks nothing twice but what
// the interruption cut off.
func TestInterruptedLoop(t *testing.T) {
	t.Parallel()
	for stop := range 8 {
		j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
		require.NoError(t, err)
		asked := map[string]int{}
		ctx, cancel := context.WithCancel(t.Context())
		tm := deterministic(t, func(p string) {
			asked[p]++
			if len(asked) == stop {
				cancel()
			}
		})
		_, specs := writing(t, 0, task.Repeat{MaxRounds: 4})
		res, err := tm.RunTasks(ctx, specs, &team.RunOptions{RunID: "r", Journal: j})
		if stop > 0 {
			require.Error(t, err)
			require.Equal(t, team.StatusCanceled, res.Status)
			require.Len(t, asked, stop)
			res, err = tm.Resume(t.Context(), "r", &team.RunOptions{Journal: j, Tasks: specs})
		}
		require.NoError(t, err)
		require.Equal(t, "published draft after draft after draft first", res.Output)
		twice := 0
		for prompt, n := range asked {
			require.LessOrEqual(t, n, 2, prompt)
			twice += n - 1
		}
		require.LessOrEqual(t, twice, 1)
		require.Len(t, asked, 7)
		require.NoError(t, j.Close())
		cancel()
	}
}

// deterministic is a team whose agents answer equal prompts equally: the third draft is accepted.
func deterministic(t *testing.T, hears func(p string)) *team.Team {
	t.Helper()
	var mu sync.Mutex
	says := func(does func(text string) string) agent.Agent {
		return versionedAgent{agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			mu.Lock()
			defer mu.Unlock()
			hears(p.Text())
			return agent.Reply{Text: does(p.Text())}, ctx.Err()
		})}
	}
	draft := regexp.MustCompile(`draft (after draft )*first`)
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "writer", Agent: says(func(text string) string {
			if before := draft.FindString(text); before != "" {
				return "draft after " + before
			}
			return "draft first"
		})},
		{Name: "critic", Agent: says(func(text string) string {
			before := draft.FindString(text)
			return fmt.Sprintf(`{"valid":%t,"feedback":%q}`, strings.Count(before, "draft") == 3, before)
		})},
		{Name: "publisher", Agent: says(func(text string) string { return "published " + draft.FindString(text) })},
	}})
	require.NoError(t, err)
	return tm
}

// A versionedAgent answers equal prompts equally, so that a journal keeps its answers.
type versionedAgent struct{ agent.Agent }

func (versionedAgent) Version() string { return "1" }

// A loop whose result is missing in the last round has not the one of the round before, and one
// that no check accepted has not met its condition.
func TestLoopWithoutALastResult(t *testing.T) {
	t.Parallel()
	schema := []byte(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`)
	var checks, polished atomic.Int64
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "critic", Agent: agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: fmt.Sprintf(`{"ok":%t}`, checks.Add(1) == 2)}, nil
		})},
		{Name: "editor", Agent: agent.Func(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			if polished.Add(1) == 2 {
				return agent.Reply{}, fmt.Errorf("no more")
			}
			return agent.Reply{Text: "out of date"}, nil
		})},
	}})
	require.NoError(t, err)
	loop := task.Repeat{MaxRounds: 3, Until: task.Equals("Check", "/ok", true), Output: "Polish", Tasks: []task.Spec{
		{Title: "Check", Description: "d", Assignee: "critic", OutputSchema: schema},
		{Title: "Polish", Description: "d", Assignee: "editor", DependsOn: []task.Ref{{Task: "Check"}, {Task: "Polish", Round: task.Previous, Optional: true}}},
	}}
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Draft", Repeat: &loop}}, nil)
	require.Error(t, err)
	draft, _ := res.Task("Draft")
	require.Equal(t, task.Failed, draft.Status)
	require.Empty(t, draft.Structured)

	checks.Store(9)
	loop = task.Repeat{MaxRounds: 3, Until: task.Equals("Check", "/ok", true), Output: "Write", OnLimit: "fail", Tasks: []task.Spec{
		{Title: "Write", Description: "d", Assignee: "critic", OutputSchema: schema},
		{Title: "Check", Description: "d", Assignee: "critic", When: task.Equals("Write", "/ok", true), OutputSchema: schema},
	}}
	res, err = tm.RunTasks(t.Context(), []task.Spec{{Title: "Draft", Repeat: &loop}}, nil)
	require.Error(t, err)
	draft, _ = res.Task("Draft")
	require.Equal(t, "LOOP_LIMIT", draft.Error.Code)

	loop.Until = task.Any(task.Equals("Write", "/ok", false), task.Equals("Check", "/ok", true))
	res, err = tm.RunTasks(t.Context(), []task.Spec{{Title: "Draft", Repeat: &loop}}, nil)
	require.NoError(t, err, "it holds without the check that was not needed")
	draft, _ = res.Task("Draft")
	require.Equal(t, task.Completed, draft.Status)
}
