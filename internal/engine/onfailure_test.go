package engine_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// continuing is a task whose failure is accepted.
func continuing(s task.Spec) task.Spec {
	s.OnFailure = task.ContinueRun
	return s
}

// Whether a failure is accepted depends on its code alone.
func TestAcceptedFailuresByCode(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		agent    agentFunc
		code     string
		accepted bool
	}{
		{fails(errBroken), codes.Agent, true},
		{func(context.Context, prompt.Prompt) (agent.Reply, error) { panic("x") }, codes.Panic, true},
		{fails(&llm.Error{Kind: callfault.ServerError}), "MODEL_SERVER_ERROR", true},
		{fails(context.DeadlineExceeded), codes.Timeout, true},
		{fails(codes.Condition(codes.Schema)), codes.Schema, true},
		{fails(codes.Condition(codes.Refused)), codes.Refused, true},
		{fails(codes.Condition(codes.MaxTurns)), codes.MaxTurns, true},
		{fails(engine.ErrMemory), codes.Memory, true},
		{fails(engine.ErrBudget), codes.Budget, true}, // of the agent: the run has none
		{fails(engine.ErrRecord), codes.Record, false},
		{fails(engine.ErrEffectsUncertain), codes.Effects, false},
		{fails(context.Canceled), codes.Canceled, false},
		{func(context.Context, prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: "x", Usage: llm.Usage{InputTokens: -1}}, nil
		}, codes.Reply, false},
	} {
		t.Run(tt.code, func(t *testing.T) {
			t.Parallel()
			var heard audience
			o := heard.options()
			o.Journal = &memory{} // which compares the entries with the run
			res := run(t, newTeam(t, member("a", tt.agent), member("b", says("b"))), o, continuing(spec("a")), spec("b"))
			a := of(t, res, "a")
			require.Equal(t, task.Failed, a.Status)
			require.Equal(t, tt.code, a.Error.Code)
			require.Equal(t, tt.accepted, a.Error.Accepted)
			require.Equal(t, tt.accepted, heard.only(event.Error)[0].Accepted)
			require.Len(t, res.Errors, 1, "it is listed in any case")
			require.Equal(t, tt.accepted, res.Success())
			require.Equal(t, tt.accepted, res.Err() == nil)
			want := record.Outcomes{Completed: 1, Failed: 1}
			if tt.accepted {
				want.Accepted = 1
			}
			require.Equal(t, want, res.Outcomes())
		})
	}
}

// Context that the gate withholds fails the run, and so do a spent budget and the end of the run.
func TestRefusalsAreNotAccepted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stale, slow := spec("stale"), spec("slow")
		stale.TTL = time.Millisecond
		tm := newTeam(t, member("stale", says("x")), member("slow", sleeps(time.Second)), member("reads", never(t)))
		res := run(t, tm, &engine.RunOptions{Journal: &memory{}}, stale, slow, continuing(spec("reads", "stale", "slow")))
		require.Equal(t, "CONTEXT_HELD", of(t, res, "reads").Error.Code)
		require.False(t, of(t, res, "reads").Error.Accepted)
		require.Equal(t, engine.StatusError, res.Status)

		spends := func(context.Context, prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{Text: "x", Usage: llm.Usage{InputTokens: 120}}, nil
		}
		res = run(t, newTeam(t, member("a", spends), member("b", never(t))), &engine.RunOptions{Budget: plan.Budget{MaxTokenBudget: 100}, Journal: &memory{}}, spec("a"), continuing(spec("b", "a")))
		require.Equal(t, codes.Budget, of(t, res, "b").Error.Code)
		require.False(t, of(t, res, "b").Error.Accepted)
		require.Equal(t, engine.StatusBudget, res.Status)

		res = run(t, newTeam(t, member("a", sleeps(time.Hour))), &engine.RunOptions{Timeout: time.Minute, Journal: &memory{}}, continuing(spec("a")))
		require.Equal(t, task.Skipped, of(t, res, "a").Status)
		require.Equal(t, engine.StatusTimeout, res.Status)
	})
}

// Retries come first. What depends on the task runs or fails as without the key, and fails the run unless it accepts
// that too.
func TestAcceptedFailureAndWhatDependsOnIt(t *testing.T) {
	t.Parallel()
	const failed, completed = task.Failed, task.Completed
	optional, retried, again := spec("b"), continuing(retrying("a", 1)), continuing(retrying("a", 2))
	optional.DependsOn = []task.Ref{{Task: "a", Optional: true}}
	retried.RetryDelay, again.RetryDelay = task.NoDelay, task.NoDelay
	for _, tt := range []struct {
		name     string
		specs    []task.Spec
		statuses []task.Status
		ok       bool
	}{
		{"one that can run without it", []task.Spec{continuing(spec("a")), optional}, []task.Status{failed, completed}, true},
		{"one that needs it", []task.Spec{continuing(spec("a")), spec("b", "a")}, []task.Status{failed, failed}, false},
		{"one that needs it and accepts that", []task.Spec{continuing(spec("a")), continuing(spec("b", "a"))}, []task.Status{failed, failed}, true},
		{"one that accepts a failure that fails the run", []task.Spec{spec("a"), continuing(spec("b", "a"))}, []task.Status{failed, failed}, false},
		{"too few retries", []task.Spec{retried, optional}, []task.Status{failed, completed}, true},
		{"enough retries", []task.Spec{again, spec("b", "a")}, []task.Status{completed, completed}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var read string
			reads := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
				read = p.Text()
				return agent.Reply{Text: "b"}, nil
			}
			res := run(t, newTeam(t, member("a", flaky(2, errBroken)), member("b", reads)), &engine.RunOptions{Journal: &memory{}}, tt.specs...)
			require.Equal(t, tt.statuses, statuses(res))
			require.Equal(t, tt.ok, res.Success())
			if tt.ok {
				require.NoError(t, res.Err())
			} else {
				require.ErrorContains(t, res.Err(), "a")
			}
			if tt.statuses[0] == failed && tt.statuses[1] == completed {
				require.Contains(t, read, "[withheld: failed")
			}
		})
	}
}

