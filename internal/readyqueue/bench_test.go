package readyqueue_test

import (
	"fmt"
	"testing"

	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/task"
)

// shape returns the graphs of the run benchmarks: wide has no edges, chain one
// task after another, layered ten a layer with three dependencies each.
func shape(b *testing.B, name string, n int) *graph.Graph {
	tasks := make([]task.Task, n)
	id := func(i int) string { return fmt.Sprintf("%036d", i) }
	for i := range tasks {
		tasks[i] = task.Task{ID: task.ID(id(i)), Spec: task.Spec{Title: "t", Assignee: fmt.Sprint("agent", i%5)}}
		switch layer := i / 10; {
		case name == "chain" && i > 0:
			tasks[i].DependsOn = []task.Ref{{Task: id(i - 1)}}
		case name == "layered" && layer > 0:
			for k := range 3 {
				tasks[i].DependsOn = append(tasks[i].DependsOn, task.Ref{Task: id(10*(layer-1) + (i+k)%10)})
			}
		}
	}
	g, err := graph.New(tasks)
	if err != nil {
		b.Fatal(err)
	}
	return g
}

// BenchmarkRun is New and NextReady, Start and Complete of every task.
func BenchmarkRun(b *testing.B) {
	for _, limits := range []bool{false, true} {
		for _, name := range []string{"wide", "chain", "layered"} {
			for _, n := range []int{1_000, 100_000} {
				kind := name
				if limits {
					kind += "-limited"
				}
				b.Run(fmt.Sprintf("%s/%d", kind, n), func(b *testing.B) {
					g := shape(b, name, n)
					b.ReportAllocs()
					for b.Loop() {
						q := &idQueue{readyqueue.New(g)}
						for k := range 5 * boolInt(limits) {
							q.Limit(fmt.Sprint("agent", k), 2)
						}
						for {
							i, ok := q.Queue.Next()
							if !ok {
								break
							}
							if q.Queue.Start(i, at) != nil || q.Queue.Complete(i, nil, at) != nil {
								b.Fatal("a ready task could not run")
							}
						}
						if !q.IsComplete() {
							b.Fatal("a task was left over")
						}
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
				})
			}
		}
	}
}

func BenchmarkCascade(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g := shape(b, "layered", n)
			b.ReportAllocs()
			for b.Loop() {
				q := &idQueue{readyqueue.New(g)}
				for i := range 10 {
					if q.Status(i) == task.Pending && q.Queue.Fail(i, "x", at) != nil {
						b.Fatal("a task could not fail")
					}
				}
				if !q.IsComplete() {
					b.Fatal("a task was left over")
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
		})
	}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}
