package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// A crowd is a team of agents in layers. Each sends as many messages to each of some agents of the next layer,
// whose tasks begin after its own.
type crowd struct {
	layers, width, readers, each int
	calls                        bool // as calls of send_handoff, and else through the outbox
	text                         string
	noEdges                      bool
	takes                        time.Duration // to answer
	answer                       string        // of each task
}

// messages is how many are sent.
func (c *crowd) messages() int { return (c.layers - 1) * c.width * c.readers * c.each }

// team returns the agents, and a task for each.
func (c *crowd) team(t testing.TB) (*engine.Team, []task.Spec) {
	t.Helper()
	cfg := engine.Config{}
	var specs []task.Spec
	name := func(layer, k int) string { return fmt.Sprintf("agent %d.%d", layer, k%c.width) }
	for layer := range c.layers {
		for k := range c.width {
			var readers []string
			s := spec(name(layer, k))
			for r := range c.readers {
				if layer > 0 {
					s.DependsOn = append(s.DependsOn, task.Ref{Task: name(layer-1, k+c.width-r)})
				}
				if layer < c.layers-1 {
					readers = append(readers, name(layer+1, k+r))
					cfg.Edges = append(cfg.Edges, handoff.Edge{From: s.Title, To: name(layer+1, k+r)})
				}
			}
			does := c.sends(readers)
			if c.calls {
				does = c.callsTools(readers)
			}
			cfg.Agents, specs = append(cfg.Agents, member(s.Title, does)), append(specs, s)
		}
	}
	if c.noEdges {
		cfg.Edges = nil
	}
	tm, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return tm, specs
}

// sends is an agent in Go.
func (c *crowd) sends(readers []string) agentFunc {
	return func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
		if c.takes > 0 {
			time.Sleep(c.takes)
		}
		for _, to := range readers {
			for range c.each {
				if err := engine.OutboxFrom(ctx).Send(to, c.text); err != nil {
					return agent.Reply{}, err
				}
			}
		}
		return agent.Reply{Text: c.answer}, nil
	}
}

// callsTools is an agent that makes as many calls in a turn as it may.
func (c *crowd) callsTools(readers []string) agentFunc {
	var calls []llm.ToolCall
	for _, to := range readers {
		for range c.each {
			calls = append(calls, sendsTo(to, c.text))
		}
	}
	return func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		turn := 0
		for _, m := range p.Messages() {
			if m.Role == "assistant" {
				turn++
			}
		}
		if from := turn * plan.MaxToolCalls; from < len(calls) {
			return agent.Reply{ToolCalls: calls[from:min(len(calls), from+plan.MaxToolCalls)]}, nil
		}
		return agent.Reply{Text: c.answer}, nil
	}
}

// BenchmarkMessages is a run in which 1,000 agents send each other 105,000 messages of 200 bytes, without a
// journal. Those of agents in Go go through the outbox; a handoff is a call of a tool, too, in a turn of a
// conversation.
func BenchmarkMessages(b *testing.B) {
	for _, bm := range []struct {
		name string
		of   crowd
	}{
		{"outbox", crowd{layers: 8, width: 125, readers: 10, each: 12}},
		{"handoffs", crowd{layers: 8, width: 125, readers: 10, each: 12, calls: true}},
		{"none", crowd{layers: 8, width: 125, readers: 10}},
	} {
		bm.of.text = prose[:200]
		tm, specs := bm.of.team(b)
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			cpu := cpuTime()
			for b.Loop() {
				res, err := tm.RunTasks(b.Context(), specs, &engine.RunOptions{MaxConcurrency: 1})
				if err != nil || !res.Success() || len(res.Warnings) > 0 {
					b.Fatal(err, res.Err(), len(res.Warnings))
				}
			}
			n := float64(max(bm.of.messages(), 105_000) * b.N)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/n, "ns/message")
			b.ReportMetric(float64((cpuTime()-cpu).Nanoseconds())/n, "cpu-ns/message")
		})
	}
}

// BenchmarkMessagesFloor is the redaction of these messages.
func BenchmarkMessagesFloor(b *testing.B) {
	text, r := prose[:200], redact.Default()
	for b.Loop() {
		if _, _, err := r.Text(text); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/message")
}

// BenchmarkUnusedEdges runs the same 1,000 tasks with edges that nobody uses and without edges, in turns, from the
// specs to the result. It reports by how much the run with edges takes longer, and how much CPU it takes more for each
// task. Its floor is the run without edges. The agents answer at once or after a millisecond, which is still much less
// than a model takes.
func BenchmarkUnusedEdges(b *testing.B) {
	for _, bm := range []struct {
		readers int // edges of each agent
		takes   time.Duration
	}{{1, 0}, {10, 0}, {1, time.Millisecond}, {10, time.Millisecond}} {
		b.Run(fmt.Sprintf("%d edges each/agents take %v", bm.readers, bm.takes), func(b *testing.B) {
			var teams [2]*engine.Team
			var specs []task.Spec
			for k := range teams {
				c := &crowd{layers: 8, width: 125, readers: bm.readers, takes: bm.takes, noEdges: k == 1, answer: prose}
				teams[k], specs = c.team(b)
			}
			var wall, cpu [2][]float64
			for b.Loop() {
				for k, tm := range teams {
					runtime.GC()
					began, used := time.Now(), cpuTime()
					res, err := tm.RunTasks(b.Context(), specs, nil)
					if err != nil || !res.Success() {
						b.Fatal(err, res.Err())
					}
					wall[k], cpu[k] = append(wall[k], float64(time.Since(began))), append(cpu[k], float64(cpuTime()-used))
				}
			}
			tasks := float64(len(specs))
			b.ReportMetric(100*(median(wall[0])/median(wall[1])-1), "%longer")
			b.ReportMetric(median(cpu[1])/tasks, "floor-cpu-ns/task")
			b.ReportMetric((median(cpu[0])-median(cpu[1]))/tasks, "more-cpu-ns/task")
		})
	}
}

func median(list []float64) float64 {
	slices.Sort(list)
	return list[len(list)/2]
}

// BenchmarkChildren is a task with 1,000 children, 100 in each turn and at most 16 at the same time, whose agents
// answer at once.
func BenchmarkChildren(b *testing.B) {
	const children, each = 1000, 100
	var calls []llm.ToolCall
	for i := range each {
		calls = append(calls, spawns(fmt.Sprint("look into ", i)))
	}
	m := member("clerk", func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		turn := 0
		for _, one := range p.Messages() {
			if one.Role == "assistant" {
				turn++
			}
		}
		if goalOf(p) != "" || turn == children/each {
			return agent.Reply{Text: "found"}, nil
		}
		return agent.Reply{ToolCalls: calls}, nil
	})
	m.Spawn = &plan.Spawning{Max: children}
	tm, err := engine.New(engine.Config{Agents: []engine.Member{m}})
	if err != nil {
		b.Fatal(err)
	}
	perTask(b, children, 0, func() {
		res, err := tm.RunTasks(b.Context(), []task.Spec{spec("clerk")}, &engine.RunOptions{MaxConcurrency: 16})
		if err != nil || !res.Success() || len(res.Tasks[0].Metrics.ToolCalls) != children {
			b.Fatal(err, res.Err())
		}
	})
}
