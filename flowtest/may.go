package flowtest

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A chart is the flow of a plan, which says where canaries may be.
type chart struct {
	plan  *engine.Plan
	table *flow.Table
	g     *flow.Graph
	user  int // reader

	delivered map[int][]int // edges of each source
	writes    map[int][]int // sources of each task
}

func newChart(p *engine.Plan) *chart {
	c := &chart{plan: p, table: p.Flow(), delivered: map[int][]int{}, writes: map[int][]int{}}
	c.g = c.table.Graph()
	c.user = slices.IndexFunc(c.g.Readers, func(r flow.Reader) bool { return r.Kind == flow.User })
	for i := range c.g.Edges {
		c.delivered[c.g.Edges[i].Source] = append(c.delivered[c.g.Edges[i].Source], i)
	}
	for i := range c.g.Sources {
		if t := c.g.Sources[i].Task; t >= 0 {
			c.writes[t] = append(c.writes[t], i)
		}
	}
	return c
}

// source returns the source that a canary is planted in, or -1.
func (c *chart) source(x *planted) int {
	message := 0
	return slices.IndexFunc(c.g.Sources, func(s flow.Source) bool {
		switch {
		case x.message > 0: // messages are sources in their order
			if s.Kind == handoff.Message {
				message++
			}
			return message == x.message
		case x.input != "":
			return s.Kind == handoff.Input && strings.EqualFold(s.Name, x.input)
		}
		return s.Kind == handoff.Dependency && s.Task >= 0 && c.g.Tasks[s.Task].ID == x.id
	})
}

// taskOf returns the task of the graph that a prompt is of, or -1.
func (c *chart) taskOf(s sent) int {
	return slices.IndexFunc(c.g.Tasks, func(t flow.Task) bool {
		switch s.layout {
		case prompt.Planning:
			return t.ID == "" && t.Title == "the plan"
		case prompt.Synthesis:
			return t.ID == "" && t.Title == "the answer"
		}
		return t.ID == s.task
	})
}

// A grant is where a canary may be according to the plan.
type grant struct {
	canary *planted
	source int
	tasks  []bool               // whose prompts may have it
	user   bool                 // a result that is shown to the user may have it
	least  label.Classification // the lowest label that it can have anywhere
}

// grant follows a canary through the plan: from its source over the edges that
// let its path pass, and then, retold, over every edge that lets anything pass.
func (c *chart) grant(x *planted) *grant {
	g := &grant{canary: x, source: c.source(x), tasks: make([]bool, len(c.g.Tasks))}
	g.least = c.g.Sources[g.source].Label
	for queue := []int{g.source}; len(queue) > 0; queue = queue[1:] {
		g.least = min(g.least, c.g.Sources[queue[0]].Label)
		for _, i := range c.delivered[queue[0]] {
			e := &c.g.Edges[i]
			if !g.carries(e) {
				continue
			}
			g.least = min(g.least, c.arrives(e))
			if !g.tasks[e.Task] {
				g.tasks[e.Task] = true
				queue = append(queue, c.writes[e.Task]...)
			}
		}
		for i := range c.g.Sights {
			s := &c.g.Sights[i]
			g.user = g.user || s.Source == queue[0] && s.Reader == c.user && g.shows(s)
		}
	}
	return g
}

// carries reports whether an edge may have the canary in what it delivers: of
// its own source its place, and of anything else, which may retell it, any part.
func (g *grant) carries(e *flow.Edge) bool {
	return e.Reach() != flow.Never && (e.Source != g.source || passes(g.canary, e.Delivers.Whole() && !e.Structured, e.Delivers.MayPass))
}

// shows reports the same of what a reader sees outside any task.
func (g *grant) shows(s *flow.Sight) bool {
	return s.Reach() != flow.Never && (s.Source != g.source || passes(g.canary, s.Delivers.Whole(), s.Delivers.MayPass))
}

// passes reports whether a delivery may have the canary in it.
func passes(x *planted, whole bool, may func([]string) bool) bool {
	if x.steps == nil {
		return whole
	}
	return may(x.steps)
}

// arrives returns the lowest label with which an edge can deliver its source.
func (c *chart) arrives(e *flow.Edge) label.Classification {
	s := &c.g.Sources[e.Source]
	least := s.Label
	if e.Task >= len(c.plan.Tasks) {
		return least
	}
	for _, r := range c.plan.Tasks[e.Task].Reads {
		if r.Kind == s.Kind && strings.EqualFold(r.Name, s.Name) {
			least = min(least, r.Arrives)
		}
	}
	return least
}

// leads reports whether anything of a source is granted to a reader, whatever
// a rule, a need or a label then withholds.
func (c *chart) leads(source int) bool {
	return len(c.delivered[source]) > 0 || slices.ContainsFunc(c.g.Sights, func(s flow.Sight) bool { return s.Source == source })
}

// clearance returns the clearance of the caller.
func (c *chart) clearance() label.Classification { return c.g.Readers[c.user].Clearance }

// recorded reports whether the trace of the run may have the canary: it shows
// what the user is shown, and the prompts, up to the user's clearance.
func (c *chart) recorded(g *grant) bool {
	return g.user || c.cleared(g) && slices.Contains(g.tasks, true)
}

// cleared reports whether the canary can be of a label that the user accepts.
func (c *chart) cleared(g *grant) bool { return g.user || g.least <= c.clearance() }

// reads reports whether a reader reads the prompts of a task.
func (c *chart) reads(t int, reader string) bool {
	tk := &c.g.Tasks[t]
	if c.g.Readers[tk.Agent].Name == reader {
		return true
	}
	return slices.ContainsFunc(tk.Endpoints, func(e int) bool { return c.g.Readers[e].Name == reader })
}

// reader returns the index of a reader by its name, or -1.
func (c *chart) reader(name string) int {
	return slices.IndexFunc(c.g.Readers, func(r flow.Reader) bool { return r.Name == name })
}

// line returns where a task is written.
func (c *chart) line(t int) string {
	if t < 0 || t >= len(c.plan.Tasks) {
		return ""
	}
	return c.plan.Tasks[t].Line
}

// find returns the id of a task by its title, key or id.
func (c *chart) find(name string) (task.ID, bool) {
	for i := range c.plan.Tasks {
		t := &c.plan.Tasks[i]
		if naming.Normalize(t.Title) == naming.Normalize(name) || t.Key != "" && t.Key == name || string(t.ID) == name {
			return t.ID, true
		}
	}
	return "", false
}
