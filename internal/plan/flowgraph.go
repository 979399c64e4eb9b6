package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Flow computes who could ever see what, from what the checks of the plan know. It takes time
// proportional to tasks and edges; keep the result.
//
// Sources are the inputs, the goal, the messages, what each task and each turn of the coordinator
// writes, and what tools return. Readers are the agents in the order of the roster, the
// coordinator if there is a goal, the user, the tools, the endpoints and the database of the journal.
func (p *Plan) Flow() *flow.Table {
	return flowOf(p, false)
}

// flowOf returns the table of [Plan.Flow]. If opaque, it counts inputs and messages as texts.
func flowOf(p *Plan, opaque bool) *flow.Table {
	b := newFlowBuilder(p, opaque)
	g := b.build()
	if slices.ContainsFunc(p.Graph.Tasks(), func(t task.Task) bool { return t.Instance != nil }) {
		foldLoops(g, p, b.answers)
	}
	return g.Table()
}

// FlowOfInstances returns the graph of [Plan.Flow] in which each round of a loop and each item of
// a list is a task of its own, with the indexes of the plan's Graph.
func FlowOfInstances(p *Plan) *flow.Graph {
	return newFlowBuilder(p, false).build()
}

// A flowBuilder fills in a graph.
type flowBuilder struct {
	plan    *Plan
	team    *Roster
	options *Options
	opaque  bool // count inputs and messages as texts, whatever they hold; those above the caller may have any member

	graph       flow.Graph
	coordinator int            // reader; -1 without one
	user        int            // reader
	endpoints   map[string]int // reader of each URL
	goal        int            // source; -1 without one
	messages    int            // the first message among the sources
	said        []int          // of each text of earlier turns, its source
	results     int            // the result of the first task among the sources

	approvals []loweredEdge     // of declassifiers
	arguments map[int]arguments // of tools, by their source
	transferFlows
	capacities map[schemaPath]int // in bytes
	names      map[*schema.Schema][]string
}

func newFlowBuilder(p *Plan, opaque bool) *flowBuilder {
	return &flowBuilder{plan: p, team: p.Roster(), options: p.Options(), endpoints: map[string]int{}, opaque: opaque}
}

func (b *flowBuilder) build() *flow.Graph {
	b.readers()
	b.sources()
	b.tasks()
	for _, e := range b.approvals {
		e.addTo(b)
	}
	b.addMemory()
	b.addHandoffs()
	b.addUnknown()
	b.addDescriptions()
	answered := b.addAnswer()
	made := b.results // the only task answers the person, or the coordinator does
	if answered >= 0 {
		made = len(b.graph.Sources) - 1
	}
	b.addBranches(answered)
	b.addItemKeys()
	toolFlow{flowBuilder: b}.addTools()
	for i := range b.plan.Graph.Len() { // what the user sees of the results
		b.addSight(ReadBy(b.plan, i), b.results+i, b.plan.Graph.Task(i).Assignee, b.plan.least[i], b.plan.Labels[i])
	}
	addAnswered(&b.graph, b.options.Conversation, b.said, made)
	b.addLastRounds()
	addJournal(&b.graph, b.plan)
	return &b.graph
}

func (b *flowBuilder) readers() {
	g, t := &b.graph, b.team
	for i := range t.Capabilities {
		g.Readers = append(g.Readers, flow.Reader{Kind: flow.Agent, Name: t.Capabilities[i].Agent, Clearance: t.Capabilities[i].Clearance()})
	}
	b.coordinator = -1
	if caps := b.coordinatorCaps(); caps != nil {
		b.coordinator = len(g.Readers)
		g.Readers = append(g.Readers, flow.Reader{Kind: flow.Coordinator, Name: handoff.Coordinator, Clearance: caps.Clearance()})
	}
	b.user = len(g.Readers)
	g.Readers = append(g.Readers, flow.Reader{Kind: flow.User, Name: handoff.User, Clearance: *b.options.UserAccepts})
}

// coordinatorCaps returns the coordinator as a reader, or nil if there is no goal.
func (b *flowBuilder) coordinatorCaps() *gate.Capabilities {
	c := b.team.Config.Coordinator
	if b.options.Answer == nil || c == nil || c.Agent == nil {
		return nil
	}
	caps := b.team.Coordinator(b.options)
	return &caps
}

