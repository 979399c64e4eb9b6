package flowtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/pick"
)

// flowOf returns the part of the plan's flow that can carry a canary.
func (p *planFlow) flowOf(g *allowance) *flow.Graph {
	out := *p.g
	out.Edges = slices.DeleteFunc(slices.Clone(out.Edges), func(e flow.Edge) bool { return !g.carries(&e) })
	out.Sights = slices.DeleteFunc(slices.Clone(out.Sights), func(s flow.Sight) bool { return !g.shows(&s) })
	return &out
}

// observedFlow returns the part of a canary's flow in which it was seen: edges into prompts
// that had it, and sights of results that had it.
func (r *run) observedFlow(x *canary, seen []sighting) *flow.Graph {
	read, shown, answered := map[int]bool{}, map[int]bool{}, false
	for _, s := range seen {
		if s.canary == x {
			read[s.place.task] = read[s.place.task] || s.place.kind == aPrompt
			shown[s.place.task] = shown[s.place.task] || s.place.kind == aResult
			answered = answered || s.place.kind == anAnswer
		}
	}
	planned := len(r.flow.plan.Tasks)
	out := r.flow.flowOf(r.allowances[x])
	out.Edges = slices.DeleteFunc(out.Edges, func(e flow.Edge) bool {
		return !read[e.Task] && e.Task < planned // later indexes are the memory, which has no prompt
	})
	out.Sights = slices.DeleteFunc(out.Sights, func(s flow.Sight) bool {
		by := out.Sources[s.Source].Task
		return !shown[by] && !(answered && by >= planned)
	})
	return out
}

// leakAdvice says which path a canary took to a reader, the last that saw it, and what to
// change.
func (r *run) leakAdvice(x *canary, reader string, seen []sighting) string {
	p := r.flow
	source, at := r.allowances[x].source, p.reader(reader)
	table := r.observedFlow(x, seen).Table()
	path := table.Via(source, at)
	if path == nil {
		return "; the flow table has no such path: the spec does not request it"
	}
	return fmt.Sprintf("\n  the path it took (%v): %s\n  to withhold it, %s", table.Reach(source, at), p.pathText(path), p.cutAdvice(path))
}

// cutAdvice says what to write so that nothing takes a path.
func (p *planFlow) cutAdvice(path flow.Path) string {
	var advice []string
	if end := path[len(path)-1]; end.Index == p.user && end.Line == "" {
		if author := p.author(path); author != "" {
			advice = append(advice, fmt.Sprintf("write a rule {from: %s, to: user, mode: minimal}", author))
		}
	}
	for _, step := range slices.Backward(path) {
		if line := p.lineOf(step); line != "" {
			advice = append(advice, "narrow or cut what "+line+" grants")
			break
		}
	}
	return strings.Join(append(advice, "block it by a rule of the policy"), ", or ")
}

// author returns the agent that wrote what the reader at the end of a path is shown, or ""
// if no rule could withhold it.
func (p *planFlow) author(path flow.Path) string {
	by := path[len(path)-2]
	t := by.Index
	if by.Kind != "task" { // the source itself is shown
		t = p.g.Sources[by.Index].Task
	}
	if t < 0 || t >= len(p.plan.Tasks) {
		return ""
	}
	return p.g.Readers[p.g.Tasks[t].Agent].Name
}

// flowNote says what the flow table has about a canary and the agent of a task, and where
// the task is written.
func (r *run) flowNote(x *canary, t int) string {
	if t < 0 {
		return ""
	}
	p, g := r.flow, r.allowances[x]
	reader := p.g.Tasks[t].Agent
	text := fmt.Sprintf("; the flow table says of %s and %s: %s", p.g.Sources[g.source].Name, p.g.Readers[reader].Name, p.summary(g, reader))
	if line := p.line(t); line != "" {
		text += "; the task is written at " + line
	}
	return text
}

// missingNote says what the flow table has about a canary that did not reach a reader.
func (r *run) missingNote(x *canary, reader string) string {
	p, g := r.flow, r.allowances[x]
	var b strings.Builder
	fmt.Fprintf(&b, "\n  the flow table says: %s", p.summary(g, p.reader(reader)))
	for _, i := range p.edges.delivered[g.source] {
		if e := &p.g.Edges[i]; p.reads(e.Task, reader) {
			fmt.Fprintf(&b, "\n  %q receives %s", p.g.Tasks[e.Task].Title, delivery(e.Withheld, e.Minimal, &e.Delivers, e.Line))
		}
	}
	for i := range p.g.Sights {
		if s := &p.g.Sights[i]; s.Source == g.source && p.g.Readers[s.Reader].Name == reader {
			fmt.Fprintf(&b, "\n  %s sees %s", reader, delivery(s.Withheld, false, &s.Delivers, s.Line))
		}
	}
	return b.String()
}

// summary says how much of a canary can reach a reader, and on which path.
func (p *planFlow) summary(g *allowance, reader int) string {
	table := p.flowOf(g).Table()
	text := table.Reach(g.source, reader).String()
	if path := table.Via(g.source, reader); path != nil {
		text += ", on the path " + p.pathText(path)
	}
	return text
}

// delivery says what is delivered, and by which line of the spec.
func delivery(held, minimal bool, parts *pick.Selection, line string) string {
	text := parts.String()
	switch {
	case held:
		text = "nothing of it: it is withheld"
	case minimal:
		text = "its heading and status"
	}
	if line != "" {
		text += " (" + line + ")"
	}
	return text
}

// pathText writes a path with the lines of the spec that allow it.
func (p *planFlow) pathText(path flow.Path) string {
	stops := make([]string, len(path))
	for i, s := range path {
		stops[i] = s.String()
		if line := p.lineOf(s); line != "" {
			stops[i] += " [" + line + "]"
		}
	}
	return strings.Join(stops, " → ")
}

// lineOf returns where a stop is written: its rule, or else its task.
func (p *planFlow) lineOf(s flow.Step) string {
	if s.Line == "" && s.Kind == "task" {
		return p.line(s.Index)
	}
	return s.Line
}
