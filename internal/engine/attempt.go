package engine

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// An attempt is one try at one task of the graph.
type attempt struct {
	modelCall
	graph         *graph.Graph
	planned       bool // a coordinator wrote the description of the task
	index         int
	member        int
	known         doneSet        // the tasks whose results a task of scope all may find in memory; nil for any other
	unwritten     []*resultWrite // results of these tasks that were not in memory yet
	said          int            // texts of earlier turns, among the offers
	dependencies  int            // among the offers: results, then output files
	unreadable    error          // why its condition could not be read; nil if it was
	granted       int            // how many offers there are before those of the memory
	messageCount  int            // among the offers, behind all that the task itself is granted
	*conversation                // of an attempt that calls tools; nil of any other
	filesLeft     string         // where its workspace is, as [leftAt] says it, if it starts over since that is not here; else empty
	runtimeCalls
	attemptRelations
	transferState
	personTask
	steeredTask
}

// gather makes a the next attempt at a ready task, with what the task is granted.
func (r *results) gather(a *attempt, i int) {
	p := r.plan
	lists := a.emptied()
	*a = attempt{graph: p.Graph, planned: r.plannedText(i) != nil}
	a.run, a.contextLists = r.runScope, lists
	t := p.Graph.Task(i)
	a.start = time.Now()
	a.began = a.start
	if n := len(t.Uses) + len(t.DependsOn) + 1; a.planned || n > 1 {
		a.offers, a.grants = slices.Grow(a.offers, n), slices.Grow(a.grants, n)
	}
	a.index, a.number, a.member, a.task = i, r.memo.Counted(t.ID).LastNumber()+made(r, i)+1, int(p.Members[i]), t
	a.does, a.caps, a.schema, a.bound = r.team.Config.Agents[a.member].Agent, &r.team.Capabilities[a.member], p.Schemas[i], plan.Bound(p, i)
	a.tools, a.least = p.Tools(i), p.ToolLabel(i).Join(p.Branches.Of(i))
	if a.runtimeTools = plan.RuntimeTools(p, i); len(a.runtimeTools) > 0 {
		a.tools = slices.Clip(a.tools)
		for _, t := range a.runtimeTools {
			a.tools = append(a.tools, t.Tool)
		}
	}
	a.declassified, a.limits = p.Declassified(i), r.team.MemberLimits(a.member)
	if a.by = governs(r, i, a); a.by.Config.ApprovesLoweringFor(a.caps.Agent) {
		a.waits = a
	}
	a.stream = newStream(&a.modelCall)
	if a.planned {
		a.offers = append(a.offers, r.instruction(i))
		a.grants = append(a.grants, r.instructionGrant(i))
	}
	offerConversation(a, r)
	for j, u := range t.Uses {
		a.grants = append(a.grants, p.InputGrant(i, j))
		a.offers = append(a.offers, inputOffer(r, u.Name))
		if o := &a.offers[len(a.offers)-1]; u.Item != "" {
			o.Title, a.grants[len(a.grants)-1].List = u.Title, r.branches.decoded.get(string(plan.InputID(u.Name)))
		} else if at, ok := p.Folder(i, j); ok {
			o.Folder = at
			r.folders.use(a, u.Name, at)
		}
	}
	r.branches.offerDependencies(a, i)
	r.folders.offer(a, i)
	if t.Reads > 0 || t.Instance != nil {
		r.branches.offerCondition(a, i)
	}
	if t.MemoryScope == task.ScopeAll {
		a.known, a.unwritten = r.completed(i), slices.Clone(r.memory.pending)
	} else { // a task that reads the store may take long, so its decisions do not hold up the batch
		a.batch = r.ledger.join(r.batch)
	}
	if r.messages != nil && !t.IsComputed() {
		a.deliver()
	}
}

// inputOffer offers an input.
func inputOffer(r *results, name string) gate.Offer {
	o := gate.Offer{Source: gate.Source{Kind: handoff.Input, Name: name}, Title: name, ShowsParents: true}
	if k, ok := r.plan.InputIndex[strings.ToLower(name)]; ok {
		o.Envelope = r.inputs[k]
		if r.plan.Options().Inputs[k].Folder != nil {
			o.As, o.Cache = gate.AsFiles, &r.contents
		}
	}
	return o
}

// emptied returns the memory of the lists, which nothing reads any more, for those of the
// next model call. What they refer to stays reachable until it is overwritten.
func (x *contextLists) emptied() contextLists {
	return contextLists{offers: x.offers[:0], grants: x.grants[:0], sealed: x.sealed[:0], rulings: x.rulings[:0]}
}

