package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A world is a random team with random tasks, and which attempts will fail.
type world struct {
	specs       []task.Spec
	failures    []int // of each task: how many attempts fail
	maxParallel []int // of each agent
}

func (w *world) name(a int) string { return fmt.Sprint("agent ", a) }

func drawWorld(t *rapid.T) *world {
	n := rapid.IntRange(1, 20).Draw(t, "tasks")
	agents := rapid.IntRange(1, 4).Draw(t, "agents")
	w := &world{maxParallel: rapid.SliceOfN(rapid.IntRange(0, 3), agents, agents).Draw(t, "maxParallel")}
	for i := range n {
		s := task.Spec{
			Title: fmt.Sprint("task ", i), Description: "Work.", RetryDelay: task.NoDelay,
			Assignee:   w.name(rapid.IntRange(0, agents-1).Draw(t, "assignee")),
			MaxRetries: rapid.IntRange(0, 2).Draw(t, "maxRetries"),
			Priority:   rapid.SampledFrom([]task.Priority{"", task.Low, task.Critical}).Draw(t, "priority"),
		}
		for j := range i {
			switch rapid.IntRange(0, 5).Draw(t, "edge") {
			case 0:
				s.DependsOn = append(s.DependsOn, task.Ref{Task: fmt.Sprint("task ", j)})
			case 1:
				s.DependsOn = append(s.DependsOn, task.Ref{Task: fmt.Sprint("task ", j), Optional: true})
			}
		}
		w.specs = append(w.specs, s)
		w.failures = append(w.failures, max(0, rapid.IntRange(-6, 3).Draw(t, "failures")))
	}
	// The order written need not be the order of the graph.
	shuffled := rapid.Permutation(w.specs).Draw(t, "order")
	failures := make([]int, n)
	for i, s := range shuffled {
		failures[i] = w.failures[slices.IndexFunc(w.specs, func(o task.Spec) bool { return o.Title == s.Title })]
	}
	w.specs, w.failures = shuffled, failures
	return w
}

// A recorder runs the agents of a world and watches them.
type recorder struct {
	w  *world
	at map[task.ID]int

	mu       sync.Mutex // guards the rest
	running  map[string]int
	total    int
	most     int
	mostOf   map[string]int
	attempts []int
	busy     []bool
	broken   []string // rules that were broken
	prompts  []string // of the last attempt
}

func (r *recorder) agent(name string) agentFunc {
	return func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		i := r.at[p.Receipt().Task]
		r.mu.Lock()
		defer func() {
			r.running[name]--
			r.total--
			r.busy[i] = false
			r.mu.Unlock()
		}()
		if r.busy[i] {
			r.broken = append(r.broken, fmt.Sprintf("two attempts at task %d at once", i))
		}
		r.busy[i] = true
		r.running[name]++
		r.total++
		r.most, r.mostOf[name] = max(r.most, r.total), max(r.mostOf[name], r.running[name])
		for _, d := range r.w.specs[i].DependsOn {
			j := r.at[task.NewID(d.Task)]
			if r.busy[j] {
				r.broken = append(r.broken, fmt.Sprintf("task %d runs while task %d does", i, j))
			}
			if ended := r.attempts[j] > r.w.failures[j]; !ended && !d.Optional {
				r.broken = append(r.broken, fmt.Sprintf("task %d runs before task %d has completed", i, j))
			}
		}
		r.attempts[i]++
		r.prompts[i] = p.System() + p.Text()
		n := r.attempts[i]
		r.mu.Unlock() // others run meanwhile
		h := fnv.New64a()
		h.Write([]byte(p.Text()))
		r.mu.Lock()
		if n <= r.w.failures[i] {
			return agent.Reply{}, errBroken
		}
		return agent.Reply{Text: fmt.Sprintf("%s:%x", p.Receipt().Task, h.Sum64())}, nil
	}
}

// play runs a world.
func (w *world) play(t require.TestingT, ctx context.Context, concurrency int) (*recorder, *engine.Result) {
	n := len(w.specs)
	r := &recorder{w: w, at: map[task.ID]int{}, running: map[string]int{}, mostOf: map[string]int{}, attempts: make([]int, n), busy: make([]bool, n), prompts: make([]string, n)}
	var members []engine.Member
	for a, limit := range w.maxParallel {
		m := member(w.name(a), r.agent(w.name(a)))
		m.MaxParallel = limit
		members = append(members, m)
	}
	for i := range w.specs {
		r.at[task.NewID(w.specs[i].Title)] = i
	}
	tm, err := engine.New(engine.Config{Agents: members})
	require.NoError(t, err)
	res, err := tm.RunTasks(ctx, w.specs, &engine.RunOptions{RunID: "fixed", MaxConcurrency: concurrency})
	require.NoError(t, err)
	return r, res
}

