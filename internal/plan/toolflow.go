package plan

import (
	"cmp"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/tool"
)

// addTools adds the tools, as readers of arguments and as sources of results. An agent can
// pass on to a tool whatever its task reads, so the tool counts as reading all of that. Each
// task has a tool of its own, unless the tool keeps state: then what one task passes to it
// can be returned to every other.
func (b *flowBuilder) addTools() {
	g := &b.graph
	inputs := make([][]flow.Edge, b.plan.Graph.Len()) // of each task
	for _, e := range g.Edges {
		if e.Task < len(inputs) {
			inputs[e.Task] = append(inputs[e.Task], e)
		}
	}
	readers, shared, states := map[string]int{}, map[string]int{}, map[string][]int{}
	for i := range inputs {
		tools := b.team.Config.Agents[b.plan.Members[i]].Tools
		sources := make([]int, len(tools))
		for k, f := range tools {
			reader, known := readers[f.Name]
			if !known {
				reader = len(g.Readers)
				readers[f.Name] = reader
				g.Readers = append(g.Readers, flow.Reader{Kind: flow.Tool, Name: gate.ToolReader(f.Name), Clearance: f.Accepts})
			}
			source, known := shared[f.Name]
			if !known {
				source = b.addTool(f, reader)
				if f.Stateful {
					shared[f.Name] = source
					state := cmp.Or(f.State, f.Name)
					for _, other := range states[state] { // what one is given, the other can return
						b.wholeEdge(other, g.Sources[source].Task, gate.RuleTools)
						b.wholeEdge(source, g.Sources[other].Task, gate.RuleTools)
					}
					states[state] = append(states[state], source)
				}
			}
			sources[k] = source
			b.addToolResult(f, source, i)
		}
		for _, source := range sources {
			to := g.Sources[source].Task
			for _, e := range inputs[i] {
				e.Task, e.Rule, e.Line, e.Note, e.Lowers = to, gate.RuleTools, "", "", nil
				g.Edges = append(g.Edges, e)
			}
			for _, from := range sources {
				b.wholeEdge(from, to, gate.RuleTools)
			}
		}
	}
}

// addTool adds a tool as a task that reads arguments, and returns the source of its results.
func (b *flowBuilder) addTool(f *tool.Tool, reader int) int {
	g := &b.graph
	name := gate.ToolReader(f.Name)
	g.Tasks = append(g.Tasks, flow.Task{Title: name, Agent: reader})
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.ToolResult, Name: name, From: name, Task: len(g.Tasks) - 1, Label: f.Level()})
	return len(g.Sources) - 1
}

// addToolResult adds what a task gets of the results of a tool.
func (b *flowBuilder) addToolResult(f *tool.Tool, source, to int) {
	terms := b.team.Terms(gate.ToolReader(f.Name), b.plan.Graph.Task(to).Assignee)
	e := flow.Edge{Source: source, Task: to, Delivers: pick.Everything(), Rule: gate.RuleTools, Minimal: terms.Mode() == handoff.Minimal}
	if rule, line := terms.Stated(); rule != "" {
		e.Rule, e.Line = rule, line
	}
	if delivers, err := terms.Delivers(nil); err == nil {
		e.Delivers = delivers
	}
	b.graph.Edges = append(b.graph.Edges, e)
}
