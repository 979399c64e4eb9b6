package flow_test

import (
	"fmt"
	"testing"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
)

// layers is 10,000 tasks, a hundred a layer. Each depends on three of the layer
// before, and reads one of ten inputs.
func layers(agents int) *flow.Graph {
	const tasks, wide, inputs = 10_000, 100, 10
	g := &flow.Graph{}
	for i := range agents {
		g.Readers = append(g.Readers, flow.Reader{Kind: flow.Agent, Name: fmt.Sprintf("agent %d", i)})
	}
	g.Readers = append(g.Readers, flow.Reader{Kind: flow.User, Name: "user"}, flow.Reader{Kind: flow.Endpoint, Name: "https://models.example/v1"},
		flow.Reader{Kind: flow.Agent, Name: "idle"})
	for i := range inputs {
		g.Sources = append(g.Sources, flow.Source{Kind: handoff.Input, Name: fmt.Sprintf("input %d", i), Task: -1})
	}
	narrow, out := must(pick.Everything().Only("/facts/**", "/score")), []int{agents + 1}
	for i := range tasks {
		g.Tasks = append(g.Tasks, flow.Task{Title: fmt.Sprintf("Task %d", i), Agent: i * 7 % agents, Endpoints: out})
		g.Sources = append(g.Sources, flow.Source{Kind: handoff.Dependency, Name: g.Tasks[i].Title, Task: i, Has: hasAB, Names: namesAB})
		g.Edges = append(g.Edges, flow.Edge{Source: i % inputs, Task: i, Delivers: pick.Everything(), Rule: gate.RuleUses})
		for k := range 3 {
			if i >= wide {
				g.Edges = append(g.Edges, flow.Edge{Source: inputs + i/wide*wide - wide + (i*3+k*31)%wide, Task: i, Delivers: narrow, Rule: gate.RuleDependsOn})
			}
		}
		g.Sights = append(g.Sights, flow.Sight{Source: inputs + i, Reader: agents, Delivers: pick.Everything(), Rule: gate.RuleResult})
	}
	return g
}

func BenchmarkTable(b *testing.B) {
	for _, agents := range []int{50, 1_000, 10_000} {
		b.Run(fmt.Sprintf("agents=%d", agents), func(b *testing.B) {
			g := layers(agents)
			b.ReportAllocs()
			for b.Loop() {
				g.Table()
			}
		})
	}
}

// BenchmarkRows asks for every cell of a table.
func BenchmarkRows(b *testing.B) {
	for _, agents := range []int{50, 10_000} {
		b.Run(fmt.Sprintf("agents=%d", agents), func(b *testing.B) {
			g := layers(agents)
			table := g.Table()
			b.ReportAllocs()
			for b.Loop() {
				for s := range g.Sources {
					table.Row(s)
				}
			}
		})
	}
}

func BenchmarkCheck(b *testing.B) {
	table := layers(50).Table()
	for _, text := range []string{"input input 0 never reaches user", "a never derives into idle", "a never reaches agent 7"} {
		a, err := flow.ParseAssertion(text)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(text, func(b *testing.B) {
			for b.Loop() {
				if _, err := table.Check(a); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVia asks for a way of every source to one reader.
func BenchmarkVia(b *testing.B) {
	for _, agents := range []int{50, 10_000} {
		b.Run(fmt.Sprintf("agents=%d", agents), func(b *testing.B) {
			g := layers(agents)
			table := g.Table()
			for b.Loop() {
				for s := range g.Sources {
					table.Via(s, 7)
				}
			}
		})
	}
}
