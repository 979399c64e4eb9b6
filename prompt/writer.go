package prompt

import (
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/provenance"
)

// A writer appends to one text and notes the range of each piece while it does.
type writer struct {
	text    []byte
	ranges  []Range  // of the system prompt, then of the text
	closed  int      // ranges that belong to the other text and do not grow
	start   int      // where the message begins in the text
	sources []Source // the task's text, the system prompt, the pieces, the parameters
}

// put appends text; the last range grows if it has the same part and source.
func (w *writer) put(part Part, source int32, text string) {
	if text == "" {
		return
	}
	start := int32(len(w.text))
	w.text = append(w.text, text...)
	end := int32(len(w.text))
	if last := len(w.ranges) - 1; last >= w.closed && w.ranges[last].Part == part && w.ranges[last].Source == source {
		w.ranges[last].End = end
		return
	}
	w.ranges = append(w.ranges, Range{Start: start, End: end, Source: source, Part: part})
}

func (w *writer) frame(text string) { w.put(brief.PartFrame, -1, text) }

// heading writes the heading of a section, after a blank line if something
// stands before it.
func (w *writer) heading(text string) {
	if len(w.text) > w.start {
		w.frame("\n\n")
	}
	w.frame(text)
}

// open writes a section's heading once.
func (w *writer) open(opened *bool, heading string) {
	if !*opened {
		w.heading(heading)
		*opened = true
	}
}

// instruction appends a text of the spec, with a source of its own for each parameter in it.
func (w *writer) instruction(part Part, source int32, text string, params []provenance.Param) {
	done := 0
	for _, p := range params {
		w.put(part, source, text[done:p.Start])
		of := w.sources[source]
		of.Param = p.Name
		w.sources = append(w.sources, of)
		w.put(part, int32(len(w.sources)-1), text[p.Start:p.End])
		done = p.End
	}
	w.put(part, source, text[done:])
}

// by ends a heading with a name in parentheses.
func (w *writer) by(how string, source int32, name string) {
	w.frame(how)
	w.put(brief.PartHeading, source, name)
	w.frame(")")
}
