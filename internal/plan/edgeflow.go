package plan

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Handoffs along the edges of the team. A task may get one of every task that does not follow from it and
// whose agent has an edge to its agent: it may still work then, or the handoff waits for it.

// byEdge is the kind of a part that is what a task may get along an edge; its number is that of the edge.
const byEdge handoff.SourceKind = "edge"

// An arrival is what a task may get along an edge.
type arrival struct {
	from, edge  int
	least, most label.Classification // of the handoffs
}

// alongEdges is what tasks may get along edges.
type alongEdges struct {
	arrivals [][]arrival            // of each task
	unread   []bool                 // of each member: its edges only delegate, and no task can read what it sends
	replies  []label.Classification // of each task, the highest label of a reply that it may wait for; nil without edges
}

// mostPairs is how many pairs of a sending and a reading task are distinguished. Beyond it, every task of
// an agent may send to every task of its neighbors.
const mostPairs = 1_000_000

// A handoffPlan says which tasks may send handoffs to which.
type handoffPlan struct {
	plan    *Plan
	tasks   [][]int                // of each member
	precise bool                   // tasks that follow from the reader are known to send it nothing
	after   map[int][]bool         // of each reader, the tasks that follow from it
	level   []label.Classification // of each task, that of its tools without replies
}

func newHandoffPlan(p *Plan) handoffPlan {
	h := handoffPlan{plan: p, tasks: make([][]int, len(p.Roster().Config.Agents)), after: map[int][]bool{}}
	for i := range p.Graph.Len() {
		if t := p.Graph.Task(i); !Joins(t) && !t.IsComputed() {
			h.tasks[p.Members[i]] = append(h.tasks[p.Members[i]], i)
		}
		h.level = append(h.level, toolLevel(p, i))
	}
	pairs, readers := 0, map[int]int{}
	for from := range h.tasks {
		for _, n := range p.Roster().Network.Neighbors(from) {
			pairs += len(h.tasks[from]) * len(h.tasks[n.Member])
			readers[n.Member] = len(h.tasks[n.Member])
		}
	}
	walked := 0
	for _, n := range readers {
		walked += n * p.Graph.Len()
	}
	h.precise = pairs <= mostPairs && walked <= mostWalked
	return h
}

// least returns the lowest label of what a task sends.
func (h handoffPlan) least(i int) label.Classification {
	level := h.plan.least[i].Join(h.level[i])
	if i < len(h.plan.replies) {
		level = level.Join(h.plan.replies[i])
	}
	return level
}

// each calls visit for each task that may get something along an edge, with the tasks that may send it.
func (h handoffPlan) each(visit func(to, from int, n Neighbor, senders []int)) {
	for from := range h.tasks {
		for _, n := range h.plan.Roster().Network.Neighbors(from) {
			for _, to := range h.tasks[n.Member] {
				senders := h.tasks[from]
				if h.precise {
					senders = without(senders, h.afterwards(to))
				}
				visit(to, from, n, senders)
			}
		}
	}
}

// afterwards returns which tasks follow from a reader.
func (h handoffPlan) afterwards(to int) []bool {
	if h.after[to] == nil {
		h.after[to] = h.plan.followers(int32(to))
	}
	return h.after[to]
}

// follows reports whether a task is known to follow from a reader, so that it sends that nothing.
func (h handoffPlan) follows(to, i int) bool { return h.precise && h.afterwards(to)[i] }

// isPlanned reports whether a coordinator planned all tasks, in this run or in another one.
func isPlanned(p *Plan) bool {
	if p.Options().Planned {
		return true
	}
	for i := range p.Graph.Len() {
		t := p.Graph.Task(i)
		if from := t.Source.Record; !Joins(t) && !t.IsComputed() && (from == nil || from.From == handoff.User) {
			return false
		}
	}
	return true
}

// granted returns the members of which a task may have a tool of the runtime: all, unless a coordinator planned
// the tasks and grants it to none of the member's. Then the edges for it are not used, and there is nothing to
// say about them.
func (h handoffPlan) granted(name string) []bool {
	granted, planned := make([]bool, len(h.tasks)), isPlanned(h.plan)
	for member, tasks := range h.tasks {
		granted[member] = !planned || slices.ContainsFunc(tasks, func(i int) bool {
			return slices.ContainsFunc(RuntimeTools(h.plan, i), func(f RuntimeTool) bool { return f.Name == name })
		})
	}
	return granted
}

// without returns the tasks that are not among others.
func without(list []int, others []bool) (left []int) {
	for _, i := range list {
		if !others[i] {
			left = append(left, i)
		}
	}
	return left
}

