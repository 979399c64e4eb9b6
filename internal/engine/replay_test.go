package engine_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// nobody is an agent that must not be called.
func nobody(t require.TestingT) engine.Agent {
	return versioned{engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		t.Errorf("an agent was asked: %v", p)
		return agent.Reply{}, nil
	})}
}

// document is a result as it is printed.
func document(t require.TestingT, res *engine.Result) string {
	text, err := res.MarshalJSON()
	require.NoError(t, err)
	return string(text)
}

// same requires two documents to be equal, and shows where they are not.
func same(t require.TestingT, want, got string) {
	at := 0
	for at < min(len(want), len(got)) && want[at] == got[at] {
		at++
	}
	if want != got {
		t.Errorf("from byte %d on\n%s\nbecame\n%s", at, want[max(at-80, 0):min(at+200, len(want))], got[max(at-80, 0):min(at+200, len(got))])
		t.FailNow()
	}
}

// drawRun draws tasks of which some see the shared memory, and messages.
func drawRun(t *rapid.T) ([]task.Spec, engine.RunOptions) {
	specs := drawGraph(t, 8)
	o := engine.RunOptions{RunID: "r", MaxConcurrency: rapid.IntRange(1, 4).Draw(t, "at once")}
	for i := range specs {
		if rapid.IntRange(0, 2).Draw(t, "scope") == 0 {
			specs[i].MemoryScope = task.ScopeAll
		}
		specs[i].Assignee = rapid.SampledFrom([]string{"worker", "other"}).Draw(t, "agent")
		if rapid.Bool().Draw(t, "uses") {
			specs[i].Uses = []task.Use{{Name: "facts"}}
		}
	}
	o.Inputs = []engine.Input{{Name: "facts", Text: "The sky is blue."}}
	for range rapid.IntRange(0, 2).Draw(t, "messages") {
		o.Messages = append(o.Messages, engine.Message{From: "user", To: rapid.SampledFrom([]string{"worker", "other", "*"}).Draw(t, "to"), Text: "Mind the gap."})
	}
	return specs, o
}

func pair(a engine.Agent) func(*engine.Config) {
	return func(c *engine.Config) {
		c.Agents = append(c.Agents, engine.Member{Name: "other", Agent: a, Accepts: c.Agents[0].Accepts})
	}
}

// A run is repeated from its journal: no agent is called, and the result is the
// same to the byte, also of what failed and of what was never begun.
func TestReplayEqualsTheRun(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		specs, o := drawRun(t)
		c := &counter{fail: map[string]bool{}}
		for _, s := range specs {
			c.fail[s.Title] = rapid.IntRange(0, 5).Draw(t, "fails") == 0
		}
		journal := &memory{}
		o.Journal = journal
		want, err := teamOf(t, c, pair(c)).RunTasks(context.Background(), specs, &o)
		require.NoError(t, err)

		o.Journal, o.Replay = after(journal.history(journal.len())), &engine.Replay{}
		got, err := start(context.Background(), teamOf(t, nobody(t), pair(nobody(t))), specs, &o)
		require.NoError(t, err)
		same(t, document(t, want), document(t, got))
	})
}

func TestReplayOfAnEditedRunNamesTheChangedPrompt(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{{Title: "a", Description: "A.", Assignee: "worker"}, {Title: "b", Description: "B.", Assignee: "worker", DependsOn: task.On("a")}}
	journal := &memory{}
	run(t, teamOf(t, &counter{}), &engine.RunOptions{RunID: "r", Journal: journal}, specs...)
	specs[1].Description = "Better."
	res := run(t, teamOf(t, nobody(t)), &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(journal.history(journal.len()))}, specs...)
	require.Equal(t, []task.Status{task.Completed, task.Failed}, statuses(res))
	require.Equal(t, codes.Replay, of(t, res, "b").Error.Code)
}

// Without some context, only agents are called whose prompts contained it, directly
// or in text derived from it.
func TestReplayWithoutContextCallsOnlyItsReaders(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		specs, o := drawRun(t)
		journal := &memory{}
		o.Journal = journal
		before := map[string]string{}
		c := &recorded{counter: &counter{}, prompts: before}
		_, err := teamOf(t, c, pair(c)).RunTasks(context.Background(), specs, &o)
		require.NoError(t, err)

		replay, history := &engine.Replay{Ask: true}, after(journal.history(journal.len()))
		if len(specs) > 1 && rapid.Bool().Draw(t, "a task") {
			replay.Without = []string{rapid.SampledFrom(specs).Draw(t, "without").Title}
		} else {
			replay.WithoutInputs = []string{"facts"}
		}
		after := map[string]string{}
		again := &recorded{counter: &counter{}, prompts: after}
		o.Journal, o.Replay, o.RunID = history, replay, "again"
		res, err := start(context.Background(), teamOf(t, again, pair(again)), specs, &o)
		require.NoError(t, err)
		require.NoError(t, res.Err())
		for title, text := range after {
			require.NotEqual(t, before[title], text, "%q was asked the same again", title)
		}
		for _, tk := range res.Tasks {
			require.Equal(t, after[tk.Title] == "", tk.Reused == "r", tk.Title)
			require.False(t, slices.Contains(replay.Without, tk.Title))
		}
	})
}

