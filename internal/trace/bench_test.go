package trace_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
)

// aTask is what a journal encodes for a task: five events, a prompt of two
// pieces of context with their decisions, and two lines of other kinds, of
// which one holds a result.
func aTask(tb testing.TB) (events []event.Event, r record.Prompt, others []any) {
	for i, kind := range []event.Type{event.TaskReady, event.TaskStart, event.AgentStart, event.AgentComplete, event.TaskComplete} {
		events = append(events, event.Event{Seq: i + 1, Type: kind, Time: noon, Run: "r1", Task: score.ID, Title: score.Title, Agent: score.Assignee, Attempt: 1, Bytes: 900})
	}
	words := strings.Repeat("A word or two. ", 20)
	r = recordOf(tb, &score, "You look for fraud.", result(tb, &facts, label.Internal, words, "team.yaml:23"), input(tb, "claim", label.Internal, words, "team.yaml:24"))
	asked := record.CallStart{Session: "r1/" + string(score.ID) + "/1", Task: score.ID, Agent: "fraud", Attempt: 1, Time: noon, Bytes: 900}
	exchange := map[string]any{"exchange": record.AgentCall{Start: noon, End: noon, CallID: record.CallID{Session: asked.Session, Task: score.ID, Title: score.Title, Agent: "fraud", Attempt: 1}, Spent: record.Spent{Input: 300, Output: 90}}, "result": words + words}
	return events, r, []any{asked, exchange}
}

// BenchmarkLines adds the lines of tasks and takes those of 16 at a time: "alone" by one
// goroutine, as a Writer does; "owner" adds a batch that was encoded before, and "caller"
// encodes it.
func BenchmarkLines(b *testing.B) {
	events, r, others := aTask(b)
	o := trace.Options{Run: "r1", Tasks: given.Tasks}
	bench := func(name string, add func(l *trace.Lines) error) {
		b.Run(name, func(b *testing.B) {
			l := trace.NewLines(o)
			bytes := 0
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				require.NoError(b, add(l))
				if i%16 == 15 {
					bytes += len(l.Take())
					_ = l.State()
				}
			}
			b.ReportMetric(float64(bytes)/float64(b.N), "lineB/op")
		})
	}
	bench("alone", func(l *trace.Lines) error {
		for _, e := range events {
			_ = l.Event(e)
		}
		_ = l.Record(r)
		_ = l.Add("asked", others[0])
		return l.Add("exchange", others[1])
	})
	batch, e := new(trace.Batch), trace.NewEncoder(o.Tasks)
	encode(b, e, batch, events, r, others)
	bench("owner", func(l *trace.Lines) error { return l.AddBatch(batch) })
	b.Run("caller", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			batch.Reset()
			encode(b, e, batch, events, r, others)
		}
	})
}

// encode adds a task to a batch: the prompt, then the rest.
func encode(b *testing.B, e *trace.Encoder, batch *trace.Batch, events []event.Event, r record.Prompt, others []any) {
	require.NoError(b, e.Record(batch, r))
	for _, ev := range events {
		require.NoError(b, e.Event(batch, ev, nil))
	}
	require.NoError(b, e.Line(batch, "asked", others[0]))
	require.NoError(b, e.Line(batch, "exchange", others[1]))
}