// endpointReaders returns the readers behind an agent, adding those that are new.
func (b *flowBuilder) endpointReaders(caps *gate.Capabilities) []int {
	var list []int
	for _, e := range caps.Endpoints {
		where := endpoint.Normalize(e.URL) // two spellings of one address are one reader
		i, known := b.endpoints[where]
		if !known {
			i = len(b.graph.Readers)
			b.endpoints[where] = i
			b.graph.Readers = append(b.graph.Readers, flow.Reader{Kind: flow.Endpoint, Name: e.URL, Clearance: e.Accepts})
		}
		list = append(list, i)
	}
	return list
}

func (b *flowBuilder) sources() {
	g, p, o := &b.graph, b.plan, b.options
	for i := range o.Inputs {
		in := &o.Inputs[i]
		s := flow.Source{Kind: handoff.Input, Name: in.Name, From: handoff.User, Task: -1, Label: in.Classification}
		b.members(&s, in.schema)
		g.Sources = append(g.Sources, s)
	}
	b.goal = -1
	if o.Answer != nil {
		b.goal = len(g.Sources)
		g.Sources = append(g.Sources, flow.Source{Kind: handoff.Goal, Name: "goal", From: handoff.User, Task: -1, Label: o.Answer.Classification})
	}
	b.messages = len(g.Sources)
	for i := range o.Messages {
		m := &o.Messages[i]
		s := flow.Source{Kind: handoff.Message, Name: "message from " + m.From + " to " + m.To, From: m.From, Task: -1, Label: m.Classification}
		b.members(&s, func() *schema.Schema { return known(m.Text) })
		g.Sources = append(g.Sources, s)
	}
	addConversation(b)
	b.results = len(g.Sources)
	for i := range p.Graph.Len() {
		t := p.Graph.Task(i)
		s := flow.Source{Kind: handoff.Dependency, Name: t.Title, From: t.Assignee, Task: i, Label: p.Labels[i]}
		b.describe(&s, p.Schemas[i])
		g.Sources = append(g.Sources, s)
	}
}

// members fills in what is known of the paths and members of a value that was given.
// The caller reads what assertions find, so a text above the caller counts as
// having any member: an assertion must not depend on its content.
func (b *flowBuilder) members(s *flow.Source, of func() *schema.Schema) {
	if s.Label > *b.options.UserAccepts {
		s.Has = func([]string) flow.Answer { return flow.Maybe }
		s.Names = func(string) flow.Answer { return flow.Maybe }
		return
	}
	if !b.opaque {
		b.describe(s, of())
	}
}

// describe fills in the paths and members of a source with a schema.
func (b *flowBuilder) describe(s *flow.Source, by *schema.Schema) {
	if by != nil {
		s.Has, s.Names, s.Members = by.Has, by.Names, b.memberNames(by)
	}
}

// memberNames returns the names that a schema writes out, for hints.
func (b *flowBuilder) memberNames(s *schema.Schema) []string {
	names, known := b.names[s]
	if !known {
		if b.names == nil {
			b.names = map[*schema.Schema][]string{}
		}
		names = s.MemberNames()
		b.names[s] = names
	}
	return names
}

func (b *flowBuilder) tasks() {
	g, p := &b.graph, b.plan
	leaves := make([][]int, len(b.team.Capabilities))
	for m := range b.team.Capabilities {
		leaves[m] = b.endpointReaders(&b.team.Capabilities[m])
	}
	var parts []delivery
	for i := range p.Graph.Len() {
		t, m := p.Graph.Task(i), p.Members[i]
		reader := flow.Task{ID: t.ID, Key: t.Key, Title: t.Title, Agent: int(m), Endpoints: leaves[m]}
		if Joins(t) {
			reader.Agent, reader.Endpoints = flow.Nobody, nil
		}
		g.Tasks = append(g.Tasks, reader)
		parts = p.deliveries(parts[:0], i)
		for k := range parts {
			a := &parts[k]
			if Joins(t) && a.part.kind == handoff.Dependency {
				b.wholeEdge(b.results+int(p.Graph.Upstream(i)[a.part.n]), i, gate.RuleDependsOn)
				continue
			}
			addGranted(b, i, i, a, nil)
		}
	}
}

