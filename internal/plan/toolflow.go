package plan

import (
	"cmp"
	"math"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/tool"
)

// A toolFlow adds the tools to a graph.
type toolFlow struct {
	*flowBuilder
	readers map[string]int   // of each tool, by name
	shared  map[string]int   // the source of each tool that keeps state, by name
	states  map[string][]int // the sources that share a state
}

// addTools adds the tools, as readers of arguments and as sources of results. An agent can
// pass on to a tool whatever its task reads or writes, so the tool counts as reading all of
// that. Each task has a tool of its own, unless the tool keeps state: then what one task passes
// to it can be returned to every other. The children of a task are added with it, and share its tools.
func (b toolFlow) addTools() {
	g := &b.graph
	inputs := make([][]flow.Edge, b.plan.Graph.Len()) // of each task
	for _, e := range g.Edges {
		if e.Task < len(inputs) {
			inputs[e.Task] = append(inputs[e.Task], e)
		}
	}
	b.readers, b.shared, b.states = b.toolReaders(), map[string]int{}, map[string][]int{}
	for i := range inputs {
		written := b.sourceOfWritten(i)
		tools := reachableIn(b.plan, i)
		sources := make([]int, len(tools))
		for k, f := range tools {
			sources[k] = b.toolSource(f)
			b.addToolResult(gate.ToolReader(f.Name), sources[k], i)
		}
		children := b.addChildren(i, written, inputs[i])
		var said []int // by people who approve calls
		for k, f := range tools {
			pass := func(to int) {
				b.wholeEdge(written, to, gate.RuleTools) // an argument can be what the agent is about to answer
				for _, e := range inputs[i] {
					e.Task, e.Rule, e.Line, e.Note, e.Lowers = to, gate.RuleTools, "", "", nil
					g.Edges = append(g.Edges, e)
				}
				for _, from := range sources {
					b.wholeEdge(from, to, gate.RuleTools)
				}
				for _, n := range children {
					b.wholeEdge(n.source, to, gate.RuleTools)
				}
			}
			for _, to := range b.addArguments(f, argumentsReader{gate.ToolReader(f.Name), f.Accepts}, i, b.plan.Graph.Task(i).Assignee, g.Sources[sources[k]].Task) {
				pass(to)
			}
			said = append(said, b.addApproval(f, i, b.plan.Graph.Task(i).Assignee, i, pass)...)
		}
		b.addHolders(i, written, inputs[i], sources, children, said)
		for _, n := range children {
			b.addChildTools(n, i, tools, sources)
		}
	}
}

// toolSource returns the source of the results of a tool, which it adds if it is the first.
func (b toolFlow) toolSource(f *tool.Tool) int {
	g := &b.graph
	source, known := b.shared[f.Name]
	if known {
		return source
	}
	source = b.addTool(f, b.readers[f.Name])
	if f.Stateful {
		b.shared[f.Name] = source
		state := cmp.Or(f.State, f.Name)
		for _, other := range b.states[state] { // what one is given, the other can return
			b.wholeEdge(other, g.Sources[source].Task, gate.RuleTools)
			b.wholeEdge(source, g.Sources[other].Task, gate.RuleTools)
		}
		b.states[state] = append(b.states[state], source)
	}
	return source
}

// addChildTools adds the tools of the children of task i. A copy of the agent has some of the tools of the
// task, whose sources are given; another agent has its own.
func (b toolFlow) addChildTools(n childNode, i int, tools []*tool.Tool, sources []int) {
	if m := &b.team.Config.Agents[n.member]; n.member != int(b.plan.Members[i]) {
		tools, sources = m.reachable(ForChildren(m.Tools)), nil
		for _, f := range tools {
			sources = append(sources, b.toolSource(f))
		}
	}
	for k, f := range tools {
		if f.Approve != "" {
			continue
		}
		b.wholeEdge(sources[k], n.task, gate.RuleTools)
		to := b.graph.Sources[sources[k]].Task
		b.wholeEdge(n.source, to, gate.RuleTools)
		for _, e := range n.reads {
			e.Task, e.Rule = to, gate.RuleTools
			b.graph.Edges = append(b.graph.Edges, e)
		}
		for _, from := range sources {
			b.wholeEdge(from, to, gate.RuleTools)
		}
	}
}

