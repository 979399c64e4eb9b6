package engine_test

import (
	"context"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A stored answer of another agent is not used, even under the key of the prompt.
//
// Requirement: G19.
func TestAnswerOfAnotherAgentIsNotTaken(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{{Title: "a", Description: "A.", Assignee: "worker"}, {Title: "c", Description: "C.", Assignee: "other"}}
	journal := &memory{}
	want := run(t, teamOf(t, &counter{}, pair(&counter{})), &engine.RunOptions{RunID: "r", Journal: journal}, specs...)
	past := journal.history(journal.len())
	var x []*record.AgentCall
	for i := range past.Log {
		if e := past.Log[i].Exchange; e != nil {
			past.Log[i].Exchange = new(*e)
			x = append(x, past.Log[i].Exchange)
		}
	}
	require.Len(t, x, 2)
	x[0].Key, x[1].Key = x[1].Key, x[0].Key
	x[0].Core, x[1].Core = x[1].Core, x[0].Core
	x[0].Reuse, x[1].Reuse = x[1].Reuse, x[0].Reuse
	for name, o := range map[string]*engine.RunOptions{
		"resume": {RunID: "r", Journal: after(past)}, "reuse": {RunID: "s", Reuse: true, Journal: &memory{others: []record.AgentCall{*x[0], *x[1]}}},
	} {
		c := &counter{}
		res := run(t, teamOf(t, c, pair(c)), o, specs...)
		require.Equal(t, answers(want), answers(res), name)
		require.Equal(t, map[string]int{"a": 1, "c": 1}, c.count(), name)
	}
}

// A result from before lives no longer than its task and what it was made from say now.
//
// Requirement: G16.
func TestPriorResultExpiresByTheCurrentLimits(t *testing.T) {
	t.Parallel()
	uses := func() []task.Spec {
		s := two()
		s[0].Uses = []task.Use{{Name: "facts"}}
		return s
	}
	journal := &memory{}
	run(t, teamOf(t, &counter{}), &engine.RunOptions{RunID: "r", Journal: journal, Inputs: []engine.Input{{Name: "facts", Text: "x"}}}, uses()...)
	past := journal.history(journal.len())
	for name, change := range map[string]func([]task.Spec, *engine.Input){
		"of its task": func(s []task.Spec, _ *engine.Input) { s[0].TTL = time.Minute },
		"of an input": func(_ []task.Spec, in *engine.Input) { in.TTL = time.Minute },
	} {
		specs, in := uses(), engine.Input{Name: "facts", Text: "x"}
		change(specs, &in)
		c := &counter{}
		res := run(t, teamOf(t, c), &engine.RunOptions{RunID: "r", Inputs: []engine.Input{in}, Journal: after(past)}, specs...)
		require.Empty(t, c.count(), name)
		for _, tk := range res.Tasks {
			at := tk.Envelope.Header().ExpiresAt
			require.False(t, at.IsZero(), "%s: %s", name, tk.Title)
			require.WithinDuration(t, time.Now().Add(time.Minute), at, 30*time.Second)
		}
	}
}

// Requirement: G18.
func TestHistoryOfAnotherRunIsRefused(t *testing.T) {
	t.Parallel()
	past := ended(t, two())
	_, err := start(t.Context(), teamOf(t, &counter{}), two(), &engine.RunOptions{RunID: "other", Journal: after(past)})
	require.ErrorContains(t, err, `the journal has run "r" in its place`)
}

// Agents that are called in a replay read no expired context.
//
// Requirement: G16.
func TestReplayThatCallsAgentsWithholdsExpiredContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		specs := append(two(), task.Spec{Title: "z", Description: "Z.", Assignee: "worker"})
		specs[0].TTL = time.Hour
		specs[1].DependsOn = task.On("a", "z")
		journal := &memory{}
		res, err := teamOf(t, &counter{}).RunTasks(context.Background(), specs, &engine.RunOptions{RunID: "r", Journal: journal})
		require.NoError(t, err)
		require.NoError(t, res.Err())
		time.Sleep(2 * time.Hour)
		var seen string
		w := versioned{engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			seen += p.Text()
			return agent.Reply{Text: "x"}, nil
		})}
		_, err = start(context.Background(), teamOf(t, w), specs, &engine.RunOptions{RunID: "s", Replay: &engine.Replay{Ask: true, Without: []string{"z"}}, Journal: after(journal.history(journal.len()))})
		require.NoError(t, err)
		require.NotEmpty(t, seen)
		require.NotContains(t, seen, journal.exchanges()[0].Result.Text)
	})
}

// A flakyRecall is a journal that cannot be read from its second question on.
type flakyRecall struct {
	memory
	calls int
}

func (f *flakyRecall) OpenRun(context.Context, record.Opening) (record.Log, error) { return f, nil }

func (f *flakyRecall) CachedAnswers(context.Context, record.Key) iter.Seq2[*record.AgentCall, error] {
	return func(yield func(*record.AgentCall, error) bool) {
		f.mu.Lock()
		f.calls++
		fails := f.calls > 1
		f.mu.Unlock()
		if fails {
			yield(nil, errDisk)
		}
	}
}

// What cannot be prepared because of the journal is not tried again and again.
func TestPrefetchStopsWhenTheJournalFails(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{{Title: "a", Description: "A.", Assignee: "worker"}, {Title: "b", Description: "B.", Assignee: "worker"}}
	f := &flakyRecall{}
	w := versioned{engine.AgentFunc(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
		for range 1000 { // others may go on for a while
			f.mu.Lock()
			n := f.calls
			f.mu.Unlock()
			if n > 10 {
				break
			}
			time.Sleep(100 * time.Microsecond)
		}
		return agent.Reply{Text: "x"}, nil
	})}
	res := run(t, teamOf(t, w), &engine.RunOptions{Journal: f, Reuse: true, MaxConcurrency: 1}, specs...)
	require.ErrorIs(t, res.Err(), errDisk)
	require.Equal(t, 2, f.calls)
}

// A task that was interrupted, and then failed because of another one, has valid times.
func TestInterruptedTaskThatFailsHasTimes(t *testing.T) {
	t.Parallel()
	then := time.Now().Add(-time.Hour)
	past := &record.History{Begins: []record.RunStart{{Run: "r", Time: then}}, Log: []record.Entry{
		{Asked: &record.CallStart{Session: "r/" + string(task.NewID("b")) + "/1", Task: task.NewID("b"), Agent: "worker", Attempt: 1, Time: then, Bytes: 40}},
	}}
	res := run(t, teamOf(t, &counter{fail: map[string]bool{"a": true}}), &engine.RunOptions{RunID: "r", Journal: after(past)}, two()...)
	require.False(t, of(t, res, "b").Metrics.End.IsZero())
	require.False(t, strings.Contains(document(t, res), "-62135596800000"))
}
