package engine

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// workingRun begins a run of so many tasks, of which the first one works until the benchmark ends.
func workingRun(b *testing.B, m *record.Monitor, tasks int) *run {
	b.Helper()
	began, stop := make(chan struct{}), make(chan struct{})
	member := func(name string, does agent.Func) Member { return Member{Name: name, Agent: does} }
	done := func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: "done"}, nil }
	cfg := Config{Policy: &handoff.Policy{Default: handoff.Full}, Agents: []Member{member("a", func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		close(began)
		<-stop
		return done(ctx, p)
	})}}
	specs := []task.Spec{{Title: "first", Description: "Do it.", Assignee: "a"}}
	for i := range 8 {
		cfg.Agents = append(cfg.Agents, member(fmt.Sprint("w", i), done))
	}
	for i := range tasks - 1 {
		specs = append(specs, task.Spec{Title: fmt.Sprint("t", i), Description: "Do it.", Assignee: fmt.Sprint("w", i%8), DependsOn: []task.Ref{{Task: "first"}}})
	}
	t, err := New(cfg)
	require.NoError(b, err)
	o, now := settings(&RunOptions{Monitor: m, AllowWidening: true}), time.Now()
	p, err := t.roster.Check(specs, o, now)
	require.NoError(b, err)
	r, err := newPlanRun(b.Context(), p, o, now)
	require.NoError(b, err)
	require.NoError(b, r.setPlan(p))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = r.execute(context.WithoutCancel(b.Context()))
	}()
	<-began
	b.Cleanup(func() { close(stop); <-ended })
	return r
}

// BenchmarkPolicyLock measures how long the lock of a run is held while its policy is replaced: the longest time
// at once (hold-µs) and all of it (lock-µs). Beside them are the time of the check without the lock (check-µs), and
// that of a look at the status of each task under the lock, as a floor (floor-µs). All are medians.
func BenchmarkPolicyLock(b *testing.B) {
	blocking := func(from, to string, path task.Path) *handoff.Policy {
		return &handoff.Policy{Default: handoff.Full, Rules: []handoff.PairRule{{From: from, To: to, Block: []task.Path{path}}}}
	}
	policies := []*handoff.Policy{blocking("a", "w1", "x"), blocking("w1", "w2", "y")}
	for _, tasks := range []int{1, 100, 5_000} {
		b.Run(fmt.Sprint(tasks), func(b *testing.B) {
			r := workingRun(b, &record.Monitor{}, tasks)
			s := r.steering
			took := map[string][]time.Duration{}
			note := func(name string, start time.Time) time.Duration {
				d := time.Since(start)
				took[name] = append(took[name], d)
				return d
			}
			for i := 0; b.Loop(); i++ {
				c := &record.LeftCommand{Command: steer.Command{Kind: steer.ReplacePolicy, By: "ann", Policy: policies[i%2], Replaces: r.governed().Rules.Digest()}, Time: time.Now()}
				k := &checkedPolicy{}
				require.NoError(b, k.compile(r, c))
				var longest, all time.Duration
				held := func(d time.Duration) { longest, all = max(longest, d), all+d }

				start := time.Now()
				require.True(b, k.isOutdated(s))
				held(time.Since(start))
				start = time.Now()
				k.checkTasks(r, c.Assert)
				note("check-µs", start)
				start = time.Now()
				require.False(b, k.isOutdated(s))
				held(time.Since(start))
				start = time.Now()
				r.mu.Lock()
				_, _, batch, err := recordCommand(s, c, k)
				r.mu.Unlock()
				held(time.Since(start))
				require.NoError(b, err)
				require.NoError(b, r.ledger.wait(b.Context(), batch))
				took["hold-µs"], took["lock-µs"] = append(took["hold-µs"], longest), append(took["lock-µs"], all)

				completed := 0
				start = time.Now()
				r.mu.Lock()
				for k := range r.tasks {
					if r.queue.Status(k) == task.Completed {
						completed++
					}
				}
				r.mu.Unlock()
				note("floor-µs", start)
				require.Zero(b, completed)
			}
			for name, list := range took {
				slices.Sort(list)
				b.ReportMetric(float64(list[len(list)/2].Nanoseconds())/1000, name)
			}
		})
	}
}
