package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

func abortedIn(title string, calls *atomic.Int32) (engine.Agent, context.Context) {
	ctx, cancel := context.WithCancel(context.Background())
	return versioned{engine.AgentFunc(func(c context.Context, p prompt.Prompt) (agent.Reply, error) {
		calls.Add(1)
		if p.Receipt().Task != task.NewID(title) {
			return agent.Reply{Text: "ok"}, nil
		}
		time.Sleep(50 * time.Millisecond) // others are prepared
		cancel()
		<-c.Done()
		return agent.Reply{}, c.Err()
	})}, ctx
}

// What was prepared and never sent counts for nothing.
func TestPrefetchedAttemptIsNotInterrupted(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{{Title: "a", Description: "A.", Assignee: "worker"}, {Title: "b", Description: "B.", Assignee: "worker"}}
	var calls atomic.Int32
	w, ctx := abortedIn("a", &calls)
	journal := &memory{}
	_, err := teamOf(t, w).RunTasks(ctx, specs, &engine.RunOptions{RunID: "r", Journal: journal, MaxConcurrency: 1})
	require.NoError(t, err)
	res := run(t, teamOf(t, &counter{}), &engine.RunOptions{RunID: "r", Journal: after(journal.history(journal.len()))}, specs...)
	require.EqualValues(t, 1, calls.Load())
	require.Zero(t, of(t, res, "b").Metrics.Interrupted)
}

// A replay of an aborted run ends as that did.
func TestReplayOfAnAbortedRunEndsAsItDid(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	w, ctx := abortedIn("b", &calls)
	journal := &memory{}
	want, err := teamOf(t, w).RunTasks(ctx, two(), &engine.RunOptions{RunID: "r", Journal: journal})
	require.NoError(t, err)
	got := run(t, teamOf(t, nobody(t)), &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(journal.history(journal.len()))}, two()...)
	require.Equal(t, want.Status, got.Status)
	require.Equal(t, want.Usage, got.Usage)
	for i := range want.Tasks {
		require.Equal(t, want.Tasks[i].Result, got.Tasks[i].Result)
	}
}

// The context of a reused answer is recorded like any other.
//
// Requirement: G44.
func TestContextOfACachedAnswerIsRecorded(t *testing.T) {
	t.Parallel()
	first := &memory{}
	run(t, teamOf(t, &counter{}), &engine.RunOptions{RunID: "r", Journal: first}, two()...)
	n := 0
	rec := func(_ context.Context, r record.Prompt) error {
		for _, h := range r.Handoffs {
			if h.To == "worker" {
				n++
			}
		}
		return nil
	}
	run(t, teamOf(t, &counter{}), &engine.RunOptions{RunID: "s", Reuse: true, Journal: &memory{others: first.exchanges()}, Recorder: rec}, two()...)
	require.Equal(t, 1, n, "from a to b")
}

// A journal has no exact sizes of values above the caller.
//
// Requirement: G50.
func TestJournalStoresSizeClassesAboveTheCaller(t *testing.T) {
	t.Parallel()
	journal := &memory{}
	specs := []task.Spec{{Title: "a", Description: "A.", Assignee: "worker"}}
	_, err := teamOf(t, &counter{}).RunTasks(t.Context(), specs, &engine.RunOptions{Journal: journal, Inputs: []engine.Input{{Name: "x", Text: "1234567", Classification: label.Secret}}})
	require.NoError(t, err)
	require.NotEqual(t, 7, journal.history(journal.len()).Begins[0].Inputs[0].Bytes)
}
