package task_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/runteam/runteam/task"
)

// shape returns n specs of one of the benchmarked graphs: wide has no edges,
// chain one after another, layered ten a layer with three dependencies each.
func shape(name string, n int) []task.Spec {
	specs := make([]task.Spec, n)
	title := func(i int) string { return fmt.Sprintf("Task number %d", i) }
	for i := range specs {
		specs[i] = task.Spec{Title: title(i), Description: "Do what task number says.", Assignee: "worker"}
		switch layer := i / 10; {
		case name == "chain" && i > 0:
			specs[i].DependsOn = task.On(title(i - 1))
		case name == "layered" && layer > 0:
			for k := range 3 {
				specs[i].DependsOn = append(specs[i].DependsOn, task.Ref{Task: title(10*(layer-1) + (i+k)%10)})
			}
		}
	}
	return specs
}

func BenchmarkResolve(b *testing.B) {
	for _, name := range []string{"wide", "chain", "layered"} {
		for _, n := range []int{1_000, 100_000} {
			b.Run(fmt.Sprintf("%s/%d", name, n), func(b *testing.B) {
				specs, at := shape(name, n), time.Unix(0, 0)
				b.ReportAllocs()
				for b.Loop() {
					if _, err := task.Resolve(specs, at); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
			})
		}
	}
}

func BenchmarkNewID(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		task.NewID("Extract the facts")
	}
}
