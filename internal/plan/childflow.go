package plan

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/tokencount"
	"github.com/runteam/runteam/label"
)

// A childNode stands for the children that one member has in a task.
type childNode struct {
	member       int
	task, source int // in the graph: what they read, and what they answer
	reads        []flow.Edge
	isPassed     bool                 // they may be passed files of the workspace of the task
	most         label.Classification // of what is passed
}

// addChildren adds the children of a task, which reads what inputs say. It returns them, so that their
// tools can be added.
// written is the source of what the agent of the task writes.
func (b *flowBuilder) addChildren(i, written int, inputs []flow.Edge) (nodes []childNode) {
	p, title := b.plan, b.plan.Graph.Task(i).Title
	hasFiles := b.team.Config.Agents[p.Members[i]].hasWorkspace()
	add := func(n childNode, files []string, most label.Classification) {
		n.isPassed, n.most = hasFiles && len(files) > 0, most
		nodes = append(nodes, n)
	}
	if s := SpawningOf(p, i); s != nil {
		add(b.addChildNode("children of "+title, i, int(p.Members[i])), s.Files, label.Secret)
	}
	for _, to := range Delegates(p, i) {
		if delegates(p, i, to) {
			n := b.addChildNode(fmt.Sprintf("%s for %s", b.team.Config.Agents[to.Member].Name, title), i, to.Member)
			add(n, b.team.Config.Edges[to.Edge].Files, to.Max)
		}
	}
	for k, n := range nodes {
		start := len(b.graph.Edges)
		b.wholeEdge(written, n.task, gate.RulePlan)
		for _, e := range inputs {
			e.Task, e.Rule, e.Line, e.Note, e.Lowers = n.task, gate.RulePlan, "", "", nil
			b.graph.Edges = append(b.graph.Edges, e)
		}
		for _, other := range nodes { // the task can make a goal of what another one answered
			b.wholeEdge(other.source, n.task, gate.RulePlan)
		}
		if n.isPassed {
			b.addPassedFiles(i, written, n)
		}
		nodes[k].reads = slices.Clone(b.graph.Edges[start:])
		b.wholeEdge(n.source, i, gate.RuleTools)
	}
	return nodes
}

// addPassedFiles adds the files of the workspace of task i that its children may be passed: those that the task was given,
// under the rules for who made them, and what its agent changed. It adds what the children change of them too.
func (b *flowBuilder) addPassedFiles(i, written int, n childNode) {
	p, caps := b.plan, &b.team.Capabilities[n.member]
	for _, a := range p.deliveries(nil, i) {
		if !p.isFiles(i, &a) {
			continue
		}
		least, most, from := a.least, a.most, a.from
		terms := gate.Limited(ReadBy(p, i).Terms(from, caps.Agent), n.most, gate.Citation{Rule: gate.RuleEdge}, from, caps.Agent)
		d := deliveryOf(terms, least, most, true, caps)
		d.part = a.part
		addGranted(b, i, n.task, &d, terms)
	}
	for _, e := range []flow.Edge{{Source: written, Task: n.task}, {Source: n.source, Task: i}} {
		e.Delivers, e.Rule, e.Note = pick.Everything(), gate.RuleFiles, "changed files"
		b.graph.Edges = append(b.graph.Edges, e)
	}
}

// delegates reports whether task i can ever delegate to a neighbor: its context is low enough, or a
// declassifier may lower the goal.
func delegates(p *Plan, i int, to Neighbor) bool {
	least, caps := leastGoal(p, i), &p.Roster().Capabilities[to.Member]
	if least > to.Max || least <= caps.Clearance() {
		return least <= to.Max
	}
	terms := p.Roster().Terms(p.Graph.Task(i).Assignee, caps.Agent)
	d := deliveryOf(terms, least, min(p.Labels[i], to.Max), true, caps)
	return !d.Withheld || d.crossing.Lowers != nil
}

// leastGoal returns the lowest label of a goal that task i delegates.
func leastGoal(p *Plan, i int) label.Classification { return p.least[i].Join(p.ToolLabel(i)) }

// addChildNode adds the children that a member has in task i.
func (b *flowBuilder) addChildNode(title string, i, member int) childNode {
	g, caps := &b.graph, &b.team.Capabilities[member]
	n := childNode{member: member, task: len(g.Tasks), source: len(g.Sources)}
	g.Tasks = append(g.Tasks, flow.Task{Title: title, Agent: member, Endpoints: b.endpointReaders(caps)})
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.ToolResult, Name: title, From: caps.Agent, Task: n.task, Label: b.plan.Labels[i]})
	b.addSight(ReadBy(b.plan, i), n.source, caps.Agent, b.plan.least[i], b.plan.Labels[i]) // in the records of the run
	return n
}

// checkDelegate reports an edge that delegates, and whose handoffs nobody reads, which unread says why, if no
// task of the agent that it leads from can delegate along it.
func checkDelegate(c *labelCheck, from string, n Neighbor, tasks []int, unread string) {
	may, least, to := false, label.Secret, c.team.Config.Agents[n.Member].Name
	for _, i := range tasks {
		if !slices.ContainsFunc(Delegates(c.plan, i), func(other Neighbor) bool { return other.Member == n.Member }) {
			continue
		}
		may, least = true, min(least, leastGoal(c.plan, i))
	}
	switch {
	case !may:
		c.advise(c.about(fmt.Sprintf("edge %d", n.Edge+1), "edges", n.Edge), fmt.Sprintf("%s, and no task of %q has the tool %s, so the edge is not used", unread, from, DelegateToAgent), "add the tool to tools of a task, or remove the edge")
	case least > n.Max:
		c.reportEdge(n.Edge, fmt.Sprintf("%q cannot delegate anything to %q: its context is at least %v, and the edge carries at most %v", from, to, least, n.Max), fmt.Sprintf("raise maxClassification to %v, or remove the edge", least))
	default:
		c.reportEdge(n.Edge, fmt.Sprintf("%q cannot delegate anything to %q: its context is at least %v, and %q may see %v", from, to, least, to, c.team.Capabilities[n.Member].Clearance()), "raise accepts of the reader, change the rule of the policy, or remove the edge")
	}
}