// unreadMembers returns the members whose edges only delegate, to agents without a task that may still begin
// when they work: what they send would not be read.
func unreadMembers(h handoffPlan) []bool {
	unread := make([]bool, len(h.tasks))
	for i := range unread {
		list := h.plan.Roster().Network.Neighbors(i)
		unread[i] = len(list) > 0 && !slices.ContainsFunc(list, func(n Neighbor) bool { return !n.Delegate || n.Transfer })
	}
	h.each(func(_, from int, _ Neighbor, senders []int) {
		if len(senders) > 0 || len(h.tasks[from]) == 0 {
			unread[from] = false
		}
	})
	return unread
}

// raiseArrivals computes what each task may get along edges, from the labels of the tasks so far. It
// reports whether anything has changed since the last time.
func (c *labelCheck) raiseArrivals(h handoffPlan) (changed bool) {
	p := c.plan
	next := make([][]arrival, p.Graph.Len())
	h.each(func(to, from int, n Neighbor, senders []int) {
		a := arrival{from: from, edge: n.Edge, least: n.Max, most: label.Public}
		any := false
		for _, s := range senders {
			if least := h.least(s); least <= n.Max { // else its handoffs are refused
				a.least, a.most, any = min(a.least, least), a.most.Join(min(p.Labels[s], n.Max)), true
			}
		}
		if any {
			next[to] = append(next[to], a)
		}
	})
	for i := range next {
		if len(next[i]) != len(c.arrivals[i]) {
			changed = true
			break
		}
		for k := range next[i] {
			changed = changed || next[i][k] != c.arrivals[i][k]
		}
	}
	c.arrivals = next
	return changed
}

// raiseReplies joins the label of each task that may wait for a reply with what its neighbors may
// reply. It never lowers one, so that the labels have a fixed point. It reports whether one has risen.
func (c *labelCheck) raiseReplies() (changed bool) {
	p := c.plan
	for i, list := range c.arrivals {
		if !slices.ContainsFunc(RuntimeTools(p, i), func(t RuntimeTool) bool { return t.Required }) {
			continue
		}
		for _, a := range list {
			if _, asks := c.team.Network.Reaches(int(p.Members[i]), a.from); !asks {
				continue
			}
			d := arrivalDelivery(p, i, a)
			if level := p.replies[i].Join(d.Classification); d.counts() && level > p.replies[i] {
				p.replies[i], changed = level, true
			}
		}
	}
	return changed
}

// arriving returns what task i may get along edges.
func (c *labelCheck) arriving(list []delivery, i int) []delivery {
	for _, a := range c.arrivals[i] {
		list = append(list, arrivalDelivery(c.plan, i, a))
	}
	return list
}

// Hears reports whether anything that a member sends during the run can be delivered to task i. If so, an
// edge leads back from whoever reads the handoffs of the task, and its agent may know what becomes of them.
func Hears(p *Plan, i, member int) bool {
	if i >= len(p.arrivals) {
		return false
	}
	return slices.ContainsFunc(p.arrivals[i], func(a arrival) bool {
		if a.from != member {
			return false
		}
		d := arrivalDelivery(p, i, a)
		return d.isRead()
	})
}

// isRead reports whether the reader of a delivery can get anything of it.
func (d *delivery) isRead() bool { return d.plain || !d.Withheld || d.crossing.Lowers != nil }

// arrivalDelivery returns a handoff as the check before a run counts it.
func arrivalDelivery(p *Plan, i int, a arrival) delivery {
	team := p.Roster()
	from := team.Config.Agents[a.from].Name
	d := deliveryOf(termsTo(p, i, from), a.least, a.most, true, &team.Capabilities[p.Members[i]])
	d.part, d.from, d.most = partOf{byEdge, int32(a.edge)}, from, a.most
	return d
}

