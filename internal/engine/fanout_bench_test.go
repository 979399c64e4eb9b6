package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// fanOut is a task for each item of a list, and the same tasks written out.
func fanOut(n int) (list, written []task.Spec) {
	from := spec("Plan")
	from.OutputSchema = []byte(`{"type":"object","properties":{"items":{"type":"array","items":{"type":"string"}}},"required":["items"]}`)
	each := spec("Search")
	each.ForEach = &task.ForEach{Task: "Plan", Path: "/items", MaxItems: n}
	written = []task.Spec{from}
	for i := range n {
		one := spec(fmt.Sprintf("Search[%d]", i+1))
		one.DependsOn = []task.Ref{{
			Task: "Plan", As: task.Structured, Need: []task.Path{"/items/*", "/items/*/**"}, Item: task.Path(fmt.Sprintf("/items/%d", i)), Title: "item",
		}}
		written = append(written, one)
	}
	return []task.Spec{from, each}, written
}

// BenchmarkFanOut is a run of 10,000 tasks that get one item each of one result. With a journal,
// expansion-ms is the time from that result until the first of them is called, when all that
// it depends on is durable.
func BenchmarkFanOut(b *testing.B) {
	const n = 10_000
	list, written := fanOut(n)
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf("%q", fmt.Sprint("item ", i))
	}
	answer := `{"items":[` + strings.Join(items, ",") + `]}`
	for _, journaled := range []bool{false, true} {
		for _, graph := range []struct {
			name  string
			specs []task.Spec
		}{{"list", list}, {"written out", written}} {
			b.Run(fmt.Sprintf("%s/journal=%t", graph.name, journaled), func(b *testing.B) {
				var planned, first atomic.Int64
				does := engine.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
					if p.Schema() != "" {
						planned.Store(time.Now().UnixNano())
						return agent.Reply{Text: answer}, nil
					}
					first.CompareAndSwap(0, time.Now().UnixNano())
					return agent.Reply{Text: "The answer is short."}, nil
				})
				tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "worker", Agent: does}}})
				require.NoError(b, err)
				var expansion time.Duration
				runs := 0
				perTask(b, n, n, func() {
					o := &engine.RunOptions{}
					if journaled {
						j, err := journal.Open(b.TempDir()+"/runs.db", journal.Options{})
						require.NoError(b, err)
						defer j.Close() //nolint:errcheck // it is in a temporary folder
						o.Journal = j
					}
					first.Store(0)
					specs := append([]task.Spec(nil), graph.specs...)
					for i := range specs {
						specs[i].Assignee = "worker"
					}
					res, err := tm.RunTasks(b.Context(), specs, o)
					if err != nil || !res.Success() || len(res.Tasks) != n+1 {
						b.Fatal(err, res.Err())
					}
					runs++
					expansion += time.Duration(first.Load() - planned.Load())
				})
				b.ReportMetric(float64(expansion.Milliseconds())/float64(runs), "expansion-ms")
			})
		}
	}
}
