package flowtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/pick"
)

// own returns the flow of one canary: the plan's, less whatever cannot carry it.
func (c *chart) own(g *grant) *flow.Graph {
	out := *c.g
	out.Edges = slices.DeleteFunc(slices.Clone(out.Edges), func(e flow.Edge) bool { return !g.carries(&e) })
	out.Sights = slices.DeleteFunc(slices.Clone(out.Sights), func(s flow.Sight) bool { return !g.shows(&s) })
	return &out
}

// went returns the part of a canary's flow that its sightings bear out: edges
// into prompts that had it, and sights of results that had it.
func (r *run) went(x *planted, seen []sighting) *flow.Graph {
	read, shown, council := map[int]bool{}, map[int]bool{}, false
	for _, s := range seen {
		if s.canary == x {
			read[s.place.task] = read[s.place.task] || s.place.kind == aPrompt
			shown[s.place.task] = shown[s.place.task] || s.place.kind == aResult
			council = council || s.place.kind == anAnswer
		}
	}
	planned := len(r.chart.plan.Tasks)
	out := r.chart.own(r.grants[x])
	out.Edges = slices.DeleteFunc(out.Edges, func(e flow.Edge) bool {
		return !read[e.Task] && e.Task < planned // beyond them is the memory, which has no prompt
	})
	out.Sights = slices.DeleteFunc(out.Sights, func(s flow.Sight) bool {
		by := out.Sources[s.Source].Task
		return !shown[by] && !(council && by >= planned)
	})
	return out
}

// remedy says on which way a canary came to a reader, the last of those who saw
// it, and what to change.
func (r *run) remedy(x *planted, reader string, seen []sighting) string {
	c := r.chart
	source, at := r.grants[x].source, c.reader(reader)
	table := r.went(x, seen).Table()
	way := table.Via(source, at)
	if way == nil {
		return "; the flow table knows no way: the spec does not ask for it"
	}
	return fmt.Sprintf("\n  the way it came (%v): %s\n  to keep it back, %s", table.Reach(source, at), c.way(way), c.cut(way))
}

// cut says what to write for nothing to come on a way.
func (c *chart) cut(way flow.Path) string {
	var ways []string
	if end := way[len(way)-1]; end.Index == c.user && end.Line == "" {
		if teller := c.teller(way); teller != "" {
			ways = append(ways, fmt.Sprintf("write a rule {from: %s, to: user, mode: minimal}", teller))
		}
	}
	for _, step := range slices.Backward(way) {
		if line := c.lineOf(step); line != "" {
			ways = append(ways, "narrow or cut what "+line+" grants")
			break
		}
	}
	return strings.Join(append(ways, "block it by a rule of the policy"), ", or ")
}

// teller returns who wrote what the reader at the end of a way is shown: the
// agent of a task of the plan, or "" if no rule could withhold it.
func (c *chart) teller(way flow.Path) string {
	by := way[len(way)-2]
	t := by.Index
	if by.Kind != "task" { // the source itself is shown
		t = c.g.Sources[by.Index].Task
	}
	if t < 0 || t >= len(c.plan.Tasks) {
		return ""
	}
	return c.g.Readers[c.g.Tasks[t].Agent].Name
}

// story tells what the flow table says about a canary and the agent of a task,
// and where that is written.
func (r *run) story(x *planted, t int) string {
	if t < 0 {
		return ""
	}
	c, g := r.chart, r.grants[x]
	reader := c.g.Tasks[t].Agent
	text := fmt.Sprintf("; the flow table says of %s and %s: %s", c.g.Sources[g.source].Name, c.g.Readers[reader].Name, c.known(g, reader))
	if line := c.line(t); line != "" {
		text += "; the task is written at " + line
	}
	return text
}

// absence says what the flow table knows about a canary that did not come.
func (r *run) absence(x *planted, reader string) string {
	c, g := r.chart, r.grants[x]
	var b strings.Builder
	fmt.Fprintf(&b, "\n  the flow table says: %s", c.known(g, c.reader(reader)))
	for _, i := range c.delivered[g.source] {
		if e := &c.g.Edges[i]; c.reads(e.Task, reader) {
			fmt.Fprintf(&b, "\n  %q is delivered %s", c.g.Tasks[e.Task].Title, delivery(e.Held, e.Minimal, &e.Delivers, e.Line))
		}
	}
	for i := range c.g.Sights {
		if s := &c.g.Sights[i]; s.Source == g.source && c.g.Readers[s.Reader].Name == reader {
			fmt.Fprintf(&b, "\n  %s is shown %s", reader, delivery(s.Held, false, &s.Delivers, s.Line))
		}
	}
	return b.String()
}

// known says how much of a canary can reach a reader, and on which path.
func (c *chart) known(g *grant, reader int) string {
	table := c.own(g).Table()
	text := table.Reach(g.source, reader).String()
	if way := table.Via(g.source, reader); way != nil {
		text += ", on the way " + c.way(way)
	}
	return text
}

// delivery says what is delivered, and by which line of the spec.
func delivery(held, minimal bool, parts *pick.Selection, line string) string {
	text := parts.String()
	switch {
	case held:
		text = "nothing of it: it is held"
	case minimal:
		text = "its heading and status"
	}
	if line != "" {
		text += " (" + line + ")"
	}
	return text
}

// way writes a way with the lines of the spec that make it.
func (c *chart) way(way flow.Path) string {
	stops := make([]string, len(way))
	for i, s := range way {
		stops[i] = s.String()
		if line := c.lineOf(s); line != "" {
			stops[i] += " [" + line + "]"
		}
	}
	return strings.Join(stops, " → ")
}

// lineOf returns where a stop is written: its rule, or else its task.
func (c *chart) lineOf(s flow.Step) string {
	if s.Line == "" && s.Kind == "task" {
		return c.line(s.Index)
	}
	return s.Line
}
