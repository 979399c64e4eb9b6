package team_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
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
