package plan

import (
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
)

// A loweredEdge is what a declassifier delivers to a task once a person has approved it.
type loweredEdge struct {
	by *handoff.Declassifier
	flow.Edge
}

// addTo adds the person as a reader of what the declassifier delivers to the task, and the task as a
// reader of what that person decides.
func (e *loweredEdge) addTo(b *flowBuilder) {
	m, _ := b.team.Index(e.by.Approve)
	g, at := &b.graph, len(b.graph.Tasks)
	title := flow.LoweringApprovalTitle(e.by.Name, WrittenTitle(b.plan.Graph.Task(e.Task)))
	g.Tasks = append(g.Tasks, flow.Task{Title: title, Agent: m, Endpoints: b.endpointReaders(&b.team.Capabilities[m])})
	shown := e.Edge
	shown.Task, shown.Lowers, shown.Note, shown.Delivers = at, nil, "", only(e.Delivers, e.by.Paths)
	source := len(g.Sources)
	g.Edges = append(g.Edges, shown, flow.Edge{Source: source, Task: e.Task, Delivers: pick.Everything(), Rule: handoff.Rule(e.by.Name)})
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.Condition, Name: title, From: e.by.Approve, Task: at, Label: e.by.LowerTo})
	g.Sights = append(g.Sights, flow.Sight{Source: source, Reader: b.user, Delivers: pick.Everything(), Rule: gate.RuleResult}) // in the records of the run
}