// checkEdges reports edges along which nothing can ever be read.
func (c *labelCheck) checkEdges(h handoffPlan) {
	type way struct{ from, to int }
	found := map[way]*edgeUse{}
	sends := h.granted(SendHandoff)
	h.each(func(to, from int, n Neighbor, senders []int) {
		if len(h.tasks[from]) == 0 || h.sendsAlong(from, n) || !sends[from] {
			return // nothing is sent during the run, or something of the options is read
		}
		w := way{from, n.Member}
		u := found[w]
		if u == nil {
			u = &edgeUse{Neighbor: n}
			found[w] = u
		}
		if !u.readable {
			u.count(h, to, from, senders)
		}
	})
	delegates := h.granted(DelegateToAgent)
	for from := range h.tasks {
		for _, n := range c.team.Network.Neighbors(from) {
			isIdle := len(h.tasks[n.Member]) == 0
			if len(h.tasks[from]) == 0 || n.Delegate && delegatesAlong(h, from, n) {
				continue
			}
			kept, hint := "", ""
			if n.Transfer {
				if kept, hint = cannotTransfer(h, from, n); kept == "" {
					continue
				}
			}
			sender, reader := c.team.Config.Agents[from].Name, c.team.Config.Agents[n.Member].Name
			detail := ""
			if u := found[way{from, n.Member}]; u != nil {
				unread, change := u.problem(c.plan, sender, reader)
				if detail = unread; !n.Transfer {
					hint = change
				} else if unread != "" {
					detail += "; and no conversation can be transferred to it: " + kept
				}
			}
			switch {
			case n.Delegate && (isIdle || !n.Transfer) && delegates[from] && (isIdle || detail != ""):
				checkDelegate(c, sender, n, h.tasks[from], cmp.Or(detail, fmt.Sprintf("%q has no task", reader)))
			case detail != "":
				c.reportEdge(n.Edge, detail, hint)
			case isIdle && !n.Delegate && !n.Transfer && sends[from]: // else it reads them when it gets the conversation
				c.advise(c.about(fmt.Sprintf("edge %d", n.Edge+1), "edges", n.Edge), fmt.Sprintf("%q has no task, so nobody reads what %q sends to it", reader, sender), "")
			}
		}
	}
	checkUnusedEdges(h, &c.findings)
}

// delegatesAlong reports whether a task of a member may delegate a goal to a neighbor.
func delegatesAlong(h handoffPlan, from int, n Neighbor) bool {
	return slices.ContainsFunc(h.tasks[from], func(i int) bool {
		return slices.ContainsFunc(Delegates(h.plan, i), func(to Neighbor) bool { return to.Member == n.Member }) && delegates(h.plan, i, n)
	})
}

// cannotTransfer says why no task of a member can transfer its conversation to a neighbor, and what to do; empty if one can.
func cannotTransfer(h handoffPlan, from int, n Neighbor) (why, hint string) {
	name := transferName(h.plan.Roster().Config.Agents[n.Member].Name)
	why, hint = fmt.Sprintf("no task of %q has the tool %s", h.plan.Roster().Config.Agents[from].Name, name), "add the tool to tools of a task, or remove the edge"
	for _, i := range h.tasks[from] {
		if !slices.ContainsFunc(RuntimeTools(h.plan, i), func(t RuntimeTool) bool { return t.To != nil && t.To.Member == n.Member }) {
			continue
		}
		if why, hint = cannotHold(h.plan, i, n.Member); why == "" {
			break
		}
	}
	return why, hint
}

// reportEdge reports an edge that cannot be used. A coordinator that has planned cannot change edges, and its
// plan can be run later: saved, or under another policy.
func (c *labelCheck) reportEdge(edge int, detail, hint string) {
	at := c.about(fmt.Sprintf("edge %d", edge+1), "edges", edge)
	if isPlanned(c.plan) {
		c.advise(at, detail, hint)
		return
	}
	at.report(detail, hint, fmt.Errorf("%w edge", task.ErrInvalid))
}

// sendsAlong reports whether a message of the options is sent along an edge.
func (h handoffPlan) sendsAlong(from int, n Neighbor) bool {
	team := h.plan.Roster()
	agents := team.Config.Agents
	return slices.ContainsFunc(h.plan.Options().Messages, func(m Message) bool {
		return m.From == agents[from].Name && reads(team, &m, agents[n.Member].Name)
	})
}

// An edgeUse is what the tasks of two agents make of an edge.
type edgeUse struct {
	Neighbor
	ordered  bool                 // a task may send to one that has not ended
	below    bool                 // and its context may be low enough for the edge
	readable bool                 // and its reader may read that
	least    label.Classification // the lowest label that a sender can have
	withheld *gate.Admission      // why a reader gets nothing
}

// count takes in a task that may read, and those that may send to it.
func (u *edgeUse) count(h handoffPlan, to, from int, senders []int) {
	for _, s := range senders {
		if !u.ordered || h.least(s) < u.least {
			u.least = h.least(s)
		}
		u.ordered = true
		if h.least(s) > u.Max {
			continue
		}
		u.below = true
		d := arrivalDelivery(h.plan, to, arrival{from: from, edge: u.Edge, least: h.least(s), most: min(h.plan.Labels[s], u.Max)})
		if d.isRead() {
			u.readable = true
		} else {
			u.withheld = new(d.crossing)
		}
	}
}

