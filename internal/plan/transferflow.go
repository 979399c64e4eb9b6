package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// transferFlows are what a graph has of transfers and inboxes.
type transferFlows struct {
	answers    map[int]int  // the tasks whose results all their holders make, by the task of the graph that writes these
	handoffs   *handoffPlan // nil without edges
	sent       map[int]int  // handoffs, by the task that sends them
	bus        []int        // the messages of the program to each agent; nil without a message bus
	remembered *int         // the memory of the caller; nil if there is none
}

// A holderNode stands for the agent that holds the conversation of a task.
type holderNode struct {
	member   int
	agent    string
	task     int // of the graph
	said     int // the source of what it says
	tools    []*tool.Tool
	results  []int // the sources of what its tools return
	children []int // and its children
	refusals []int // and of what people say who approve its calls
}

// sourceOfWritten returns the source of what the agent of task i writes: the result of the task, or what it says
// in its conversation if that can be transferred.
func (b *toolFlow) sourceOfWritten(i int) int {
	g, p := &b.graph, b.plan
	if len(Holders(p, i)) == 0 {
		return b.results + i
	}
	t, said, answer := p.Graph.Task(i), len(g.Sources), len(g.Tasks)
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.Transferred, Name: fmt.Sprintf("what %s says in %s", t.Assignee, t.Title), From: t.Assignee, Task: i, Label: p.Labels[i]})
	b.addSight(ReadBy(p, i), said, t.Assignee, p.least[i], p.Labels[i]) // in the records of the run
	g.Tasks = append(g.Tasks, flow.Task{ID: t.ID, Key: t.Key, Title: "the answer in " + t.Title, Agent: flow.Nobody})
	g.Sources[b.results+i].Task = answer
	if b.answers == nil {
		b.flowBuilder.answers = map[int]int{}
	}
	b.answers[answer] = i
	b.wholeEdge(said, answer, gate.RuleTransfer)
	return said
}

// addHolders adds the holders of task i, whose agent writes a source, reads what inputs say, and has the
// results of tools and children, and the words of people who refuse its calls.
func (b *toolFlow) addHolders(i, written int, inputs []flow.Edge, tools []int, children []childNode, refusals []int) {
	p := b.plan
	holders := Holders(p, i)
	if len(holders) == 0 {
		return
	}
	first := holderNode{member: int(p.Members[i]), agent: p.Graph.Task(i).Assignee, task: i, said: written, results: tools, refusals: refusals}
	for _, n := range children {
		first.children = append(first.children, n.source)
	}
	nodes := []holderNode{first}
	for _, h := range holders {
		nodes = append(nodes, b.addHolderNode(i, h.Member))
	}
	for k := 1; k < len(nodes); k++ {
		n := &nodes[k]
		start := len(b.graph.Edges)
		b.addHolderGrants(i, n, inputs)
		b.addInbox(n)
		for e := range nodes {
			b.addPieces(i, &nodes[e], n, false)
		}
		for at, f := range n.tools {
			b.toolResult(n.results[at], n.task, ReadBy(p, i).Terms(gate.ToolReader(f.Name), n.agent))
		}
		b.addCalls(i, n, b.graph.Edges[start:len(b.graph.Edges):len(b.graph.Edges)])
		b.wholeEdge(n.said, b.graph.Sources[b.results+i].Task, gate.RuleTransfer)
	}
	for k := range nodes {
		nodes[k].addAsked(&b.graph, &b.team.Network, p.Graph.Task(i), p.Labels[i], nodes[1:])
	}
	for k := 1; k < len(nodes); k++ {
		for e := range nodes {
			b.addPieces(i, &nodes[e], &nodes[k], true)
		}
	}
}

// addHolderNode adds a member as a holder of task i, with its tools.
func (b *toolFlow) addHolderNode(i, member int) holderNode {
	g, p, caps, m := &b.graph, b.plan, &b.team.Capabilities[member], &b.team.Config.Agents[member]
	title := fmt.Sprintf("%s in %s", caps.Agent, p.Graph.Task(i).Title)
	n := holderNode{member: member, agent: caps.Agent, task: len(g.Tasks), said: len(g.Sources), tools: m.reachable(m.Tools)}
	g.Tasks = append(g.Tasks, flow.Task{ID: p.Graph.Task(i).ID, Title: title, Agent: member, Endpoints: b.endpointReaders(caps)})
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.Transferred, Name: "what " + title + " says", From: caps.Agent, Task: n.task, Label: p.Labels[i]})
	b.addSight(ReadBy(p, i), n.said, caps.Agent, p.least[i], p.Labels[i]) // in the records of the run
	for _, f := range n.tools {
		n.results = append(n.results, b.toolSource(f))
	}
	return n
}

