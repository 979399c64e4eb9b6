package engine_test

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

func TestTaskStartsWhenItsOwnDependenciesAreDone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// In rounds, "after quick" would wait for "slow".
		start := time.Now()
		tm := newTeam(t, member("quick", sleeps(time.Second)), member("slow", sleeps(time.Minute)), member("after quick", sleeps(2*time.Second)), member("both", sleeps(time.Second)))
		res := run(t, tm, nil, spec("slow"), spec("quick"), spec("after quick", "quick"), spec("both", "slow", "after quick"))
		require.True(t, res.Success())
		began := map[string]time.Duration{}
		for i := range res.Tasks {
			began[res.Tasks[i].Title] = res.Tasks[i].Metrics.Start.Sub(start)
		}
		require.Equal(t, map[string]time.Duration{"slow": 0, "quick": 0, "after quick": time.Second, "both": time.Minute}, began)
		require.Equal(t, 61*time.Second, res.EndedAt.Sub(res.StartedAt))
	})
}

func TestOrderAmongReadyTasks(t *testing.T) {
	t.Parallel()
	urgent := func(s task.Spec) task.Spec { s.Priority = task.Critical; return s }
	tests := []struct {
		name string
		give []task.Spec
		want []string
	}{
		{"the longest path first", []task.Spec{spec("lone"), spec("head"), spec("middle", "head"), spec("tail", "middle")}, []string{"head", "middle", "lone", "tail"}},
		{"then more direct dependents", []task.Spec{spec("one"), spec("two"), spec("a", "one"), spec("b", "two"), spec("c", "two")}, []string{"two", "one", "a", "b", "c"}},
		{"then priority", []task.Spec{spec("plain"), urgent(spec("urgent"))}, []string{"urgent", "plain"}},
		{"then the order written", []task.Spec{spec("z"), spec("y"), spec("x")}, []string{"z", "y", "x"}},
		{"priority does not beat the longer path", []task.Spec{urgent(spec("urgent")), spec("head"), spec("tail", "head")}, []string{"head", "urgent", "tail"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var order log
			worker := member("worker", func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
				order.add("%s", p.Receipt().Task)
				return agent.Reply{}, nil
			})
			specs := make([]task.Spec, len(tt.give))
			titles := map[string]string{}
			for i, s := range tt.give {
				s.Assignee = "worker"
				specs[i], titles[string(task.NewID(s.Title))] = s, s.Title
			}
			run(t, newTeam(t, worker), &engine.RunOptions{MaxConcurrency: 1}, specs...)
			var got []string
			for _, id := range order.all() {
				got = append(got, titles[id])
			}
			require.Equal(t, tt.want, got)
		})
	}
}

func TestUnassignedTasksGoToAgentsInTurn(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, member("ada", says("a")), member("bob", says("b")), member("cyd", says("c")))
	specs := make([]task.Spec, 6)
	for i := range specs {
		specs[i] = task.Spec{Title: fmt.Sprint("task ", i), Description: "Work."}
	}
	specs[1].Assignee = "cyd" // takes no turn
	res := run(t, tm, nil, specs...)
	var got []string
	for i := range res.Tasks {
		got = append(got, res.Tasks[i].Assignee+res.Tasks[i].Result)
	}
	require.Equal(t, []string{"adaa", "cydc", "bobb", "cydc", "adaa", "bobb"}, got)
	require.Empty(t, specs[0].Assignee, "the caller's specs are the caller's")

	p, err := tm.Plan(specs, nil)
	require.NoError(t, err)
	require.True(t, p.Tasks[0].Assigned)
	require.False(t, p.Tasks[1].Assigned)
}

func TestDefaultConcurrency(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		specs := make([]task.Spec, 11)
		for i := range specs {
			specs[i] = task.Spec{Title: fmt.Sprint(i), Description: "Work."}
		}
		res := run(t, newTeam(t, member("worker", sleeps(time.Second))), nil, specs...)
		require.Equal(t, 3*time.Second, res.EndedAt.Sub(res.StartedAt), "eleven tasks, five at a time")
	})
}

func TestAnyMaxConcurrency(t *testing.T) {
	t.Parallel()
	res := run(t, newTeam(t, member("a", says("x"))), &engine.RunOptions{MaxConcurrency: math.MaxInt}, spec("a"))
	require.True(t, res.Success())
}

func TestMaxParallelKeepsAnAgentFromTheSlotsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := member("busy", sleeps(time.Second))
		busy.MaxParallel = 1
		var specs []task.Spec
		for i := range 3 {
			specs = append(specs, task.Spec{Title: fmt.Sprint("busy ", i), Description: "Work.", Assignee: "busy"})
		}
		for i := range 3 {
			specs = append(specs, task.Spec{Title: fmt.Sprint("free ", i), Description: "Work.", Assignee: "free"})
		}
		res := run(t, newTeam(t, busy, member("free", sleeps(time.Second))), &engine.RunOptions{MaxConcurrency: 4}, specs...)
		var began []time.Duration
		for i := range res.Tasks {
			began = append(began, res.Tasks[i].Metrics.Start.Sub(res.StartedAt))
		}
		require.Equal(t, []time.Duration{0, time.Second, 2 * time.Second, 0, 0, 0}, began)
	})
}

func TestLargeGraphs(t *testing.T) {
	t.Parallel()
	n := 500
	if slowtest.Enabled() {
		n = 10_000
	}
	var ran atomic.Int64
	tm := newTeam(t, member("worker", func(context.Context, prompt.Prompt) (agent.Reply, error) {
		ran.Add(1)
		return agent.Reply{Text: "x"}, nil
	}))
	for name, specs := range map[string][]task.Spec{"a chain": specsOf(10*n, shapes[1].deps), "wide": specsOf(n, shapes[0].deps)} {
		ran.Store(0)
		res := run(t, tm, nil, specs...)
		require.True(t, res.Success(), name)
		require.Len(t, res.Tasks, len(specs))
		require.EqualValues(t, len(specs), ran.Load(), name)
	}
}

func TestFailureAtTheHeadOfALongChain(t *testing.T) {
	t.Parallel()
	tasks := 1_000
	if slowtest.Enabled() {
		tasks = 20_000
	}
	res := run(t, newTeam(t, member("worker", fails(errBroken))), nil, specsOf(tasks, shapes[1].deps)...)
	require.Len(t, res.Errors, tasks)
	last := res.Errors[tasks-1]
	require.Equal(t, res.Tasks[0].ID, last.Root)
	require.Equal(t, fmt.Sprintf("Cancelled: dependency %q failed.", res.Tasks[tasks-2].ID), last.Message)
}
