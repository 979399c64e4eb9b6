package flow

import (
	"strings"

	"github.com/runteam/runteam/handoff"
)

// why explains how a reader gets a subject.
func (t *Table) why(x *resolvedSubject, way Path) string {
	reader, stops := way[len(way)-1], way[1:len(way)-1]
	shown := t.shown(way)
	what, last := x.of(way[0]), reader
	writer := len(stops) - 1 // the task whose output arrives; none if the subject itself does
	verb := " sees "
	if !shown {
		last, verb = stops[writer], " receives "
		writer--
	}
	if writer >= 0 {
		what = "what " + stops[writer].String() + " wrote, which may reveal " + what
	}
	text := reader.String() + verb + what
	if !shown {
		text += ", in " + last.String()
	}
	text += because(last)
	if t.answer(x, way[0].Index) == Maybe {
		text += "; only the run will show whether it exists"
	}
	return text
}

// shown reports whether the reader at the end of a path reads outside of any task.
func (t *Table) shown(way Path) bool {
	if len(way) == 2 {
		return true
	}
	last := way[len(way)-2]
	return last.Note == writesIt || !t.g.Tasks[last.Index].reads(way[len(way)-1].Index)
}

// because names the rule by which something is delivered to a step.
func because(s Step) string {
	var parts []string
	for _, part := range []string{string(s.Rule), s.Line, s.Note} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// of names the part of a source.
func (x *resolvedSubject) of(source Step) string {
	if x.part == nil {
		return source.String()
	}
	return x.text + " of " + source.String()
}

// answer returns what is known about whether a source contains the subject.
func (t *Table) answer(x *resolvedSubject, source int) Answer {
	if x.known == nil {
		return Yes
	}
	return x.known(&t.g.Sources[source])
}

// caveat returns what an assertion that holds does not cover, or "".
func (t *Table) caveat(x *resolvedSubject, readers []int) string {
	certain := false
	for _, s := range x.sources {
		if t.answer(x, s) != Yes {
			continue
		}
		certain = true
		for _, r := range readers {
			if t.Wrote(s, r) {
				return t.g.Readers[r].Name + " writes it, in " + t.writerStep(t.g.Sources[s].Task).String() + ", which does not count"
			}
		}
	}
	if !certain {
		return "no schema or input names " + x.text + "; only the run will show whether it exists"
	}
	return ""
}

// opaqueCaveat notes that a reader gets texts without a schema. Whether such a text
// is JSON with the property is unknown before a run. Only texts whose writers read
// the property count as derived from it.
func (t *Table) opaqueCaveat(claim Claim, readers []int) string {
	level, how, more := Part, " receives ", "; \"never derives into\" covers texts whose writers read it"
	if claim == Derives {
		level, how, more = Derived, " gets text derived from ", ""
	}
	for i := range t.g.Sources {
		s := &t.g.Sources[i]
		if s.Structured() || s.Kind == handoff.Goal {
			continue
		}
		row := t.Row(i)
		for _, r := range readers {
			if row[r] >= level {
				return "a text without a schema may contain it: " + t.g.Readers[r].Name + how + t.sourceStep(i).String() + more
			}
		}
	}
	return ""
}
