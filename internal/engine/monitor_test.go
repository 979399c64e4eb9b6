package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/queue"
	"github.com/runteam/runteam/task"
)

func TestMonitorShowsARunFromOutside(t *testing.T) {
	t.Parallel()
	var m record.Monitor
	_, err := m.Snapshot(t.Context())
	require.ErrorIs(t, err, record.ErrNoRun)

	phases := map[record.Phase]int{}
	look := func() record.Snapshot {
		s, err := m.Snapshot(t.Context())
		require.NoError(t, err)
		phases[s.Phase]++
		return s
	}
	c := &planner{plans: []string{twoTasks}}
	tm := led(t, engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		look()
		return c.Run(ctx, p)
	}), member("ada", says("found")), member("bob", func(context.Context, prompt.Prompt) (agent.Reply, error) {
		s := look()
		data, err := json.Marshal(s.Queue)
		require.NoError(t, err)
		var lists struct{ Completed, InProgress []task.ID }
		require.NoError(t, json.Unmarshal(data, &lists))
		require.Equal(t, []task.ID{task.NewID("Find")}, lists.Completed)
		require.Equal(t, []task.ID{task.NewID("Tell")}, lists.InProgress)
		return agent.Reply{Text: "told"}, nil
	}))
	res, err := tm.RunTeam(t.Context(), engine.Goal{Text: "x"}, &engine.RunOptions{Monitor: &m, Messages: []engine.Message{{From: "user", To: "bob", Text: "hello"}}})
	require.NoError(t, err)
	require.True(t, res.Success(), "%v", res.Err())
	last := look()
	require.Equal(t, map[record.Phase]int{record.PhasePlanning: 1, record.PhaseRunning: 1, record.PhaseSynthesis: 1, record.PhaseEnded: 1}, phases)
	require.Equal(t, res.RunID, last.RunID)
	require.Equal(t, res.Usage, last.Usage)

	data, err := json.Marshal(last)
	require.NoError(t, err)
	var back record.Snapshot
	require.NoError(t, json.Unmarshal(data, &back))
	require.Equal(t, 1, back.Version)
	q, err := queue.FromSnapshot(back.Queue, envelope.Header{})
	require.NoError(t, err)
	require.Equal(t, 2, q.Progress()[task.Completed])

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s, err := m.Snapshot(ctx)
	if err == nil {
		require.Equal(t, record.PhaseEnded, s.Phase)
	}
}

// A snapshot that was requested before gets the end of its run, although the
// monitor shows the next one by now.
func TestMonitorOfTwoRunsAnswersForBoth(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m record.Monitor
		tm := newTeam(t, member("ada", says("x")))
		release, first := make(chan struct{}), make(chan struct{})
		held := func(event.Event) { <-release }
		go func() {
			defer close(first)
			if _, err := tm.RunTasks(t.Context(), []task.Spec{spec("ada")}, &engine.RunOptions{RunID: "first", Monitor: &m, Subscribers: []func(event.Event){held}}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait() // its subscriber has not caught up, so it has not returned
		asked := make(chan string, 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		go func() {
			s, err := m.Snapshot(ctx)
			if err != nil {
				t.Error(err)
			}
			asked <- s.RunID
		}()
		synctest.Wait()
		run(t, tm, &engine.RunOptions{RunID: "second", Monitor: &m}, spec("ada"))
		close(release)
		require.Equal(t, "first", <-asked)
		<-first
		s, err := m.Snapshot(ctx)
		require.NoError(t, err)
		require.Equal(t, "second", s.RunID, "the last that began")
	})
}

// A subscriber may take snapshots of its run until it ends.
func TestMonitorAskedByASubscriberDelaysNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m record.Monitor
		looks := 0
		look := func(event.Event) {
			if _, err := m.Snapshot(context.Background()); err != nil {
				t.Error(err)
			}
			looks++
		}
		start := time.Now()
		run(t, newTeam(t, member("ada", says("x"))), &engine.RunOptions{Monitor: &m, Subscribers: []func(event.Event){look}}, spec("ada"))
		require.Zero(t, time.Since(start))
		require.Positive(t, looks)
	})
}

// Requirement: G42.
func TestMonitorsAndSnapshotsPrintNoPayload(t *testing.T) {
	t.Parallel()
	var m record.Monitor
	tm := newTeam(t, member("ada", says("CANARY")))
	run(t, tm, &engine.RunOptions{Monitor: &m, Bus: tm.NewBus(), Messages: []engine.Message{{From: "user", To: "ada", Text: "CANARY"}}}, spec("ada"))
	s, err := m.Snapshot(t.Context())
	require.NoError(t, err)
	data, err := json.Marshal(s)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(data), "CANARY"), "as data it is there")
	for _, v := range []any{&m, []*record.Monitor{&m}, m.Snapshot} {
		require.NotContains(t, printed(v), "CANARY")
	}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		var log bytes.Buffer
		slog.New(slog.NewJSONHandler(&log, nil)).Info("look", "snapshot", s)
		require.NotContains(t, log.String(), "CANARY")
		require.NotContains(t, fmt.Sprintf(verb, s)+fmt.Sprintf(verb, &s)+fmt.Sprintf(verb, []record.Snapshot{s}), "CANARY")
	}
}