// takeOut takes the task of an attempt out of the queue.
func (r *results) takeOut(a *attempt, now time.Time) {
	out := &r.tasks[a.index]
	a.began, a.existed = now, r.totalBytes
	must(r.queue.Start(a.index, a.began))
	if out.Metrics.Attempts++; made(r, a.index) > 1 {
		return
	}
	if out.Metrics.Start.IsZero() {
		out.Metrics.Start = a.began
	}
	out.Status = task.InProgress
	if r.bus.live() {
		r.bus.emit(a.eventOf(event.TaskStart))
	}
}

// instruction offers the description of a planned task. What the coordinator wrote
// passes the gate as any other context does.
func (r *results) instruction(i int) gate.Offer {
	t := r.plan.Graph.Task(i)
	return gate.Offer{Source: gate.Source{Kind: handoff.Plan, Name: string(t.ID)}, Title: t.Title, Envelope: r.planned[i]}
}

// instructionGrant grants a planned task its own description.
func (r *results) instructionGrant(i int) gate.Grant {
	t := r.plan.Graph.Task(i)
	g := gate.WholeOf(gate.Source{Kind: handoff.Plan, Name: string(t.ID)}, r.plan.Line(i))
	g.Terms = plan.ReadBy(r.plan, i).Terms(r.planned[i].Producer(), t.Assignee)
	return g
}

// open takes the context through the gate and builds the prompt.
func (a *attempt) open(ctx context.Context) (prompt.Prompt, error) {
	switch {
	case a.unreadable != nil:
		return prompt.Prompt{}, a.unreadable
	case a.opened:
		return a.first, nil
	}
	if a.after == nil {
		a.granted = len(a.offers) // without the memory, which only now is looked up
	}
	if a.known != nil {
		memory, err := a.readMemory(ctx)
		if err != nil {
			return prompt.Prompt{}, err
		}
		a.offers = append(a.offers, memory...)
		a.start = time.Now() // the store may have taken a while, and what has expired by now is not delivered
	}
	if err := a.seal(ctx); err != nil {
		return prompt.Prompt{}, err
	}
	if err := a.given.take(a.sealed, a.task); err != nil {
		return prompt.Prompt{}, err
	}
	if err := checkGiven(a); err != nil {
		return prompt.Prompt{}, err
	}
	b := a.brief(a.sealed)
	if a.task.IsComputed() {
		a.does, b.Whole = agent.Func(a.compute), true
	}
	return a.build(&b)
}

// brief returns what the prompt of the attempt is built from. sealed is parallel to the
// offers.
func (a *attempt) brief(sealed []gate.Sealed) brief.Brief {
	m, t := &a.run.team.Config.Agents[a.member], a.task
	b := brief.Brief{
		Untitled: a.run.options.Untitled, Passed: a.isChild(),
		System: m.SystemPrompt, SystemParams: m.SystemParams, SystemOrigin: m.Origin.String(),
	}
	rest := sealed
	if a.planned {
		b.Instruction, rest = &rest[0], rest[1:]
	}
	b.Conversation, rest = rest[:a.said], rest[a.said:]
	b.Inputs, rest = rest[:len(t.Uses)], rest[len(t.Uses):]
	b.Dependencies, rest = rest[:a.dependencies], rest[a.dependencies:]
	b.Files = rest[:a.given.ofOthers()]
	memory := len(sealed) - len(a.inherited)
	b.Messages, b.Memory, b.Transferred = a.messagesIn(sealed), digest(sealed[a.granted:memory]), sealed[memory:]
	return b
}

// messagesIn returns the messages among what was sealed, which is parallel to the offers.
func (a *attempt) messagesIn(sealed []gate.Sealed) []gate.Sealed {
	return sealed[a.granted-a.messageCount : a.granted]
}

// addReceipts adds the receipts of an attempt to the result of its task.
func (t *TaskResult) addReceipts(a *attempt) {
	hidden := a.isPartial()
	add := func(receipt *prompt.Receipt, inner bool) {
		if receipt != nil && !(hidden && inner) {
			t.Receipts = append(t.Receipts, receipt)
		}
	}
	before := len(a.spent) - a.later
	for _, s := range a.spent[:before] {
		add(s.receipt, s.inner)
	}
	add(a.receipt, false)
	for _, s := range a.spent[before:] {
		add(s.receipt, s.inner)
	}
}