// addGranted adds what task i is granted as one delivery, to a task of the graph. by replaces what the policy
// says of the pair, if the reader is not the agent of task i; nil if it is.
func addGranted(b *flowBuilder, i, to int, a *delivery, by *gate.Terms) {
	g, p, t, n := &b.graph, b.plan, b.plan.Graph.Task(i), int(a.part.n)
	source, structured := b.messages+n, false
	switch a.part.kind {
	case handoff.Input:
		source = p.InputIndex[strings.ToLower(t.Uses[n].Name)]
	case handoff.Conversation:
		if source = b.said[n]; slices.ContainsFunc(g.Edges, func(e flow.Edge) bool { return e.Task == to && e.Source == source }) {
			return // a text with the same producer and label has the edge
		}
	case handoff.Dependency:
		source, structured = b.results+int(p.Graph.Upstream(i)[n]), t.DependsOn[n].As == task.Structured
	case handoff.Files:
		b.filesEdge(i, n, to, a, by)
		return
	case handoff.Condition:
		source, structured = b.results+int(p.Graph.Upstream(i)[n]), true
	}
	grant, need := p.grantOf(i, a)
	if to != i {
		grant.Terms = by
	}
	b.edge(source, to, &grant, need, *a, structured)
}

// edge adds what a grant delivers of a source to a task.
func (b *flowBuilder) edge(source, to int, g *gate.Grant, need []task.Path, a delivery, structured bool) {
	e := b.passage(source, g.Terms, need, &a)
	e.Task, e.Line, e.Structured = to, cmp.Or(e.Line, g.Line), structured
	b.graph.Edges = append(b.graph.Edges, e)
	if lower := a.crossing.Lowers; lower != nil && lower.Approve != "" {
		b.approvals = append(b.approvals, loweredEdge{lower, e})
	}
}

// passage returns what the terms of a pair deliver of a source, as an edge to no task yet.
func (b *flowBuilder) passage(source int, terms *gate.Terms, need []task.Path, a *delivery) flow.Edge {
	rule, line := terms.Stated()
	e := flow.Edge{Source: source, Rule: rule, Line: line, Minimal: terms.Mode() == handoff.Minimal, Withheld: a.Withheld && !a.plain}
	e.Delivers, _ = terms.Delivers(need) // nothing after an error
	if lower := a.crossing.Lowers; lower != nil {
		if e.Note = "declassified by " + lower.Name; lower.Approve != "" {
			e.Note += ", once " + lower.Approve + " approves"
		}
		e.Lowers = b.lowering(lower, source, e.Delivers, a.plain)
		if !a.plain {
			e.Delivers = only(e.Delivers, lower.Paths)
		}
	}
	return e
}

// wholeEdge adds all of a source to what a task may read by a rule.
func (b *flowBuilder) wholeEdge(source, to int, rule handoff.Rule) {
	b.graph.Edges = append(b.graph.Edges, flow.Edge{Source: source, Task: to, Delivers: pick.Everything(), Rule: rule})
}

// lowering returns what a declassifier lowers of the parts of a source that rules and needs
// deliver.
func (b *flowBuilder) lowering(d *handoff.Declassifier, source int, delivers pick.Selection, plain bool) *flow.Lowering {
	var schema *schema.Schema
	times := 1
	if i := source - b.results; i >= 0 && i < len(b.plan.Schemas) {
		schema = b.plan.Schemas[i]
	} else if a, is := b.arguments[source]; is {
		schema, times = a.parameters, a.calls
	}
	l := &flow.Lowering{Name: d.Name, To: d.LowerTo, Unsafe: d.UnsafeText, Plain: plain}
	for _, p := range d.Paths {
		if delivers.MayPass(pick.Tokens(p)) {
			bytes := b.capacity(schema, p)
			if bytes != flow.Unbounded {
				bytes *= times
			}
			l.Paths = append(l.Paths, flow.LoweredPath{Path: p, Bytes: bytes})
		}
	}
	return l
}

// capacity returns how many bytes a path can carry by a schema.
func (b *flowBuilder) capacity(schema *schema.Schema, p task.Path) int {
	key := schemaPath{schema, p}
	bytes, known := b.capacities[key]
	if !known {
		var ok bool
		if bytes, ok = schema.Capacity(p); !ok {
			bytes = flow.Unbounded
		}
		if b.capacities == nil {
			b.capacities = map[schemaPath]int{}
		}
		b.capacities[key] = bytes
	}
	return bytes
}

// A schemaPath is a path in the results that match a schema.
type schemaPath struct {
	schema *schema.Schema
	path   task.Path
}

// only narrows a selection. An invalid path selects nothing.
func only(s pick.Selection, paths []task.Path) pick.Selection {
	narrowed, err := s.Only(paths...)
	if err != nil {
		return pick.Selection{}
	}
	return narrowed
}