// checkDelegates reports edges along which a task can never delegate.
func checkDelegates(c *labelCheck) {
	p := c.plan
	for i := range p.Graph.Len() {
		for _, to := range Delegates(p, i) {
			if delegates(p, i, to) {
				continue
			}
			c.advise(c.about(fmt.Sprintf("edge %d", to.Edge+1), "edges", to.Edge), fmt.Sprintf("task %q cannot delegate along it: %s", p.Graph.Task(i).Title, cannotDelegate(p, i, to)), "")
		}
	}
	checkToolless(c)
	checkPassing(c)
}

// checkPassing warns of files that may be passed with goals if an agent has no tools for them.
func checkPassing(c *labelCheck) {
	agents := c.team.Config.Agents
	warn := func(at subject, from, to *Member) {
		problem := ""
		if !from.hasWorkspace() {
			problem = fmt.Sprintf("%q has no tool that works on its workspace, so it passes no files", from.Name)
		} else if !slices.ContainsFunc(ForChildren(to.Tools), worksOnFiles) {
			problem = fmt.Sprintf("%q has no tool that works on a workspace, so of files that it is passed it gets only the list", to.Name)
		}
		if problem != "" {
			c.advise(at, problem, "give it such tools, for instance file_read, or remove files")
		}
	}
	for i := range agents {
		if s := agents[i].Spawn; s != nil && len(s.Files) > 0 {
			warn(c.about(fmt.Sprintf("agent %q", agents[i].Name), "agents", i).at("spawn", "files"), &agents[i], &agents[i])
		}
		for _, to := range c.team.Network.delegates(i) {
			if len(c.team.Config.Edges[to.Edge].Files) > 0 {
				warn(c.about(fmt.Sprintf("edge %d", to.Edge+1), "edges", to.Edge).at("files"), &agents[i], &agents[to.Member])
			}
		}
	}
}

// cannotDelegate says why task i can never delegate to a neighbor.
func cannotDelegate(p *Plan, i int, to Neighbor) string {
	most := min(to.Max, p.Roster().Capabilities[to.Member].Clearance())
	return fmt.Sprintf("its context is at least %v, and at most %v can be delegated to %q", leastGoal(p, i), most, p.Roster().Config.Agents[to.Member].Name)
}

// checkToolless reports agents that have no tool left when they work on goals.
func checkToolless(c *labelCheck) {
	p, agents := c.plan, c.team.Config.Agents
	const hint = "remove approve from tools that they need, or give the work to a task"
	found := map[Neighbor]bool{}
	spawns := map[int]bool{}
	for i := range p.Graph.Len() {
		for _, to := range Delegates(p, i) {
			m := &agents[to.Member]
			if !losesTools(m) || found[to] {
				continue
			}
			found[to] = true
			c.advise(c.about(fmt.Sprintf("edge %d", to.Edge+1), "edges", to.Edge), fmt.Sprintf("%q works on delegated goals without any tool: a person approves the calls of each, and a child asks no person", m.Name), hint)
		}
		k := int(p.Members[i])
		if SpawningOf(p, i) != nil && losesTools(&agents[k]) && !spawns[k] {
			spawns[k] = true
			c.advise(c.about(fmt.Sprintf("agent %q", agents[k].Name), "agents", k).at("spawn"), "its children have no tool: a person approves the calls of each, and a child asks no person", hint)
		}
	}
}

// losesTools reports whether a member has tools, and its children none.
func losesTools(m *Member) bool { return len(m.Tools) > 0 && len(ForChildren(m.Tools)) == 0 }

// addChildren adds what the calls of the children of task i can take.
func addChildren(by []agentUsage, p *Plan, i int) {
	attempts := min(p.Graph.Task(i).MaxRetries, mostInt-1) + 1
	if s := SpawningOf(p, i); s != nil {
		by[p.Members[i]].addGoals(p.Roster(), int(p.Members[i]), times(attempts, s.Max), s.MaxTurns)
	}
	for _, to := range Delegates(p, i) {
		by[to.Member].addGoals(p.Roster(), to.Member, times(attempts, MaxDelegations), Spawning{}.WithDefaults().MaxTurns)
	}
}

// addGoals adds what a member can take for goals, with at most so many turns for each.
func (u *agentUsage) addGoals(t *Roster, member, goals, turns int) {
	m := &t.Config.Agents[member]
	calls, answer, known := m.callLimits()
	if !known {
		u.unknown = true
		return
	}
	if calls > 0 {
		turns = min(turns, calls)
	}
	around := len(m.SystemPrompt) + brief.Limit(t.MemberLimits(member).MaxPromptBytes)
	for _, f := range m.Tools {
		around += len(f.Name) + len(f.Description) + len(f.Parameters) + Frame
	}
	for _, f := range t.Network.toolsOf(member) {
		around += len(f.Name) + len(f.Description) + len(f.Parameters) + Frame
	}
	u.calls = min(u.calls+times(goals, turns), mostInt)
	u.prompts = min(u.prompts+times(times(goals, turns), tokencount.OfBytes(around)), mostInt)
	if answer > 0 {
		u.answers = min(u.answers+times(times(goals, turns), answer), mostInt)
	} else {
		u.unbounded = true
	}
}
