package flowtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/flow"
	"github.com/runteam/runteam/team"
)

// A sighting is a canary in a place.
type sighting struct {
	canary *planted
	place  *place
	form   string
}

// String says what stands where.
func (s *sighting) String() string {
	if s.form != strings.ToLower(s.canary.word) {
		return fmt.Sprintf("%v stands, encoded, in %s", s.canary, s.place.name)
	}
	return fmt.Sprintf("%v stands in %s", s.canary, s.place.name)
}

// judge returns what is wrong with the run.
func (r *run) judge() (faults []string) {
	faults = append(faults, r.cast.faults...)
	faults = append(faults, r.failed()...)
	seen := r.sightings()
	for i := range seen {
		if why := r.wrong(&seen[i]); why != "" {
			faults = append(faults, seen[i].String()+": "+why)
		}
	}
	for _, p := range r.promises {
		faults = append(faults, r.kept(p, seen)...)
	}
	for _, x := range r.canaries {
		if len(r.readers(x, seen)) == 0 && !x.quiet && !r.nowhere(x) {
			faults = append(faults, fmt.Sprintf("%v was planted where nothing reads: it came to nobody; plant it where something is granted, or promise Never(…, flowtest.Everybody)", x))
		}
	}
	return faults
}

// failed returns why the run shows less than it should.
func (r *run) failed() (out []string) {
	if r.result.Success() {
		return nil
	}
	for _, e := range r.result.Errors {
		if e.Code != team.CodeDependency {
			out = append(out, fmt.Sprintf("what follows was not tested: %v (%s)", e.Error(), e.Code))
		}
	}
	if len(out) == 0 {
		out = append(out, fmt.Sprintf("the run did not come to its end: %s", r.result.Status))
	}
	return out
}

func (r *run) sightings() (seen []sighting) {
	places := r.places()
	for _, x := range r.canaries {
		for i := range places {
			if form, ok := x.in(places[i].lower); ok {
				seen = append(seen, sighting{x, &places[i], form})
			}
		}
	}
	return seen
}

// wrong says why a canary must not stand where it does, or nothing if it may.
func (r *run) wrong(s *sighting) string {
	g, p := r.grants[s.canary], s.place
	switch p.kind {
	case aPrompt:
		if p.task < 0 || !g.tasks[p.task] {
			return "no edge of the spec brings it there" + r.story(s.canary, p.task)
		}
	case aResult:
		if !r.writes(s.canary, p.task) {
			return "its prompt may not have it, so neither may its result" + r.story(s.canary, p.task)
		}
		fallthrough
	case anAnswer:
		if !g.user {
			return fmt.Sprintf("the flow table says that it never reaches the user, who accepts %v", r.chart.clearance())
		}
	case aRecord, aFile:
		if !r.chart.cleared(g) {
			return fmt.Sprintf("it is %v at least, and the user accepts %v", g.least, r.chart.clearance())
		}
		if p.kind == aRecord && !r.chart.recorded(g) {
			return "no prompt may have it, and no result that the user is shown"
		}
	case aLog:
		return "logs, events and printed values never hold what was handed on"
	}
	return ""
}

// writes reports whether a task may have a canary in its result.
func (r *run) writes(x *planted, t int) bool {
	return t >= 0 && (r.grants[x].tasks[t] || r.chart.g.Sources[r.grants[x].source].Task == t)
}

// story tells what the flow table says about a canary and the agent of a task,
// and where that is written.
func (r *run) story(x *planted, t int) string {
	if t < 0 {
		return ""
	}
	c := r.chart
	source, reader := r.grants[x].source, c.g.Tasks[t].Agent
	var b strings.Builder
	fmt.Fprintf(&b, "; the flow table says of %s and %s: %v", c.g.Sources[source].Name, c.g.Readers[reader].Name, c.table.Reach(source, reader))
	if way := c.table.Via(source, reader); way != nil {
		fmt.Fprintf(&b, ", on the way %s", c.way(way))
	}
	if line := c.line(t); line != "" {
		fmt.Fprintf(&b, "; the task is written at %s", line)
	}
	return b.String()
}

// way writes a way with the lines of the spec that make it.
func (c *chart) way(way flow.Path) string {
	stops := make([]string, len(way))
	for i, s := range way {
		stops[i] = s.String()
		line := s.Line
		if line == "" && s.Kind == "task" {
			line = c.line(s.Index)
		}
		if line != "" {
			stops[i] += " [" + line + "]"
		}
	}
	return strings.Join(stops, " → ")
}

