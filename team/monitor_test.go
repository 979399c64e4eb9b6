package team_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/queue"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

func TestMonitorShowsARunFromOutside(t *testing.T) {
	t.Parallel()
	var m team.Monitor
	_, err := m.Snapshot(t.Context())
	require.ErrorIs(t, err, team.ErrNoRun)

	phases := map[team.Phase]int{}
	look := func() team.Snapshot {
		s, err := m.Snapshot(t.Context())
		require.NoError(t, err)
		phases[s.Phase]++
		return s
	}
	c := &planner{plans: []string{twoTasks}}
	tm := led(t, team.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		look()
		return c.Run(ctx, p)
	}), member("ada", says("found")), member("bob", func(context.Context, prompt.Prompt) (agent.Reply, error) {
		s := look()
		require.Equal(t, []task.ID{task.NewID("Find")}, s.Queue.Completed)
		require.Equal(t, []task.ID{task.NewID("Tell")}, s.Queue.InProgress)
		return agent.Reply{Text: "told"}, nil
	}))
	res, err := tm.RunTeam(t.Context(), team.Goal{Text: "x"}, &team.RunOptions{Monitor: &m, Messages: []team.Message{{From: "ada", To: "bob", Text: "hello"}}})
	require.NoError(t, err)
	require.True(t, res.Success(), "%v", res.Err())
	last := look()
	require.Equal(t, map[team.Phase]int{team.PhasePlanning: 1, team.PhaseRunning: 1, team.PhaseSynthesis: 1, team.PhaseEnded: 1}, phases)
	require.Equal(t, res.RunID, last.RunID)
	require.Equal(t, res.Usage, last.Usage)

	data, err := json.Marshal(last)
	require.NoError(t, err)
	var back team.Snapshot
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, 1, back.Version)
	q, err := queue.FromSnapshot(*back.Queue, envelope.Header{})
	require.NoError(t, err)
	require.Equal(t, 2, q.Progress().Completed)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := m.Snapshot(ctx)
	if err == nil {
		require.Equal(t, team.PhaseEnded, s.Phase)
	}
}
