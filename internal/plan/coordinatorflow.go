package plan

import (
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
)

// addTurn adds a turn of the coordinator, which reads the goal.
func (b *flowBuilder) addTurn(title string) int {
	g := &b.graph
	g.Tasks = append(g.Tasks, flow.Task{Title: title, Agent: b.coordinator, Endpoints: b.endpointReaders(b.coordinatorCaps())})
	at := len(g.Tasks) - 1
	b.wholeEdge(b.goal, at, gate.RuleGoal)
	addTurns(b, at)
	return at
}

// addDescriptions adds the descriptions that are context: those of a plan, which the
// Coordinator made from the goal, also if that was in another run, and a goal
// that became a task. The person who has to approve a plan of this run may have edited it.
func (b *flowBuilder) addDescriptions() {
	g, plan, edited := &b.graph, -1, -1
	for i := range b.plan.Graph.Len() {
		t := b.plan.Graph.Task(i)
		switch {
		case t.Source.Record == nil:
		case t.Source.Record.From == handoff.User && b.goal >= 0:
			b.wholeEdge(b.goal, i, gate.RulePlan)
		case t.Source.Record.From == handoff.User:
		default:
			if plan < 0 {
				made := -1
				if b.coordinator >= 0 {
					made = b.addTurn("the plan")
				}
				plan = len(g.Sources)
				g.Sources = append(g.Sources, flow.Source{Kind: handoff.Plan, Name: "the plan", From: handoff.Coordinator, Task: made, Label: label.Public})
				edited = addPlanApproval(b, plan, made)
			}
			g.Sources[plan].Label = g.Sources[plan].Label.Join(t.Classification)
			b.wholeEdge(plan, i, gate.RulePlan)
			if edited >= 0 {
				g.Sources[edited].Label = g.Sources[plan].Label
				b.wholeEdge(edited, i, gate.RulePlan)
			}
		}
	}
}

// addPlanApproval adds the person who has to approve the plan of this run as a reader of it, and what
// that person says: a reason, for the coordinator, or an edited plan. It returns that source; -1 if
// nobody has to approve the plan.
func addPlanApproval(b *flowBuilder, plan, made int) (source int) {
	if made < 0 || !b.options.Planned || b.team.Config.Coordinator.Approve == "" {
		return -1
	}
	g, person := &b.graph, b.team.Config.Coordinator.Approve
	m, _ := b.team.Index(person)
	at := len(g.Tasks)
	g.Tasks = append(g.Tasks, flow.Task{Title: flow.PlanApprovalTitle, Agent: m, Endpoints: b.endpointReaders(&b.team.Capabilities[m])})
	b.wholeEdge(plan, at, gate.RulePlan)
	source = len(g.Sources)
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.Plan, Name: flow.PlanApprovalTitle, From: person, Task: at, Label: label.Public})
	terms := b.team.Terms(person, handoff.Coordinator)
	reason := flow.Edge{Source: source, Task: made, Delivers: pick.Everything(), Rule: gate.RulePlan, Minimal: terms.Mode() == handoff.Minimal}
	if rule, line := terms.Stated(); rule != "" {
		reason.Rule, reason.Line = rule, line
	}
	g.Edges = append(g.Edges, reason)
	g.Sights = append(g.Sights, flow.Sight{Source: source, Reader: b.user, Delivers: pick.Everything(), Rule: gate.RuleResult}) // in the records of the run
	return source
}

// addAnswer adds the answer of the coordinator, which it makes from the goal and all results, and
// returns its turn; -1 if the coordinator does not answer.
func (b *flowBuilder) addAnswer() (at int) {
	if b.coordinator < 0 {
		return -1
	}
	g, p, caps := &b.graph, b.plan, b.coordinatorCaps()
	at = b.addTurn("the answer")
	highest := label.Public
	for i := range p.Graph.Len() {
		grant := gate.Grant{Terms: b.team.Terms(p.Graph.Task(i).Assignee, handoff.Coordinator)}
		a := deliveryOf(grant.Terms, p.least[i], p.Labels[i], true, caps)
		b.edge(b.results+i, at, &grant, nil, a, false)
		if a.counts() {
			highest = highest.Join(a.Classification)
		}
	}
	source := len(g.Sources)
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.Digest, Name: "the answer", From: handoff.Coordinator, Task: at, Label: highest})
	g.Sights = append(g.Sights, flow.Sight{Source: source, Reader: b.user, Delivers: pick.Everything(), Rule: gate.RuleResult})
	return at
}