// expect computes in the simplest way what must become of each task: the set
// of tasks that fail by themselves, and of those that fail with them.
func (w *world) expect() (byThemselves, withOthers map[string]bool) {
	byThemselves, withOthers = map[string]bool{}, map[string]bool{}
	for changed := true; changed; {
		changed = false
		for i, s := range w.specs {
			if byThemselves[s.Title] || withOthers[s.Title] {
				continue
			}
			for _, d := range s.DependsOn {
				if !d.Optional && (byThemselves[d.Task] || withOthers[d.Task]) {
					withOthers[s.Title], changed = true, true
				}
			}
			if !withOthers[s.Title] && w.failures[i] > s.MaxRetries && w.allEnded(s, byThemselves, withOthers) {
				byThemselves[s.Title], changed = true, true
			}
		}
	}
	return byThemselves, withOthers
}

// allEnded reports whether no required dependency can still fail, so that the task runs.
func (w *world) allEnded(s task.Spec, by, with map[string]bool) bool {
	for _, d := range s.DependsOn {
		if d.Optional {
			continue
		}
		j := slices.IndexFunc(w.specs, func(o task.Spec) bool { return o.Title == d.Task })
		if by[d.Task] || with[d.Task] || w.failures[j] > w.specs[j].MaxRetries || !w.allEnded(w.specs[j], by, with) {
			return false
		}
	}
	return true
}

func TestRandomGraphs(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt)
		concurrency := rapid.IntRange(1, 8).Draw(rt, "concurrency")
		r, res := w.play(rt, t.Context(), concurrency)
		require.Empty(rt, r.broken)
		require.LessOrEqual(rt, r.most, concurrency)
		for a, limit := range w.maxParallel {
			if limit > 0 {
				require.LessOrEqual(rt, r.mostOf[w.name(a)], limit, w.name(a))
			}
		}
		by, with := w.expect()
		require.Equal(rt, len(by)+len(with), len(res.Errors))
		require.Equal(rt, len(by)+len(with) == 0, res.Success())
		for i := range res.Tasks {
			out, s := &res.Tasks[i], w.specs[i]
			require.Equal(rt, s.Title, out.Title, "in the order written")
			switch {
			case by[s.Title]:
				require.Equal(rt, task.Failed, out.Status)
				require.Equal(rt, "AGENT_ERROR", out.Error.Code)
				require.Empty(rt, out.Error.Root)
				require.Equal(rt, s.MaxRetries+1, r.attempts[i])
			case with[s.Title]:
				require.Equal(rt, task.Failed, out.Status)
				require.Equal(rt, codes.Dependency, out.Error.Code)
				require.Zero(rt, r.attempts[i], "it never ran")
				root, ok := res.Task(string(out.Error.Root))
				require.True(rt, ok)
				require.True(rt, by[root.Title] && w.reaches(root.Title, s.Title), "%s is no root of %s", root.Title, s.Title)
			default:
				require.Equal(rt, task.Completed, out.Status)
				require.Nil(rt, out.Error)
				require.True(rt, strings.HasPrefix(out.Result, string(out.ID)), "finished work is there")
				require.Equal(rt, w.failures[i]+1, r.attempts[i])
			}
			require.Equal(rt, r.attempts[i], out.Metrics.Attempts)
		}
	})
}

// reaches reports whether there is a way over required edges.
func (w *world) reaches(from, to string) bool {
	if from == to {
		return true
	}
	i := slices.IndexFunc(w.specs, func(s task.Spec) bool { return s.Title == to })
	for _, d := range w.specs[i].DependsOn {
		if !d.Optional && w.reaches(from, d.Task) {
			return true
		}
	}
	return false
}

// What runs at the same time, and what ends first, changes no byte.
//
// Requirement: G34.
func TestConcurrencyChangesNothing(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		w := drawWorld(rt)
		one, first := w.play(rt, t.Context(), 1)
		many, second := w.play(rt, t.Context(), rapid.IntRange(2, 8).Draw(rt, "concurrency"))
		require.Equal(rt, one.prompts, many.prompts)
		for i := range first.Tasks {
			a, b := &first.Tasks[i], &second.Tasks[i]
			require.Equal(rt, a.Status, b.Status)
			require.Equal(rt, undated(receipts(rt, a)), undated(receipts(rt, b)))
			if a.Error != nil && a.Error.Root != "" {
				continue // of two dependencies that fail, the text names the one that failed first
			}
			require.Equal(rt, a.Result, b.Result)
		}
		require.Equal(rt, first.Output, second.Output)
	})
}

func receipts(t require.TestingT, r *engine.TaskResult) string {
	raw, err := json.Marshal(r.Receipts)
	require.NoError(t, err)
	return string(raw)
}
