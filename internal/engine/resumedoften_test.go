package engine_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// joined is what a journal has after several processes.
func joined(hs ...*record.History) *record.History {
	h := &record.History{}
	for _, x := range hs {
		h.Begins, h.Log, h.End = append(h.Begins, x.Begins...), append(h.Log, x.Log...), x.End
	}
	return h
}

// However often a goal is resumed, its usage stays the same.
func TestGoalThatIsResumedOftenCountsOnce(t *testing.T) {
	t.Parallel()
	const plan = `[{"title":"find","description":"Find it.","assignee":"worker"},{"title":"write","description":"Write it.","assignee":"worker","dependsOn":["find"]}]`
	with := func() *engine.Team {
		p := &planner{plans: []string{"no plan", plan}}
		return teamOf(t, &counter{}, func(c *engine.Config) { c.Coordinator = &engine.Coordinator{Agent: versioned{p}} })
	}
	goal := engine.Goal{Text: "Tell what there is."}
	first := &memory{}
	want, err := with().RunTeam(t.Context(), goal, &engine.RunOptions{RunID: "r", Journal: first})
	require.NoError(t, err)
	past := first.history(first.len())
	for range 3 {
		next := &memory{}
		res, err := startGoal(t.Context(), with(), goal, &engine.RunOptions{RunID: "r", Journal: next.after(past)})
		require.NoError(t, err)
		require.NoError(t, res.Err())
		past = joined(past, next.history(next.len()))
		require.Equal(t, want.Usage, res.Usage)
		require.Equal(t, want.Context, res.Context)
		for k := range res.Steps {
			require.Equal(t, want.Steps[k].Metrics.Usage, res.Steps[k].Metrics.Usage)
		}
	}
	// and its replay
	res, err := startGoal(t.Context(), with(), goal, &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(past)})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Equal(t, want.Output, res.Output)
	require.Len(t, res.Steps, len(want.Steps))
}

// Retries, failures and what they mean for optional readers come again, also of a
// run that was resumed after it had failed.
func TestReplayOfRetriesAndOfAResumedRun(t *testing.T) {
	t.Parallel()
	n := 0
	var w engine.Agent = engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		if n++; n%2 == 1 {
			return agent.Reply{}, errors.New("once")
		}
		return agent.Reply{Text: "ok"}, nil
	})
	w = versioned{w}
	specs := []task.Spec{{Title: "a", Description: "A.", Assignee: "worker", MaxRetries: 2, RetryDelay: task.NoDelay}, {Title: "b", Description: "B", Assignee: "worker", DependsOn: task.On("a")}, {Title: "c", Description: "B", Assignee: "worker", DependsOn: []task.Ref{{Task: "b", Optional: true}}}}
	journal := &memory{}
	want := run(t, teamOf(t, w), &engine.RunOptions{RunID: "r", Journal: journal}, specs...)
	got := run(t, teamOf(t, nobody(t)), &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(journal.history(journal.len()))}, specs...)
	same(t, document(t, want), document(t, got))
	// resumed after a failure, failing again, then done
	past := journal.history(journal.len())
	n = 1
	next := &memory{}
	want = run(t, teamOf(t, w), &engine.RunOptions{RunID: "r", Journal: next.after(past)}, specs...)
	got = run(t, teamOf(t, nobody(t)), &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(joined(past, next.history(next.len())))}, specs...)
	same(t, document(t, want), document(t, got))
}