// toolReaders adds each tool of the team as a reader, also if no task may call it, and returns
// their indexes by name.
func (b toolFlow) toolReaders() map[string]int {
	g, readers := &b.graph, map[string]int{}
	for i := range b.team.Config.Agents {
		m := &b.team.Config.Agents[i]
		for _, f := range m.reachable(m.Tools) {
			if _, known := readers[f.Name]; !known {
				readers[f.Name] = len(g.Readers)
				g.Readers = append(g.Readers, flow.Reader{Kind: flow.Tool, Name: gate.ToolReader(f.Name), Clearance: f.Accepts})
			}
		}
	}
	return readers
}

// MaxLoweredCalls is how many calls with arguments that a declassifier lowers an attempt at a
// task may make. Each of them can carry something else.
const MaxLoweredCalls = 16

// arguments are what a task passes to a tool by a declassifier.
type arguments struct {
	parameters *schema.Schema
	calls      int // at most, in all attempts
}

// An argumentsReader reads the arguments of a tool: the tool, or who approves its calls.
type argumentsReader struct {
	name      string
	clearance label.Classification
}

// addArguments returns the tasks that read what the arguments of an agent in task i for a tool are made of:
// the reader itself or, if a declassifier lowers the arguments, a step that writes them. Of what
// that step reads, only the paths of the declassifier reach the tool.
func (b toolFlow) addArguments(f *tool.Tool, by argumentsReader, i int, agent string, to int) []int {
	g, p, t := &b.graph, b.plan, b.plan.Graph.Task(i)
	reader := by.name
	terms := ReadBy(p, i).Terms(agent, reader)
	a := deliveryOf(terms, min(p.least[i].Join(p.ToolLabel(i)), p.Labels[i]), p.Labels[i], true, &gate.Capabilities{Agent: reader, Accepts: by.clearance})
	if a.crossing.Lowers == nil {
		return []int{to}
	}
	source, made := len(g.Sources), len(g.Tasks)
	g.Tasks = append(g.Tasks, flow.Task{Title: "arguments for " + reader + " in " + t.Title, Agent: flow.Nobody})
	s := flow.Source{Kind: handoff.Arguments, Name: "arguments of " + t.Title, From: agent, Task: made, Label: p.Labels[i]}
	parameters := b.team.Parameters[f.Name]
	b.describe(&s, parameters)
	g.Sources = append(g.Sources, s)
	if b.arguments == nil {
		b.arguments = map[int]arguments{}
	}
	b.arguments[source] = arguments{parameters, MaxLoweredCalls * (1 + min(t.MaxRetries, math.MaxInt16))}
	e := b.passage(source, terms, nil, &a)
	e.Task, e.Rule = to, cmp.Or(e.Rule, gate.RuleTools)
	g.Edges = append(g.Edges, e)
	if a.plain { // at a lower label, all arguments are delivered
		return []int{to, made}
	}
	return []int{made}
}

// addTool adds a tool as a task that reads arguments, and returns the source of its results.
func (b toolFlow) addTool(f *tool.Tool, reader int) int {
	g := &b.graph
	name := gate.ToolReader(f.Name)
	g.Tasks = append(g.Tasks, flow.Task{Title: name, Agent: reader})
	source := len(g.Sources)
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.ToolResult, Name: name, From: name, Task: len(g.Tasks) - 1, Label: f.Level()})
	b.addSight(b.team, source, name, f.Level(), f.Level().Join(f.Accepts)) // in the records of the run
	return source
}

// addToolResult adds what a task gets of what a tool returns.
func (b toolFlow) addToolResult(from string, source, to int) {
	b.toolResult(source, to, termsTo(b.plan, to, from))
}

// toolResult adds what terms deliver of what a tool returns, or the person who approves its calls.
func (b toolFlow) toolResult(source, to int, terms *gate.Terms) {
	e := flow.Edge{Source: source, Task: to, Delivers: pick.Everything(), Rule: gate.RuleTools, Minimal: terms.Mode() == handoff.Minimal}
	if rule, line := terms.Stated(); rule != "" {
		e.Rule, e.Line = rule, line
	}
	if delivers, err := terms.Delivers(nil); err == nil {
		e.Delivers = delivers
	}
	b.graph.Edges = append(b.graph.Edges, e)
}
