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
	canary *canary
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

// check returns what is wrong with the run.
func (r *run) check() (problems []string) {
	problems = append(problems, r.team.problems...)
	problems = append(problems, r.failed()...)
	seen := r.sightings()
	for i := range seen {
		if why := r.violation(&seen[i]); why != "" {
			problems = append(problems, seen[i].String()+": "+why)
		}
	}
	for _, p := range r.assertions {
		problems = append(problems, r.broken(p, seen)...)
	}
	for _, x := range r.canaries {
		if why := r.unused(x, seen); why != "" {
			problems = append(problems, fmt.Sprintf("%v %s", x, why))
		}
	}
	return problems
}

// failed returns why the run did not succeed, so that the assertions were not fully tested.
func (r *run) failed() (out []string) {
	if r.result.Success() {
		return nil
	}
	for _, e := range r.result.Errors {
		if e.Code != codes.Dependency {
			out = append(out, fmt.Sprintf("the run failed before everything was tested: %v (%s)", e.Error(), e.Code))
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

// violation says why a canary must not be where it is; empty if it may.
func (r *run) violation(s *sighting) string {
	g, p := r.allowances[s.canary], s.place
	switch p.kind {
	case aToolInput:
		if !r.flow.mayReach(g, p.reader) {
			return "the flow table says that it never reaches " + p.reader
		}
	case aPrompt:
		if p.task < 0 || !slices.ContainsFunc(r.flow.worksOn(p.task, r.flow.g.Tasks[p.task].Agent), func(t int) bool { return g.tasks[t] }) {
			return "no edge of the spec delivers it there" + r.flowNote(s.canary, p.task)
		}
		if i, ok := r.flow.plan.Graph.Index(p.id); ok && p.task < len(r.flow.specs) && !g.instances[i] {
			return "it may reach this task, but not this round or this item of a list"
		}
	case aCall, aResult:
		if !r.writes(s.canary, p.task) {
			return "its prompt may not have it, so what it writes may not either" + r.flowNote(s.canary, p.task)
		}
		if p.kind == aCall {
			return ""
		}
		fallthrough
	case anAnswer:
		if !g.user {
			return fmt.Sprintf("the flow table says that it never reaches the user, who accepts %v", r.flow.clearance())
		}
	case aRecord, aFile:
		if !r.flow.isCleared(g) {
			return fmt.Sprintf("it is at least %v, and the user accepts %v", g.least, r.flow.clearance())
		}
		if p.kind == aRecord && !r.flow.mayBeRecorded(g) {
			return "neither a prompt nor a result for the user may have it"
		}
	case aName:
		if !g.named {
			return "it is no key of a list that the user is delivered"
		}
	case aLog:
		return "logs, events and printed values must not contain context"
	}
	return ""
}

// writes reports whether a task may have a canary in its result.
func (r *run) writes(x *canary, t int) bool {
	g := r.allowances[x]
	return t >= 0 && slices.ContainsFunc(r.flow.worksOn(t, -1), func(t int) bool { return g.tasks[t] || r.flow.g.Sources[g.source].Task == t })
}

// unused says why a canary proves nothing. It is empty if a reader saw the canary, or if
// the canary is withheld from the readers that an assertion names.
func (r *run) unused(x *canary, seen []sighting) string {
	about := slices.ContainsFunc(r.assertions, func(p assertion) bool { return p.canary == x })
	switch {
	case x.optional || slices.ContainsFunc(r.flow.names(), func(name string) bool { return r.firstSeen(x, name, seen) >= 0 }):
		return ""
	case x.isInResult() && !r.team.written[x]:
		return "was not written: no agent answered with it"
	case x.handoff && !r.team.written[x]:
		return "was not sent: no agent called send_handoff with it"
	case r.isWithheldFromAll(x):
		return ""
	case !r.flow.isGranted(r.allowances[x].source):
		return "was planted in something that no edge of the spec delivers; grant it to an agent, or assert Never(…, flowtest.Everybody)"
	case !about:
		return "reached no reader and has no assertion; add Never or Reaches"
	}
	return ""
}

// firstSeen returns the index of the first sighting of a canary in a prompt or a result that
// was delivered to a reader, or -1.
func (r *run) firstSeen(x *canary, reader string, seen []sighting) int {
	at := r.flow.reader(reader)
	return slices.IndexFunc(seen, func(s sighting) bool {
		switch {
		case s.canary != x:
			return false
		case s.place.kind == aPrompt:
			return s.place.task >= 0 && r.flow.reads(s.place.task, reader)
		case s.place.kind == aToolInput:
			return s.place.reader == reader
		}
		return at == r.flow.user && (s.place.kind == aResult || s.place.kind == anAnswer)
	})
}

// broken says in which ways an assertion is broken.
func (r *run) broken(p assertion, seen []sighting) (problems []string) {
	readers := []string{p.reader}
	if p.reader == Everybody {
		readers = r.flow.names()
	}
	for _, reader := range readers {
		at := r.firstSeen(p.canary, reader, seen)
		switch {
		case p.never && at >= 0:
			problems = append(problems, fmt.Sprintf("asserted that %v never reaches %s, but it is in %s%s", p.canary, reader, seen[at].place.name, r.leakAdvice(p.canary, reader, seen[:at+1])))
		case !p.never && at < 0:
			problems = append(problems, fmt.Sprintf("asserted that %v reaches %s, but nothing that was delivered to %s has it%s", p.canary, reader, reader, r.missingNote(p.canary, reader)))
		}
	}
	return problems
}

// isWithheldFromAll reports whether assertions say that a canary reaches no agent, not the
// coordinator and not the user.
func (r *run) isWithheldFromAll(x *canary) bool {
	return !slices.ContainsFunc(r.flow.g.Readers, func(reader flow.Reader) bool {
		return reader.Kind != flow.Endpoint && !slices.ContainsFunc(r.assertions, func(p assertion) bool {
			return p.canary == x && p.never && (p.reader == reader.Name || p.reader == Everybody)
		})
	})
}

// names returns the names of all readers.
func (p *planFlow) names() []string {
	names := make([]string, len(p.g.Readers))
	for i := range names {
		names[i] = p.g.Readers[i].Name
	}
	return names
}
