package teammemory_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/task"
)

// results returns the results of n tasks of ten agents.
func results(b *testing.B, n int) []*envelope.Envelope {
	list := make([]*envelope.Envelope, n)
	for i := range list {
		list[i] = said(b, fmt.Sprintf("agent %d", i%10), task.NewID(fmt.Sprint("task ", i)), envelope.Text("done"))
	}
	return list
}

func write(b *testing.B, m *teammemory.Memory, list []*envelope.Envelope) {
	for _, e := range list {
		if err := m.Writer().WriteResult(context.Background(), e.Producer(), e, 0); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkWriteResult is what every completed task pays, read or not.
func BenchmarkWriteResult(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			list := results(b, n)
			b.ReportAllocs()
			for b.Loop() {
				write(b, teammemory.New(nil), list)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/task")
		})
	}
}

// BenchmarkEntries is what a task that sees all pays before the gate does.
func BenchmarkEntries(b *testing.B) {
	for _, n := range []int{1_000, 100_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			m := teammemory.New(nil)
			write(b, m, results(b, n))
			b.ReportAllocs()
			for b.Loop() {
				list, err := m.Reader().Entries(context.Background(), teammemory.Everything())
				require.NoError(b, err)
				require.Len(b, list, n)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/entry")
		})
	}
}