// The key of a loop, of a list of tasks and of a task with judges counts for what is in it.
func TestAcceptedFailuresInLoopsAndLists(t *testing.T) {
	t.Parallel()
	list := task.Spec{Title: "Plan", Value: []byte(`{"items":["x","y"]}`), OutputSchema: []byte(`{"type":"object","properties":{"items":{"type":"array","items":{"type":"string"}}},"required":["items"]}`)}
	each := &task.ForEach{Task: "Plan", Path: "/items", MaxItems: 2}
	group := *each
	group.Tasks, group.Output = []task.Spec{by("flaky", spec("Find")), by("flaky", spec("Sum", "Find"))}, "Sum"
	reads := by("works", spec("Report"))
	reads.DependsOn = []task.Ref{{Each: "Search", Optional: true}}
	without := by("works", spec("Report"))
	without.DependsOn = []task.Ref{{Task: "Draft", Optional: true}}
	flakyLoop := twice(by("flaky", spec("Write")))
	limited := twice(by("works", spec("Write")))
	limited.Repeat.OnLimit, limited.Repeat.Until = "fail", task.Equals("Check", "/n", 9)
	judged := by("works", spec("Draft"))
	judged.Verify = &task.Verify{Judges: []task.Judge{{Agent: "refutes"}}, MaxRounds: 1}
	unjudged := judged
	unjudged.Verify = &task.Verify{Judges: []task.Judge{{Agent: "accepts"}, {Agent: "flaky"}}, Quorum: 1}
	for name, tt := range map[string]struct {
		specs    []task.Spec
		accepted map[string]string // the codes of what failed, by task
	}{
		"an item":         {[]task.Spec{list, continuing(task.Spec{Title: "Search", Description: "d", Assignee: "flaky", ForEach: each}), reads}, map[string]string{"Search[1]": codes.Agent}},
		"tasks of items":  {[]task.Spec{list, continuing(task.Spec{Title: "Search", ForEach: &group}), reads}, map[string]string{"Find[1]": codes.Agent, "Sum[1]": codes.Dependency}},
		"a round":         {[]task.Spec{continuing(flakyLoop), without}, map[string]string{"Write#1": codes.Agent, "Check#1": codes.Dependency, "Draft": codes.Dependency}},
		"a limit":         {[]task.Spec{continuing(limited), without}, map[string]string{"Draft": codes.LoopLimit}},
		"judges reject":   {[]task.Spec{continuing(judged), without}, map[string]string{"Draft": codes.Rejected}},
		"one judge fails": {[]task.Spec{continuing(unjudged), without}, map[string]string{"Draft: judge flaky#1": codes.Agent}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tm := func() *engine.Team {
				return newTeam(t, member("flaky", flaky(1, errBroken)), member("works", says("x")), engine.Member{Name: "critic", Agent: numbering()},
					member("refutes", says(`{"accept":false,"critique":"no"}`)), member("accepts", says(`{"accept":true,"critique":""}`)))
			}
			res := run(t, tm(), &engine.RunOptions{Journal: &memory{}, MaxConcurrency: 1}, tt.specs...)
			require.NoError(t, res.Err())
			require.True(t, res.Success())
			require.Equal(t, task.Completed, of(t, res, "Report").Status)
			failed := map[string]string{}
			for _, e := range res.Errors {
				require.True(t, e.Accepted, e.Title)
				failed[e.Title] = e.Code
			}
			for title, code := range tt.accepted {
				require.Equal(t, code, failed[title], fmt.Sprint(title, " of ", failed))
			}

			tt.specs[len(tt.specs)-2].OnFailure = ""
			require.Equal(t, engine.StatusError, run(t, tm(), &engine.RunOptions{MaxConcurrency: 1}, tt.specs...).Status, "without the key")
		})
	}
}

// A run that is resumed tries again what failed, also if the failure was accepted.
func TestResumeTriesAcceptedFailuresAgain(t *testing.T) {
	t.Parallel()
	optional := spec("b")
	optional.DependsOn = []task.Ref{{Task: "a", Optional: true}}
	specs, j := []task.Spec{continuing(spec("a")), optional}, &memory{}
	tm := newTeam(t, member("a", flaky(1, errBroken)), member("b", says("b")))
	res := run(t, tm, &engine.RunOptions{RunID: "r", Journal: j}, specs...)
	require.Equal(t, []task.Status{task.Failed, task.Completed}, statuses(res))
	require.True(t, res.Success())
	res = run(t, tm, &engine.RunOptions{RunID: "r", Journal: after(j.history(j.len()))}, specs...)
	require.Equal(t, []task.Status{task.Completed, task.Completed}, statuses(res))
}
