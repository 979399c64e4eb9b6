package flow

import (
	"strings"

	"github.com/runteam/runteam/handoff"
)

// why says for people how a subject comes to a reader.
func (t *Table) why(x *theme, way Path) string {
	reader, stops := way[len(way)-1], way[1:len(way)-1]
	shown := t.shown(way)
	what, last := x.of(way[0]), reader
	teller := len(stops) - 1 // the task whose words arrive; none if it is the subject itself
	verb := " is shown "
	if !shown {
		last, verb = stops[teller], " is delivered "
		teller--
	}
	if teller >= 0 {
		what = "what " + stops[teller].String() + " wrote, which may tell of " + what
	}
	text := reader.String() + verb + what
	if !shown {
		text += ", in " + last.String()
	}
	text += because(last)
	if t.answer(x, way[0].Index) == Maybe {
		text += "; whether there is such a value, only the run will show"
	}
	return text
}

// shown reports whether the reader at the end of a way reads outside any task.
func (t *Table) shown(way Path) bool {
	if len(way) == 2 {
		return true
	}
	last := way[len(way)-2]
	return last.Note == wrote || !t.g.Tasks[last.Index].reads(way[len(way)-1].Index)
}

// because names the rule that brings something to a stop.
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

// of names what of a source is meant.
func (x *theme) of(source Step) string {
	if x.part == nil {
		return source.String()
	}
	return x.text + " of " + source.String()
}

// answer returns what is known of a subject being in a source.
func (t *Table) answer(x *theme, source int) Answer {
	if x.known == nil {
		return Yes
	}
	return x.known(&t.g.Sources[source])
}

// caveat adds to an assertion that holds what it does not say.
func (t *Table) caveat(x *theme, readers []int) string {
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
		return "nothing names " + x.text + "; it only may be there"
	}
	return ""
}

// opaque says that texts without a schema come to a reader: whether one happens
// to be JSON with the property, nothing says before a run. Those that are written
// by whoever had read the property count as derived from it, and no others.
func (t *Table) opaque(claim Claim, readers []int) string {
	level, how, more := Part, " is delivered ", "; \"never derives into\" counts those whose writers had read it"
	if claim == Derives {
		level, how, more = Retold, " is told of ", ""
	}
	for i := range t.g.Sources {
		s := &t.g.Sources[i]
		if s.Structured() || s.Kind == handoff.Goal {
			continue
		}
		row := t.Row(i)
		for _, r := range readers {
			if row[r] >= level {
				return "of texts without a schema nothing is known, and " + t.g.Readers[r].Name + how + t.sourceStep(i).String() + more
			}
		}
	}
	return ""
}
