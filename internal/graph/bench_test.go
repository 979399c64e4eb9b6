package graph_test

import (
	"fmt"
	"testing"

	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/task"
)

// BenchmarkNew makes graphs of ten tasks a layer with three dependencies each.
func BenchmarkNew(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("layered/%d", n), func(b *testing.B) {
			tasks := make([]task.Task, n)
			id := func(i int) string { return fmt.Sprintf("%036d", i) }
			for i := range tasks {
				tasks[i] = task.Task{ID: task.ID(id(i))}
				for k := range min(3, i/10*3) {
					tasks[i].DependsOn = append(tasks[i].DependsOn, task.Ref{Task: id(10*(i/10-1) + (i+k)%10)})
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := graph.New(tasks); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
		})
	}
}