// mostRemembered is how many pairs of a task and a reader of the memory are
// distinguished; beyond it every task counts as having completed before all.
const mostRemembered = 200_000

// addMemory adds what tasks of scope all may find in the shared memory: the
// results of all tasks but those that follow from them.
func (b *flowBuilder) addMemory() {
	p := b.plan
	var readers []int
	for i := range p.Graph.Len() {
		if p.Graph.Task(i).MemoryScope == task.ScopeAll {
			readers = append(readers, i)
		}
	}
	n := p.Graph.Len()
	if len(readers)*n <= mostRemembered {
		for _, i := range readers {
			follows := p.followers(int32(i))
			for from := range n {
				if from != i && !follows[from] {
					b.addMemoryEntry(ReadBy(p, i), from, i, int(p.Members[i]))
				}
			}
		}
		return
	}
	// One digest for each agent represents those of all its tasks.
	digests := map[int32]int{}
	for _, i := range readers {
		m := p.Members[i]
		source, made := digests[m]
		if !made {
			at := len(b.graph.Tasks)
			b.graph.Tasks = append(b.graph.Tasks, flow.Task{Title: "shared memory", Agent: int(m), Endpoints: b.endpointReaders(&b.team.Capabilities[m])})
			for from := range n {
				for _, by := range rosters(p) {
					b.addMemoryEntry(by, from, at, int(m))
				}
			}
			source = len(b.graph.Sources)
			b.graph.Sources = append(b.graph.Sources, flow.Source{Kind: handoff.Memory, Name: "shared memory", From: handoff.Anyone, Task: at, Label: p.memory[i]})
			digests[m] = source
		}
		b.wholeEdge(source, i, gate.RuleMemory)
	}
}

// addMemoryEntry adds the result of a task as an entry of the memory that another may read, by the
// policy of a roster.
func (b *flowBuilder) addMemoryEntry(by *Roster, from, to, member int) {
	p := b.plan
	caps := &b.team.Capabilities[member]
	grant := gate.Grant{Terms: by.Terms(p.Graph.Task(from).Assignee, caps.Agent)}
	a := deliveryOf(grant.Terms, p.least[from], p.Labels[from], true, caps)
	if lower := a.crossing.Lowers; lower != nil && !lower.UnsafeText && !a.plain { // entries are not lowered
		a.Withheld = true
	}
	b.edge(b.results+from, to, &grant, nil, a, false)
	if e := &b.graph.Edges[len(b.graph.Edges)-1]; e.Rule == "" {
		e.Rule = gate.RuleMemory
	}
}

// addUnknown adds what is not known before a run: the messages that the program sends during the run, and
// the entries of the caller's memory.
func (b *flowBuilder) addUnknown() {
	g, p, o := &b.graph, b.plan, b.options
	n := p.Graph.Len()
	if o.Bus != nil {
		for m := range agentsOf(b.team) {
			source := len(g.Sources)
			g.Sources = append(g.Sources, flow.Source{Kind: handoff.Message, Name: "messages to " + b.team.Capabilities[m].Agent, From: handoff.User, Task: -1, Label: label.Confidential})
			b.bus = append(b.bus, source)
			for to := range n {
				if int(p.Members[to]) == m {
					b.wholeEdge(source, to, gate.RuleMessage)
				}
			}
		}
	}
	if o.Memory != nil {
		source := len(g.Sources)
		b.remembered = &source
		g.Sources = append(g.Sources, flow.Source{Kind: handoff.Memory, Name: "memory of the caller", From: handoff.Anyone, Task: -1, Label: label.Confidential})
		for i := range n {
			if p.Graph.Task(i).MemoryScope == task.ScopeAll {
				b.wholeEdge(source, i, gate.RuleMemory)
			}
		}
	}
}

// addSight adds what the user sees of a source whose label lies between two bounds, by the policy of a
// roster.
func (b *flowBuilder) addSight(by *Roster, source int, producer string, least, most label.Classification) {
	terms := by.Terms(producer, handoff.User)
	a := deliveryOf(terms, least, most, true, &gate.Capabilities{Agent: handoff.User, Accepts: *b.options.UserAccepts})
	e := b.passage(source, terms, nil, &a)
	b.graph.Sights = append(b.graph.Sights, flow.Sight{
		Source: e.Source, Reader: b.user, Withheld: e.Withheld || e.Minimal, Rule: e.Rule, Line: e.Line, Note: e.Note, Lowers: e.Lowers, Delivers: e.Delivers,
	})
}
