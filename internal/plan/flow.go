package plan

import (
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// checkFlow propagates labels through the graph in dependency order, and checks about
// each task what the gate will be asked at dispatch, with the highest labels that can
// occur.
func (c *checker) checkFlow() {
	g, p := c.plan.Graph, c.plan
	n := g.Len()
	p.Members = make([]int32, n)
	p.Schemas = make([]*schema.Schema, n)
	p.Labels = make([]label.Classification, n)
	p.least = make([]label.Classification, n)
	p.InputIndex = c.inputs
	p.Folders = newFolders(p)
	for i := range n {
		t := g.Task(i)
		m, _ := c.team.Index(t.Assignee)
		if p.Members[i] = int32(m); c.before != nil {
			p.Schemas[i] = c.before.Schemas[i]
			continue
		}
		p.Schemas[i] = c.schema(t, m)
	}
	paths := &pathCheck{checker: c}
	if !c.options.Planned { // CheckGoalRun has checked them before the coordinator was called
		paths.checkPolicyPaths()
		paths.checkIntakePaths()
	}
	labels := &labelCheck{checker: c, raised: make([]partOf, n)}
	labels.propagateAll(func(i int, parts []delivery) {
		c.checkPayloads(i)
		paths.checkGrants(i)
		c.checkSummaries(i, parts)
		c.checkLowered(i, parts)
		labels.checkRefusals(i, parts)
	})
	paths.checkDroppedFiles()
	labels.reportBlocked()
	c.checkBranches()
	c.checkLoweredOutside()
	c.checkIdle()
	c.checkReaders()
	c.checkToolLabels()
}

// A labelCheck computes the labels of all tasks, and reports the tasks that are blocked
// by theirs.
type labelCheck struct {
	*checker
	raised   []partOf               // of each task, the part that gave it its label; see raiser
	memory   []label.Classification // of each task of scope all, what it may find in memory
	arrivals [][]arrival            // of each task, what it may get along edges
	walked   int                    // edges, for the memory
	walk     int                    // the number of the walk
	seen     []int                  // of each task, the last walk that met it
	blocked  []blockedTask
}

// propagateAll computes the labels, and calls visit for each task with what may reach it.
func (c *labelCheck) propagateAll(visit func(i int, parts []delivery)) {
	p := c.plan
	reads, sends := p.ReadsMemory(), len(c.team.Config.Edges) > 0
	if reads {
		c.memory = slices.Repeat([]label.Classification{label.Public}, p.Graph.Len())
	}
	c.arrivals = make([][]arrival, p.Graph.Len())
	var handoffs handoffPlan
	if reads || sends {
		if sends {
			handoffs = newHandoffPlan(p)
			p.unread = unreadMembers(handoffs)
			p.replies = slices.Repeat([]label.Classification{label.Public}, p.Graph.Len())
		}
		for again := true; again; { // what a task reads there raises what others find in memory or get along edges
			c.propagate(nil)
			again = reads && c.raiseMemory()
			again = sends && c.raiseArrivals(handoffs) || again
			again = sends && c.raiseReplies() || again
		}
	}
	c.propagate(visit)
	p.memory, p.arrivals = c.memory, c.arrivals
	if sends {
		c.checkEdges(handoffs)
		if c.options.Planned {
			checkNamedTools(handoffs, &c.findings)
		}
	}
	checkDelegates(c)
	c.checkTransfers()
}

// propagate computes the labels once, from the labels of the shared memory so far.
func (c *labelCheck) propagate(visit func(i int, parts []delivery)) {
	g, p := c.plan.Graph, c.plan
	var parts []delivery
	for _, at := range g.Order() {
		i := int(at)
		t := g.Task(i)
		p.Folders.find(i)
		parts = p.deliveries(parts[:0], i)
		if t.MemoryScope == task.ScopeAll {
			most := min(c.memory[i], c.team.Capabilities[p.Members[i]].Clearance()) // what is above the clearance is withheld
			parts = append(parts, delivery{part: partOf{kind: handoff.Memory}, Part: gate.Part{Classification: most, Optional: true}})
		}
		parts = c.arriving(parts, i)
		own := t.Classification.Join(p.ToolLabel(i))
		level, least := own, t.Classification
		for k := range parts {
			if parts[k].counts() {
				level = level.Join(parts[k].Classification)
			}
			if !parts[k].Optional && !parts[k].other {
				least = least.Join(parts[k].least)
			}
		}
		branch := c.propagateBranch(i, parts)
		p.Labels[i], p.least[i] = level.Join(branch), least.Join(branch)
		if Joins(t) {
			p.least[i] = c.leastResult(i, parts).Join(branch)
		}
		settled := c.settle(i)
		c.raised[i] = c.branchRaiser(i, raiser(p.Labels[i], own, parts))
		if visit != nil && !Joins(t) && !settled {
			visit(i, parts)
		}
	}
}

// leastResult returns the lowest label that the result of a loop can have, without what decided how
// many rounds there are: that of one of its rounds.
func (c *labelCheck) leastResult(i int, parts []delivery) label.Classification {
	least := c.plan.Labels[i]
	for k := range parts {
		if parts[k].part.kind == handoff.Dependency {
			least = min(least, parts[k].least)
		}
	}
	return least
}

// A partOf names a piece of context of a task. The zero value is the task's own
// classification.
type partOf struct {
	kind handoff.SourceKind
	n    int32 // of the uses, the dependencies or the messages
}

// A delivery is one piece of context as the check before a run counts it.
type delivery struct {
	part      partOf
	from      string               // its producer
	most      label.Classification // the highest label that the value can have
	gate.Part                      // with the highest label that it can be delivered with
	least     label.Classification // the lowest label that it can be delivered with
	crossing  gate.Admission       // at the highest label that it can have
	other     bool                 // an alternative, in whose place another may be delivered
	plain     bool                 // at some label, it is delivered without a declassifier
}

// counts reports whether the delivery raises the label of its reader.
func (a *delivery) counts() bool { return !a.Optional || !a.Withheld }

// deliveryOf returns what a value whose label lies between two bounds can at most add to
// the label of a reader. A value with a lower label may be delivered where one with the
// highest is not, or with a higher label than the highest, which a declassifier lowers.
func deliveryOf(terms *gate.Terms, least, most label.Classification, optional bool, caps *gate.Capabilities) delivery {
	clearance := caps.Clearance()
	a := delivery{crossing: terms.Admit(most, clearance, caps.Agent)}
	a.plain = !a.crossing.Withheld() && a.crossing.Lowers == nil
	a.Optional, a.Withheld, a.Classification = optional, a.crossing.Withheld(), a.crossing.After
	if terms.Mode() == handoff.Minimal {
		a.Optional, a.Withheld, a.Classification, a.least, a.crossing = true, true, label.Public, label.Public, gate.Admission{}
		return a
	}
	if a.Withheld && optional {
		a.Classification = label.Public
	}
	lowest := a.Classification
	for level := least; level < most; level++ {
		if x := terms.Admit(level, clearance, caps.Agent); !x.Withheld() {
			a.Classification, lowest = a.Classification.Join(x.After), min(lowest, x.After)
			a.Withheld, a.plain = a.Withheld && !optional, a.plain || x.Lowers == nil
		}
	}
	a.least = lowest
	return a
}

// deliveries appends to list what may reach task i besides the shared memory: inputs, then
// the results that it depends on, whose labels must be known, then messages.
func (p *Plan) deliveries(list []delivery, i int) []delivery {
	if Joins(p.Graph.Task(i)) {
		return joined(list, p, i)
	}
	return deliveriesTo(list, p, i, &p.Roster().Capabilities[p.Members[i]])
}

// deliveriesTo is deliveries for an agent that performs task i, or to which its conversation is transferred.
func deliveriesTo(list []delivery, p *Plan, i int, reader *gate.Capabilities) []delivery {
	t, o := p.Graph.Task(i), p.Options()
	add := func(kind handoff.SourceKind, n int, from string, least, most label.Classification, optional bool) {
		a := deliveryOf(ReadBy(p, i).Terms(from, reader.Agent), least, most, optional, reader)
		a.part, a.from, a.most = partOf{kind, int32(n)}, from, most
		list = append(list, a)
	}
	for j, u := range t.Uses {
		level := p.Input(u).Classification
		add(handoff.Input, j, handoff.User, level, level, false)
	}
	for j, up := range p.Graph.Upstream(i) {
		if isReread(t, j) {
			break // the runtime compares them, and they are the last
		}
		kind := handoff.Dependency
		if isRead(p.Graph.Task(i), j) {
			kind = handoff.Condition
		}
		add(kind, j, p.Graph.Task(int(up)).Assignee, p.least[up], p.Labels[up], t.DependsOn[j].Optional)
		list[len(list)-1].other = len(t.DependsOn[j].OneOf) > 0 || t.DependsOn[j].Each != ""
	}
	list = p.Folders.deliveries(list, i, reader)
	for k := range o.Messages {
		if m := &o.Messages[k]; reads(p.Roster(), m, reader.Agent) {
			add(handoff.Message, k, m.From, m.Classification, m.Classification, true)
		}
	}
	if o.Answer == nil {
		for k := range o.Conversation {
			if c := &o.Conversation[k]; c.Envelope != nil {
				level := c.Envelope.Classification()
				add(handoff.Conversation, k, c.MadeBy(reader.Agent), level, level, true)
			}
		}
	}
	return list
}

// grantOf returns the grant of a delivery to task i, and the paths that the task needs of it.
func (p *Plan) grantOf(i int, a *delivery) (g gate.Grant, need []task.Path) {
	t, n := p.Graph.Task(i), int(a.part.n)
	switch a.part.kind {
	case handoff.Input:
		return p.InputGrant(i, n), t.Uses[n].Need
	case handoff.Dependency, handoff.Condition:
		return p.DependencyGrant(i, n, int(p.Graph.Upstream(i)[n])), t.DependsOn[n].Need
	case handoff.Files:
		g = p.Folders.layers[i][n].Grant(p, i)
		return g, g.Paths
	}
	return gate.Grant{Terms: termsTo(p, i, a.from)}, nil
}

// raiseMemory computes what each task of scope all may find in the shared memory:
// the highest label, below secret, of a task that can have completed before
// it, which is any but those that follow from it. It reports whether anything
// has risen since the last time; labels are few, so soon nothing does.
func (c *labelCheck) raiseMemory() (risen bool) {
	g, p := c.plan.Graph, c.plan
	place := make([]int, g.Len()) // in the topological order
	for at, i := range g.Order() {
		place[i] = at
	}
	for _, level := range [...]label.Classification{label.Confidential, label.Internal} {
		first, count := g.Len(), 0
		for i, l := range p.Labels {
			if l == level {
				first, count = min(first, place[i]), count+1
			}
		}
		for i := range c.memory {
			if count == 0 || c.memory[i] >= level || g.Task(i).MemoryScope != task.ScopeAll {
				continue
			}
			if place[i] > first || c.othersHave(i, level, count) {
				c.memory[i], risen = level, true
			}
		}
	}
	return risen
}

// mostWalked bounds how many edges are walked to see which tasks follow from which. Beyond
// it, every task counts as one that may have completed before every other.
const mostWalked = 10_000_000

// othersHave reports whether one of the count tasks with this label is neither i
// nor follows from it.
func (c *labelCheck) othersHave(i int, level label.Classification, count int) bool {
	g := c.plan.Graph
	if c.walked > mostWalked {
		return true
	}
	if c.seen == nil {
		c.seen = make([]int, g.Len())
	}
	c.walk++
	for queue := []int32{int32(i)}; len(queue) > 0; queue = queue[1:] {
		at := int(queue[0])
		if c.seen[at] == c.walk {
			continue
		}
		if c.seen[at] = c.walk; c.plan.Labels[at] == level {
			count--
		}
		next := g.Downstream(at)
		if c.walked += 1 + len(next); c.walked > mostWalked {
			return true
		}
		queue = append(queue, next...)
	}
	return count > 0
}

// ReadsMemory reports whether a task of the plan reads the shared memory.
func (p *Plan) ReadsMemory() bool {
	for i := range p.Graph.Len() {
		if p.Graph.Task(i).MemoryScope == task.ScopeAll {
			return true
		}
	}
	return false
}