// readers returns who was given a canary: whoever read a prompt or a result
// with it, but not whoever wrote it there.
func (r *run) readers(x *planted, seen []sighting) (names []string) {
	for _, name := range r.chart.names() {
		if r.saw(x, name, seen) != nil {
			names = append(names, name)
		}
	}
	return names
}

// saw returns where a reader was given a canary, or nil.
func (r *run) saw(x *planted, reader string, seen []sighting) *sighting {
	at := r.chart.reader(reader)
	for i := range seen {
		s := &seen[i]
		if s.canary != x {
			continue
		}
		switch s.place.kind {
		case aPrompt:
			if s.place.task >= 0 && r.chart.reads(s.place.task, reader) {
				return s
			}
		case aResult, anAnswer:
			if at == r.chart.user {
				return s
			}
		}
	}
	return nil
}

// kept says of a promise in which way it was not kept.
func (r *run) kept(p promise, seen []sighting) (faults []string) {
	readers := []string{p.reader}
	if p.reader == Everybody {
		readers = r.chart.names()
	}
	for _, reader := range readers {
		s := r.saw(p.canary, reader, seen)
		switch {
		case p.never && s != nil:
			faults = append(faults, fmt.Sprintf("promised that %v never reaches %s, and it stands in %s%s", p.canary, reader, s.place.name, r.remedy(p.canary, reader, s)))
		case !p.never && s == nil:
			faults = append(faults, fmt.Sprintf("promised that %v reaches %s, and it stands in nothing that %s was given%s", p.canary, reader, reader, r.absence(p.canary, reader)))
		}
	}
	return faults
}

// remedy says on which way a canary came to a reader, and which line to change.
func (r *run) remedy(x *planted, reader string, s *sighting) string {
	c := r.chart
	source, at := r.grants[x].source, c.reader(reader)
	way := c.table.Via(source, at)
	if way == nil {
		return "; the flow table knows no way: the spec does not ask for it"
	}
	line := ""
	for _, step := range way {
		if step.Line != "" {
			line = step.Line
		} else if step.Kind == "task" && c.line(step.Index) != "" {
			line = c.line(step.Index)
		}
	}
	text := fmt.Sprintf("\n  the flow table says %v: %s", c.table.Reach(source, at), c.way(way))
	if line != "" {
		text += "\n  to keep it back, narrow or cut what " + line + " grants, or block it by a rule of the policy"
	}
	return text
}

// absence says what the flow table knows about a canary that did not come.
func (r *run) absence(x *planted, reader string) string {
	c := r.chart
	source, at := r.grants[x].source, c.reader(reader)
	reach := c.table.Reach(source, at)
	var b strings.Builder
	fmt.Fprintf(&b, "\n  the flow table says of all of %s: %v", c.g.Sources[source].Name, reach)
	if way := c.table.Via(source, at); way != nil {
		fmt.Fprintf(&b, ", on the way %s", c.way(way))
	}
	for i := range c.g.Edges {
		e := &c.g.Edges[i]
		if e.Source != source || !c.reads(e.Task, reader) {
			continue
		}
		fmt.Fprintf(&b, "\n  %q is delivered %s", c.g.Tasks[e.Task].Title, delivery(e))
		if e.Line != "" {
			fmt.Fprintf(&b, " (%s)", e.Line)
		}
	}
	return b.String()
}

func delivery(e *flow.Edge) string {
	switch {
	case e.Held:
		return "nothing of it: it is held"
	case e.Minimal:
		return "its heading and status"
	}
	return e.Delivers.String()
}

// nowhere reports whether a canary was promised to come to nobody: to no agent,
// no coordinator and not to the user.
func (r *run) nowhere(x *planted) bool {
	return !slices.ContainsFunc(r.chart.g.Readers, func(reader flow.Reader) bool {
		return reader.Kind != flow.Endpoint && !slices.ContainsFunc(r.promises, func(p promise) bool {
			return p.canary == x && p.never && (p.reader == reader.Name || p.reader == Everybody)
		})
	})
}

// names returns the names of all readers.
func (c *chart) names() []string {
	names := make([]string, len(c.g.Readers))
	for i := range names {
		names[i] = c.g.Readers[i].Name
	}
	return names
}
