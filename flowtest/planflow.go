package flowtest

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A planFlow is the flow of a plan, which says where canaries may be.
type planFlow struct {
	plan  *engine.Plan
	table *flow.Table
	g     *flow.Graph
	user  int // reader

	delivered map[int][]int // edges of each source
	writes    map[int][]int // sources of each task
}

func newPlanFlow(plan *engine.Plan) *planFlow {
	p := &planFlow{plan: plan, table: plan.Flow(), delivered: map[int][]int{}, writes: map[int][]int{}}
	p.g = p.table.Graph()
	p.user = slices.IndexFunc(p.g.Readers, func(r flow.Reader) bool { return r.Kind == flow.User })
	for i := range p.g.Edges {
		p.delivered[p.g.Edges[i].Source] = append(p.delivered[p.g.Edges[i].Source], i)
	}
	for i := range p.g.Sources {
		if t := p.g.Sources[i].Task; t >= 0 {
			p.writes[t] = append(p.writes[t], i)
		}
	}
	return p
}

// source returns the source that a canary is planted in, or -1.
func (p *planFlow) source(x *canary) int {
	message := 0
	return slices.IndexFunc(p.g.Sources, func(s flow.Source) bool {
		switch {
		case x.message > 0: // the sources of messages are in their order
			if s.Kind == handoff.Message {
				message++
			}
			return message == x.message
		case x.input != "":
			return s.Kind == handoff.Input && strings.EqualFold(s.Name, x.input)
		}
		return s.Kind == handoff.Dependency && s.Task >= 0 && p.g.Tasks[s.Task].ID == x.id
	})
}

// taskOf returns the task of the graph that a prompt belongs to, or -1.
func (p *planFlow) taskOf(s sentPrompt) int {
	return slices.IndexFunc(p.g.Tasks, func(t flow.Task) bool {
		switch s.layout {
		case brief.Planning.String():
			return t.ID == "" && t.Title == "the plan"
		case brief.Synthesis.String():
			return t.ID == "" && t.Title == "the answer"
		}
		return t.ID == s.task
	})
}

// An allowance is where a canary may be according to the plan.
type allowance struct {
	canary *canary
	source int
	tasks  []bool               // by task: its prompts may have the canary
	user   bool                 // a result for the user may have it
	least  label.Classification // the lowest label that it can have anywhere
}

// allow follows a canary through the plan: from its source over the edges that deliver its
// path, and then, repeated by agents, over every edge that delivers anything.
func (p *planFlow) allow(x *canary) *allowance {
	g := &allowance{canary: x, source: p.source(x), tasks: make([]bool, len(p.g.Tasks))}
	g.least = p.g.Sources[g.source].Label
	for queue := []int{g.source}; len(queue) > 0; queue = queue[1:] {
		g.least = min(g.least, p.g.Sources[queue[0]].Label)
		for _, i := range p.delivered[queue[0]] {
			e := &p.g.Edges[i]
			if !g.carries(e) {
				continue
			}
			g.least = min(g.least, p.lowestLabel(e))
			if !g.tasks[e.Task] {
				g.tasks[e.Task] = true
				queue = append(queue, p.writes[e.Task]...)
			}
		}
		for i := range p.g.Sights {
			s := &p.g.Sights[i]
			g.user = g.user || s.Source == queue[0] && s.Reader == p.user && g.shows(s)
		}
	}
	return g
}

// carries reports whether what an edge delivers may have the canary: for the canary's own
// source, its path, and for any other source, which may repeat it, any part.
func (g *allowance) carries(e *flow.Edge) bool {
	return e.Reach() != flow.Never && (e.Source != g.source || passes(g.canary, e.Delivers.Whole() && !e.Structured, e.Delivers.MayPass))
}

// shows reports the same about what a reader sees outside of tasks.
func (g *allowance) shows(s *flow.Sight) bool {
	return s.Reach() != flow.Never && (s.Source != g.source || passes(g.canary, s.Delivers.Whole(), s.Delivers.MayPass))
}

// passes reports whether a delivery may have the canary in it.
func passes(x *canary, whole bool, may func([]string) bool) bool {
	if x.steps == nil {
		return whole
	}
	return may(x.steps)
}

// lowestLabel returns the lowest label with which an edge can deliver its source.
func (p *planFlow) lowestLabel(e *flow.Edge) label.Classification {
	s := &p.g.Sources[e.Source]
	least := s.Label
	if e.Task >= len(p.plan.Tasks) {
		return least
	}
	for _, r := range p.plan.Tasks[e.Task].Reads {
		if r.Kind == s.Kind && strings.EqualFold(r.Name, s.Name) {
			least = min(least, r.Arrives)
		}
	}
	return least
}

// isGranted reports whether anything of a source is granted to a reader, even if a rule, a
// need or a label then withholds it.
func (p *planFlow) isGranted(source int) bool {
	return len(p.delivered[source]) > 0 || slices.ContainsFunc(p.g.Sights, func(s flow.Sight) bool { return s.Source == source })
}

// clearance returns the clearance of the caller.
func (p *planFlow) clearance() label.Classification { return p.g.Readers[p.user].Clearance }

// mayBeRecorded reports whether the trace of the run may have the canary: a trace has what
// the user is shown, and the prompts up to the user's clearance.
func (p *planFlow) mayBeRecorded(g *allowance) bool {
	return g.user || p.isCleared(g) && slices.Contains(g.tasks, true)
}

// isCleared reports whether the canary can have a label that the user accepts.
func (p *planFlow) isCleared(g *allowance) bool { return g.user || g.least <= p.clearance() }

// reads reports whether a reader reads the prompts of a task.
func (p *planFlow) reads(t int, reader string) bool {
	tk := &p.g.Tasks[t]
	if p.g.Readers[tk.Agent].Name == reader {
		return true
	}
	return slices.ContainsFunc(tk.Endpoints, func(e int) bool { return p.g.Readers[e].Name == reader })
}

// reader returns the index of a reader by its name, or -1.
func (p *planFlow) reader(name string) int {
	return slices.IndexFunc(p.g.Readers, func(r flow.Reader) bool { return r.Name == name })
}

// line returns where a task is written.
func (p *planFlow) line(t int) string {
	if t < 0 || t >= len(p.plan.Tasks) {
		return ""
	}
	return p.plan.Tasks[t].Line
}

// find returns the id of a task by its title, key or id.
func (p *planFlow) find(name string) (task.ID, bool) {
	for i := range p.plan.Tasks {
		t := &p.plan.Tasks[i]
		if naming.Normalize(t.Title) == naming.Normalize(name) || t.Key != "" && t.Key == name || string(t.ID) == name {
			return t.ID, true
		}
	}
	return "", false
}
