package flowtest

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// An allowance is where a canary may be according to the plan.
type allowance struct {
	canary    *canary
	source    int
	own       map[int]bool         // sources that may have the canary at its path only
	tasks     []bool               // by task: its prompts may have the canary
	instances []bool               // the same by round and item
	user      bool                 // a result for the user may have it
	named     bool                 // names of instances may have it
	least     label.Classification // the lowest label that it can have anywhere
}

// allow follows a canary through the plan: from its source over the edges that deliver its
// path, and then, repeated by agents, over every edge that delivers anything.
func (p *planFlow) allow(x *canary) *allowance {
	g := &allowance{canary: x, source: p.source(x)}
	in := &p.instances
	sources := append(in.sources(x, func(t int) bool { return p.row(in.Tasks[t].ID) == x.row }), p.said(x, in.Graph)...)
	g.follow(&in.edgeLists, sources, func(e *flow.Edge) bool { return in.grantsItem(g, e) }, in.isLoop)
	g.instances = g.tasks
	reached := g.follow(&p.edges, append([]int{g.source}, p.said(x, p.g)...), func(*flow.Edge) bool { return true }, func(t int) bool { return t < len(p.plan.Tasks) && p.plan.Tasks[t].Loop })
	g.least = p.g.Sources[g.source].Label
	for source := range reached {
		g.least = min(g.least, p.g.Sources[source].Label)
		for _, i := range p.edges.delivered[source] {
			if e := &p.g.Edges[i]; g.carries(e) {
				g.least = min(g.least, p.lowestLabel(e))
			}
		}
	}
	for i := range p.g.Sights {
		s := &p.g.Sights[i]
		g.user = g.user || reached[s.Source] && s.Reader == p.user && g.shows(s)
	}
	g.named = g.user && p.isKey(g, reached)
	return g
}

// isKey reports whether a canary is the key of an item, or may be repeated by who writes the list.
func (p *planFlow) isKey(g *allowance, reached map[int]bool) bool {
	for i := range p.plan.Graph.Len() {
		for _, l := range plan.ListsOf(p.plan, i) {
			of := slices.IndexFunc(p.g.Sources, func(s flow.Source) bool {
				return l.Input != "" && s.Kind == handoff.Input && s.Name == l.Input || l.Task != "" && s.Kind == handoff.Dependency && p.row(p.g.Tasks[s.Task].ID) == p.row(task.ID(l.Task))
			})
			if l.Key == "" || !reached[of] {
				continue
			}
			keys, err := pick.Everything().Only(plan.KeyPaths(l)...)
			if err == nil && (!g.own[of] || passes(g.canary, false, keys.MayPass)) {
				return true
			}
		}
	}
	return false
}

// follow sets own and tasks, and returns the sources that may have the canary. A loop repeats
// nothing: the rounds of its result have the same readers.
func (g *allowance) follow(in *edgeLists, sources []int, grants func(*flow.Edge) bool, isLoop func(t int) bool) (reached map[int]bool) {
	g.own, g.tasks, reached = map[int]bool{}, make([]bool, len(in.Tasks)), map[int]bool{}
	for _, s := range sources {
		g.own[s], reached[s] = true, true
	}
	for queue := sources; len(queue) > 0; queue = queue[1:] {
		for _, i := range in.delivered[queue[0]] {
			e := &in.Edges[i]
			if g.tasks[e.Task] || !g.carries(e) || !grants(e) {
				continue
			}
			g.tasks[e.Task] = true
			if isLoop(e.Task) {
				continue
			}
			for _, s := range in.writes[e.Task] { // what it writes may repeat the canary anywhere
				delete(g.own, s)
				reached[s], queue = true, append(queue, s)
			}
		}
	}
	return reached
}

// carries reports whether what an edge delivers may have the canary: for the canary's own
// source, its path, and for any other source, which may repeat it, any part.
func (g *allowance) carries(e *flow.Edge) bool {
	return e.Reach() != flow.Never && (!g.own[e.Source] || passes(g.canary, e.Delivers.Whole() && !e.Structured, e.Delivers.MayPass))
}

// shows reports the same about what a reader sees outside of tasks.
func (g *allowance) shows(s *flow.Sight) bool {
	return s.Reach() != flow.Never && (!g.own[s.Source] || passes(g.canary, s.Delivers.Whole(), s.Delivers.MayPass))
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