// recorded notes the last prompt of each task.
type recorded struct {
	*counter
	prompts map[string]string
}

func (r *recorded) Run(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
	title, _, _ := strings.Cut(strings.TrimPrefix(p.Text(), "# Task: "), "\n")
	r.mu.Lock()
	r.prompts[title] = p.Text()
	r.mu.Unlock()
	return r.counter.Run(ctx, p)
}

func TestReplayWithoutUnknownContextIsRefused(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{{Title: "write", Description: "A.", Assignee: "worker"}}
	for _, r := range []*engine.Replay{{Without: []string{"wrte"}}, {WithoutInputs: []string{"facts"}}, {Without: []string{"Write"}}} {
		_, err := start(t.Context(), teamOf(t, nobody(t)), specs, &engine.RunOptions{Replay: r, Journal: after(&record.History{})})
		require.Error(t, err)
	}
	_, err := start(t.Context(), teamOf(t, nobody(t)), specs, &engine.RunOptions{Replay: &engine.Replay{Without: []string{"wrte"}}, Journal: after(&record.History{})})
	require.ErrorContains(t, err, `did you mean "write"?`)
}

// A goal is repeated as well: the plan is not made again, and neither is an answer
// that there was.
func TestGoalResumesAfterEveryCommit(t *testing.T) {
	t.Parallel()
	const plan = `[{"title":"find","description":"Find it.","assignee":"worker"},{"title":"write","description":"Write it.","assignee":"worker","dependsOn":["find"]}]`
	lead := func() *planner { return &planner{plans: []string{"no plan", plan}} }
	with := func(a engine.Agent, p *planner) *engine.Team {
		return teamOf(t, a, func(c *engine.Config) { c.Coordinator = &engine.Coordinator{Agent: versioned{p}} })
	}
	goal := engine.Goal{Text: "Tell what there is."}
	journal, first := &memory{}, lead()
	want, err := with(&counter{}, first).RunTeam(t.Context(), goal, &engine.RunOptions{RunID: "r", Journal: journal})
	require.NoError(t, err)
	require.NoError(t, want.Err())
	require.Len(t, first.prompts, 3)
	for n := range journal.len() + 1 {
		past := journal.history(n)
		done := map[string]int{}
		for _, e := range past.Log {
			if e.Exchange != nil {
				done[e.Exchange.Agent]++
			}
		}
		again, c := lead(), &counter{}
		if done["coordinator"] > 0 {
			again.plans = again.plans[1:] // the first answer is in the journal
		}
		res, err := startGoal(t.Context(), with(c, again), goal, &engine.RunOptions{RunID: "r", Journal: (&memory{}).after(past)})
		require.NoError(t, err)
		require.NoError(t, res.Err())
		require.Equal(t, want.Output, res.Output)
		require.Equal(t, answers(want), answers(res))
		require.Len(t, again.prompts, 3-done["coordinator"], "after %d commits", n)
		require.Len(t, c.count(), 2-done["worker"])
		require.Len(t, res.Steps, 3)
	}

	replayed, err := startGoal(t.Context(), with(nobody(t), &planner{}), goal, &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(journal.history(journal.len()))})
	require.NoError(t, err)
	same(t, document(t, want), document(t, replayed))

	reused, err := with(nobody(t), &planner{}).RunTeam(t.Context(), goal, &engine.RunOptions{RunID: "s", Reuse: true, Journal: &memory{others: journal.exchanges()}})
	require.NoError(t, err)
	require.NoError(t, reused.Err())
	require.Equal(t, want.Output, reused.Output)
	require.Zero(t, reused.Usage)
}

// Messages and the shared memory do not make a task run again: they depend on
// when it ran.
func TestRunResumesWithMemoryAndMessages(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		specs, o := drawRun(t)
		journal := &memory{}
		o.Journal = journal
		_, err := teamOf(t, &counter{}, pair(&counter{})).RunTasks(context.Background(), specs, &o)
		require.NoError(t, err)
		for n := range journal.len() + 1 {
			past := journal.history(n)
			completed, told := map[string]bool{}, map[string]int{}
			for _, e := range past.Log {
				if e.Exchange != nil && e.Exchange.Completed() {
					completed[e.Exchange.Title] = true
					for _, m := range e.Exchange.Messages {
						told[m]++
					}
				}
			}
			c, after := &counter{}, &memory{}
			o.Journal = after.after(past)
			res, err := start(context.Background(), teamOf(t, c, pair(c)), specs, &o)
			require.NoError(t, err)
			require.NoError(t, res.Err())
			ran := map[string]bool{}
			for title := range c.count() {
				ran[title] = true
			}
			for title := range maps.Keys(completed) {
				require.False(t, ran[title], "%s after %d commits", title, n)
			}
			for _, x := range after.exchanges() {
				for _, m := range x.Messages {
					told[m]++
				}
			}
			for m, times := range told {
				readers := 1
				if slices.ContainsFunc(o.Messages, func(m engine.Message) bool { return m.To == "*" }) {
					readers = 2
				}
				require.LessOrEqual(t, times, readers, fmt.Sprintf("message %s", m))
			}
		}
	})
}