// addHolderGrants adds what task i is granted, by the rules for a holder.
func (b *toolFlow) addHolderGrants(i int, n *holderNode, inputs []flow.Edge) {
	p, by := b.plan, ReadBy(b.plan, i)
	for _, a := range deliveriesTo(nil, p, i, &b.team.Capabilities[n.member]) {
		addGranted(b.flowBuilder, i, n.task, &a, by.Terms(a.from, n.agent))
	}
	if p.Graph.Task(i).MemoryScope == task.ScopeAll {
		for from := range p.Graph.Len() {
			if from != i {
				b.addMemoryEntry(by, from, n.task, n.member)
			}
		}
		if b.remembered != nil {
			b.wholeEdge(*b.remembered, n.task, gate.RuleMemory)
		}
	}
	for _, e := range inputs { // what the coordinator wrote, and what decided that the task runs
		switch b.graph.Sources[e.Source].Kind {
		case handoff.Input, handoff.Dependency, handoff.Message, handoff.Memory, handoff.Conversation, handoff.ToolResult:
		default:
			e.Task = n.task
			b.graph.Edges = append(b.graph.Edges, e)
		}
	}
}

// addInbox adds the messages to a holder that agents and the program send during the run.
func (b *toolFlow) addInbox(n *holderNode) {
	if b.bus != nil {
		b.wholeEdge(b.bus[n.member], n.task, gate.RuleMessage)
	}
	if b.handoffs == nil {
		return
	}
	for from, tasks := range b.handoffs.tasks {
		if to, connected := b.team.Network.Reaches(from, n.member); connected {
			for _, s := range tasks {
				b.handoffEdge(*b.handoffs, b.handoffSource(s), n.task, from, to, s)
			}
		}
	}
}

// addAsked adds what later holders learn from being asked at all, whatever the rules withhold of the conversation: that
// an agent transferred it. All that the agent has read decides that.
func (n *holderNode) addAsked(g *flow.Graph, network *Network, t *task.Task, level label.Classification, holders []holderNode) {
	source := len(g.Sources)
	for _, to := range network.transfers(n.member) {
		k := slices.IndexFunc(holders, func(h holderNode) bool { return h.member == to.Member })
		if k < 0 {
			continue
		}
		if source == len(g.Sources) {
			g.Sources = append(g.Sources, flow.Source{Kind: handoff.Condition, Name: fmt.Sprintf("that %s transfers %s", n.agent, t.Title), From: n.agent, Task: n.task, Label: level})
		}
		g.Edges = append(g.Edges, flow.Edge{Source: source, Task: holders[k].task, Delivers: pick.Everything(), Rule: gate.RuleTransfer})
	}
}

// addPieces adds what a holder gets of an earlier one: what that said, and what its tools and children
// returned to it, or what people refused it, up to what the edges between them carry.
func (b *toolFlow) addPieces(i int, from, to *holderNode, refusals bool) {
	most := b.team.Network.carries(from.member, to.member)
	if most == nil {
		return
	}
	p, by := b.plan, ReadBy(b.plan, i)
	least := p.least[i].Join(p.ToolLabel(i))
	add := func(source int, producer string, least label.Classification) {
		terms := gate.Limited(by.Terms(producer, to.agent), *most, gate.Citation{Rule: gate.RuleEdge}, producer, to.agent)
		a := deliveryOf(terms, min(least, p.Labels[i]), p.Labels[i], true, &b.team.Capabilities[to.member])
		e := b.passage(source, terms, nil, &a)
		if e.Task, e.Rule = to.task, cmp.Or(e.Rule, gate.RuleTransfer); a.crossing.Lowers != nil && !a.plain {
			e.Delivers, e.Withheld, e.Lowers, e.Note = pick.Selection{}, true, nil, "" // its parts were not validated
		}
		b.graph.Edges = append(b.graph.Edges, e)
	}
	if refusals {
		for _, source := range from.refusals {
			add(source, b.graph.Sources[source].From, label.Public)
		}
		return
	}
	add(from.said, from.agent, least)
	for _, source := range append(append([]int(nil), from.results...), from.children...) {
		add(source, b.graph.Sources[source].From, label.Public)
	}
}

// addCalls adds what a holder of task i, which reads what edges say, passes to its tools.
func (b *toolFlow) addCalls(i int, n *holderNode, reads []flow.Edge) {
	for k, f := range n.tools {
		pass := func(to int) {
			b.wholeEdge(n.said, to, gate.RuleTools)
			for _, e := range reads {
				e.Task, e.Rule, e.Line, e.Note, e.Lowers = to, gate.RuleTools, "", "", nil
				b.graph.Edges = append(b.graph.Edges, e)
			}
		}
		pass(b.graph.Sources[n.results[k]].Task)
		n.refusals = append(n.refusals, b.addApproval(f, i, n.agent, n.task, pass)...)
	}
}