// problem says why nothing can be read, and what to change.
func (u *edgeUse) problem(p *Plan, from, to string) (detail, hint string) {
	switch {
	case !u.ordered && p.Roster().Config.Edges[u.Edge].Bidirectional:
		return fmt.Sprintf("nothing that %q sends can be read: every task of %q has ended before", from, to), fmt.Sprintf("remove bidirectional, so that the edge leads from %q to %q only", p.Roster().Config.Edges[u.Edge].From, p.Roster().Config.Edges[u.Edge].To)
	case !u.ordered:
		return fmt.Sprintf("nothing that %q sends can be read: every task of %q has ended before", from, to), "remove the edge, or let a task of the reader not be among the dependencies of the sender's tasks"
	case !u.below:
		return fmt.Sprintf("%q cannot send anything to %q: its context is at least %v, and the edge carries at most %v", from, to, u.least, u.Max), fmt.Sprintf("raise maxClassification to %v, or remove the edge", u.least)
	case !u.readable && u.withheld != nil && u.withheld.Withheld():
		return fmt.Sprintf("nothing that %q sends can be read by %q: %s", from, to, u.withheld.Detail), "raise accepts of the reader, change the rule of the policy, or remove the edge"
	}
	return "", ""
}

// addHandoffs adds what agents may send to each other during the run.
func (b *flowBuilder) addHandoffs() {
	if len(b.team.Config.Edges) == 0 {
		return
	}
	h := newHandoffPlan(b.plan)
	b.handoffs = &h
	hubs := map[[2]int]int{} // by sender and reader, where tasks are not distinguished
	h.each(func(to, from int, n Neighbor, senders []int) {
		if h.precise {
			for _, s := range senders {
				b.handoffEdge(h, b.handoffSource(s), to, from, n, s)
			}
			return
		}
		way := [2]int{from, n.Member}
		at, known := hubs[way]
		if !known {
			hub := len(b.graph.Tasks)
			b.graph.Tasks = append(b.graph.Tasks, flow.Task{Title: fmt.Sprintf("handoffs from %s to %s", b.team.Config.Agents[from].Name, b.team.Config.Agents[n.Member].Name), Agent: n.Member, Endpoints: b.endpointReaders(&b.team.Capabilities[n.Member])})
			most := label.Public
			for _, s := range senders {
				b.handoffEdge(h, b.handoffSource(s), hub, from, n, s)
				most = most.Join(min(b.plan.Labels[s], n.Max))
			}
			at = len(b.graph.Sources)
			b.graph.Sources = append(b.graph.Sources, flow.Source{Kind: handoff.Message, Name: b.graph.Tasks[hub].Title, From: b.team.Config.Agents[from].Name, Task: hub, Label: most})
			b.maybeHandoff(at)
			hubs[way] = at
		}
		b.wholeEdge(at, to, gate.RuleMessage)
	})
}

// handoffSource returns the handoffs that task s sends.
func (b *flowBuilder) handoffSource(s int) int {
	at, known := b.sent[s]
	if !known {
		t := b.plan.Graph.Task(s)
		at = len(b.graph.Sources)
		b.graph.Sources = append(b.graph.Sources, flow.Source{Kind: handoff.Message, Name: "handoffs of " + t.Title, From: t.Assignee, Task: s, Label: b.plan.Labels[s]})
		b.maybeHandoff(at)
		if b.sent == nil {
			b.sent = map[int]int{}
		}
		b.sent[s] = at
	}
	return at
}

// maybeHandoff says of a source that any path and any member may be in it.
func (b *flowBuilder) maybeHandoff(source int) {
	s := &b.graph.Sources[source]
	s.Has = func([]string) flow.Answer { return flow.Maybe }
	s.Names = func(string) flow.Answer { return flow.Maybe }
}

// handoffEdge adds what the gate delivers of the handoffs of task s.
func (b *flowBuilder) handoffEdge(h handoffPlan, source, to, from int, n Neighbor, s int) {
	p := b.plan
	reader := n.Member
	by := b.team
	if to < p.Graph.Len() {
		by = ReadBy(p, to)
	}
	caps := &b.team.Capabilities[reader]
	terms := by.Terms(b.team.Config.Agents[from].Name, caps.Agent)
	a := deliveryOf(terms, min(h.least(s), n.Max), min(p.Labels[s], n.Max), true, caps)
	a.Withheld = a.Withheld || h.least(s) > n.Max
	e := b.passage(source, terms, nil, &a)
	e.Task = to
	if e.Rule == "" {
		e.Rule = gate.RuleMessage
	}
	b.graph.Edges = append(b.graph.Edges, e)
}
