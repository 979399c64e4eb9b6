package flowtest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/flow"
)

// A sighting is a canary in a place.
type sighting struct {
	canary *planted
	place  *place
	form   string
}

// String says where the canary was found.
func (s *sighting) String() string {
	if s.form != strings.ToLower(s.canary.word) {
		return fmt.Sprintf("%v is, encoded, in %s", s.canary, s.place.name)
	}
	return fmt.Sprintf("%v is in %s", s.canary, s.place.name)
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
		if why := r.idle(x, seen); why != "" {
			faults = append(faults, fmt.Sprintf("%v %s", x, why))
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
		if e.Code != codes.Dependency {
			out = append(out, fmt.Sprintf("what follows was not tested: %v (%s)", e.Error(), e.Code))
		}
	}
	if len(out) == 0 {
		out = append(out, fmt.Sprintf("the run did not complete: %s", r.result.Status))
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

// wrong says why a canary must not be where it is, or nothing if it may.
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

// idle says why a canary proves nothing. It returns nothing if a reader saw the canary, or
// if it is withheld from those that a promise names.
func (r *run) idle(x *planted, seen []sighting) string {
	about := slices.ContainsFunc(r.promises, func(p promise) bool { return p.canary == x })
	switch {
	case x.quiet || slices.ContainsFunc(r.chart.names(), func(name string) bool { return r.saw(x, name, seen) >= 0 }):
		return ""
	case x.made() && !r.cast.written[x]:
		return "was not written: no agent answered with it"
	case r.nowhere(x):
		return ""
	case !r.chart.leads(r.grants[x].source):
		return "was planted where nothing reads: no edge of the spec leads from there; grant it to an agent, or promise Never(…, flowtest.Everybody)"
	case !about:
		return "reached nobody, and nothing is promised about it: promise with Never who must not see it, or with Reaches who must"
	}
	return ""
}

// saw returns the first sighting at which a reader was given a canary, or -1:
// it read a prompt or a result with it, and did not write it there.
func (r *run) saw(x *planted, reader string, seen []sighting) int {
	at := r.chart.reader(reader)
	return slices.IndexFunc(seen, func(s sighting) bool {
		switch {
		case s.canary != x:
			return false
		case s.place.kind == aPrompt:
			return s.place.task >= 0 && r.chart.reads(s.place.task, reader)
		}
		return at == r.chart.user && (s.place.kind == aResult || s.place.kind == anAnswer)
	})
}

// kept says of a promise in which way it was not kept.
func (r *run) kept(p promise, seen []sighting) (faults []string) {
	readers := []string{p.reader}
	if p.reader == Everybody {
		readers = r.chart.names()
	}
	for _, reader := range readers {
		at := r.saw(p.canary, reader, seen)
		switch {
		case p.never && at >= 0:
			faults = append(faults, fmt.Sprintf("promised that %v never reaches %s, and it is in %s%s", p.canary, reader, seen[at].place.name, r.remedy(p.canary, reader, seen[:at+1])))
		case !p.never && at < 0:
			faults = append(faults, fmt.Sprintf("promised that %v reaches %s, and it is in nothing that %s was given%s", p.canary, reader, reader, r.absence(p.canary, reader)))
		}
	}
	return faults
}

// nowhere reports whether a canary was promised to reach no reader: no agent,
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
