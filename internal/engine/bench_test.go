package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// shapes are the graphs of the benchmarks: no dependency at all, one long
// chain, and layers of ten in which each task depends on three of the layer above.
var shapes = []struct {
	name string
	deps func(i int) []int
}{
	{"wide", func(int) []int { return nil }},
	{"chain", func(i int) []int {
		if i == 0 {
			return nil
		}
		return []int{i - 1}
	}},
	{"layered", func(i int) []int {
		if i < 10 {
			return nil
		}
		above, k := (i/10-1)*10, i%10
		return []int{above + k, above + (k+1)%10, above + (k+2)%10}
	}},
}

var sizes = []int{100, 1_000, 10_000, 100_000}

func specsOf(n int, deps func(int) []int) []task.Spec {
	titles := make([]string, n)
	specs := make([]task.Spec, n)
	for i := range specs {
		titles[i] = fmt.Sprintf("task %d", i)
		specs[i] = task.Spec{Title: titles[i], Description: "Do your part.", Assignee: "worker"}
		for _, d := range deps(i) {
			specs[i].DependsOn = append(specs[i].DependsOn, task.Ref{Task: titles[d]})
		}
	}
	return specs
}

// benchmarkRun measures RunTasks from specs to result with an agent that
// returns the given text at once.
func benchmarkRun(b *testing.B, text string) {
	worker := engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: text}, nil })
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "worker", Agent: worker}}})
	if err != nil {
		b.Fatal(err)
	}
	for _, shape := range shapes {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) {
				specs := specsOf(n, shape.deps)
				edges := 0
				for i := range specs {
					edges += len(specs[i].DependsOn)
				}
				perTask(b, n, edges, func() {
					res, err := tm.RunTasks(b.Context(), specs, nil)
					if err != nil || !res.Success() {
						b.Fatal(err, res.Err())
					}
				})
			})
		}
	}
}

// 1,000 independent tasks take 4 ms beside their agents, and here at most 50 times as much: the machine may be busy. A
// dispatch that looks at all tasks for each of them takes longer.
func TestDispatchTakesMilliseconds(t *testing.T) { //nolint:paralleltest // it measures time
	slowtest.NotUnderRace(t)
	worker := engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, nil })
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "worker", Agent: worker}}})
	require.NoError(t, err)
	specs, fastest := specsOf(1000, shapes[0].deps), time.Hour
	for range 10 {
		begun := time.Now()
		res, err := tm.RunTasks(t.Context(), specs, nil)
		fastest = min(fastest, time.Since(begun))
		require.NoError(t, err)
		require.True(t, res.Success())
	}
	t.Log(fastest)
	require.Less(t, fastest, 200*time.Millisecond)
}

// BenchmarkRun carries a short answer over every edge.
func BenchmarkRun(b *testing.B) { benchmarkRun(b, "The answer is short.") }

// BenchmarkRunEmpty carries nothing: what is left is the cost of scheduling.
func BenchmarkRunEmpty(b *testing.B) { benchmarkRun(b, "") }

// BenchmarkRunSlowAgent has agents that take a millisecond, which is still much less
// than a model call takes: the overhead of a run should not be visible.
func BenchmarkRunSlowAgent(b *testing.B) {
	worker := engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		time.Sleep(time.Millisecond)
		return agent.Reply{Text: "The answer is short."}, nil
	})
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "worker", Agent: worker}}})
	if err != nil {
		b.Fatal(err)
	}
	const n = 1_000
	specs := specsOf(n, shapes[2].deps)
	perTask(b, n, 0, func() {
		res, err := tm.RunTasks(b.Context(), specs, nil)
		if err != nil || !res.Success() {
			b.Fatal(err, res.Err())
		}
	})
}

// BenchmarkRunGated carries a text of 1 KiB over every edge: envelope, gate,
// redaction, fence and receipt.
func BenchmarkRunGated(b *testing.B) { benchmarkRun(b, prose) }

// prose is 1 KiB of plain text.
var prose = strings.Repeat("The quick brown fox jumps over the lazy dog, and the dog sleeps. ", 16)[:1024]

// BenchmarkFloor is the least that such a run can cost from the same specs: an
// errgroup with the same limit, a map of results behind a mutex, and
// dependency counters.
func BenchmarkFloor(b *testing.B) {
	for _, shape := range shapes {
		for _, n := range sizes {
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) {
				specs := specsOf(n, shape.deps)
				perTask(b, n, 0, func() {
					if got := len(floor(specs)); got != n {
						b.Fatal(got)
					}
				})
			})
		}
	}
}

func floor(specs []task.Spec) map[string]string {
	var g errgroup.Group
	g.SetLimit(plan.DefaultConcurrency)
	var mu sync.Mutex // guards results
	results := make(map[string]string, len(specs))
	index := make(map[string]int, len(specs))
	for i := range specs {
		index[specs[i].Title] = i
	}
	open := make([]atomic.Int32, len(specs))
	down := make([][]int, len(specs))
	ready := make(chan int, len(specs))
	for i := range specs {
		open[i].Store(int32(len(specs[i].DependsOn)))
		for _, d := range specs[i].DependsOn {
			down[index[d.Task]] = append(down[index[d.Task]], i)
		}
		if len(specs[i].DependsOn) == 0 {
			ready <- i
		}
	}
	for range specs {
		i := <-ready
		g.Go(func() error {
			mu.Lock()
			for _, d := range specs[i].DependsOn {
				_ = results[d.Task]
			}
			results[specs[i].Title] = ""
			mu.Unlock()
			for _, d := range down[i] {
				if open[d].Add(-1) == 0 {
					ready <- d
				}
			}
			return nil
		})
	}
	_ = g.Wait()
	return results
}

// cpuTime returns the CPU time that the process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// perTask reports time, CPU time, allocations and bytes for each task, and time for each edge.
func perTask(b *testing.B, n, edges int, run func()) {
	b.ReportAllocs()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	cpu := cpuTime()
	for b.Loop() {
		run()
	}
	cpu = cpuTime() - cpu
	runtime.ReadMemStats(&after)
	tasks := float64(n) * float64(b.N)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/tasks, "ns/task")
	b.ReportMetric(float64(cpu.Nanoseconds())/tasks, "cpu-ns/task")
	b.ReportMetric(float64(after.Mallocs-before.Mallocs)/tasks, "allocs/task")
	b.ReportMetric(float64(after.TotalAlloc-before.TotalAlloc)/tasks, "B/task")
	if edges > 0 {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(edges)/float64(b.N), "ns/edge")
	}
}
