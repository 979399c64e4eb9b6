package prompt

import (
	"slices"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/bytesize"
)

// A result is the source of the message of a tool. The zero value stands for a message that
// has none: of another role, or moved out.
type result struct {
	Source
	turn    int // the turn that made the call
	payload int // bytes
}

// movedOutHeading stands before the results that a turn moved out of the conversation.
const movedOutHeading = "## moved out"

// moveOut replaces results in the first n messages of a conversation of this size by one line
// each, the oldest first, until it has at most target bytes. It returns the new size.
func (r *turnRenderer) moveOut(a *around, n, size, target int) int {
	opened := false
	a.later, a.results, a.filled = slices.Clone(a.later), slices.Clone(a.results), nil // other prompts have theirs
	for i := 0; i < n && size > target; i++ {
		of, m := &a.results[i], &a.later[i]
		line := of.line(r.turn.HasFiles)
		if of.Decision == nil || len(line) >= len(m.Text) {
			continue
		}
		r.open(&opened, movedOutHeading)
		r.frame("\n" + m.CallID + ": ")
		r.sources = append(r.sources, Source{Producer: of.Producer, Classification: of.Classification, Decision: of.Decision.MovedOut(), shown: of.shown})
		r.put(brief.PartWithheld, int32(len(r.sources)-1), line)
		size += len(line) - len(m.Text)
		m.Text, *of = line, result{}
	}
	return size
}

// line returns the text that replaces a result. It has the size class and not the size, because
// viewers who may not see the result see how long the line is.
func (r *result) line(hasFiles bool) string {
	if hasFiles {
		return "[result moved to " + brief.HistoryFile(r.turn) + ": " + bytesize.ClassText(r.payload) + "]"
	}
	return "[result removed: " + bytesize.ClassText(r.payload) + "]"
}

// sizeOf returns the bytes of a conversation.
func sizeOf(first string, later []Message) int {
	n := len(first)
	for i := range later {
		n += len(later[i].Text)
		for _, c := range later[i].Calls {
			n += len(c.Arguments)
		}
	}
	return n
}
