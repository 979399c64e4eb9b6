package promptview

import (
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
)

// withoutMessages returns s without the hidden messages in its section of messages, and the hidden sources in what is
// left. Such a message leaves nothing: how many there are depends on what their senders read. One in a conversation, such
// as a reply to a call, stays as a hidden source.
func (s *Shown) withoutMessages(hidden sourceSet) (left *Shown, still sourceSet) {
	isMessage := func(source int32) bool {
		d := s.Receipt.Sources[source].Decision
		return hidden[source] && d != nil && d.Source.Kind == handoff.Message
	}
	text, dropped := withoutItems(s.Text, len(hidden), isMessage)
	for i := range s.Receipt.Sources { // a message that is withheld from the reader has no words
		dropped[i] = dropped[i] || isMessage(int32(i)) && !isIn(s.Text, int32(i))
	}
	if !slices.Contains(dropped, true) {
		return s, hidden
	}
	left = &Shown{Receipt: copyOf(s.Receipt), System: slices.Clone(s.System), Text: text}
	sources, at := left.Receipt.Sources[:0], make([]int32, len(hidden))
	for i := range left.Receipt.Sources {
		if at[i] = int32(len(sources)); !dropped[i] {
			sources, still = append(sources, left.Receipt.Sources[i]), append(still, hidden[i])
		}
	}
	left.Receipt.Sources = sources
	for _, list := range [][]Piece{left.System, left.Text} {
		for i := range list {
			if from := &list[i].Source; *from >= 0 {
				*from = at[*from]
			}
		}
	}
	return left, still
}

// isIn reports whether a text has a piece of a source.
func isIn(text []Piece, source int32) bool {
	return slices.ContainsFunc(text, func(p Piece) bool { return p.Source == source })
}

// withoutItems returns a text without items of its section of messages, and without the section if none is left, and
// which of so many sources these items had.
func withoutItems(from []Piece, sources int, drop func(source int32) bool) (out []Piece, dropped sourceSet) {
	dropped = make(sourceSet, sources)
	if !slices.ContainsFunc(from, func(p Piece) bool { return p.Source >= 0 && drop(p.Source) }) {
		return from, dropped
	}
	for i := 0; i < len(from); i++ {
		p := from[i]
		if last := len(out) - 1; p.Source >= 0 && drop(p.Source) && last >= 0 && strings.HasSuffix(out[last].Words, itemOpener) {
			dropped[p.Source] = true
			out[last].Words = strings.TrimSuffix(out[last].Words, itemOpener)
			for n := i + 1; n < len(from) && (from[n].Source == p.Source || from[n].Source < 0); n++ {
				if from[n].Source == p.Source {
					i = n
				}
			}
			if i+1 < len(from) && from[i+1].Part == brief.PartFrame {
				i++
				out[last].Words += closingLine.ReplaceAllString(from[i].Words, "")
			}
			continue
		}
		out = append(out, p)
	}
	for i := range out {
		if p := &out[i]; p.Part == brief.PartFrame {
			p.Words = emptySection.ReplaceAllString(p.Words, "$1")
		}
	}
	return out, dropped
}

// itemOpener begins an item of the section of messages.
const itemOpener = "\n- **"

// emptySection finds a section of messages that has no item.
var emptySection = regexp.MustCompile(`(?:^|\n\n)` + regexp.QuoteMeta(brief.HeadMessages) + `(\n\n|$)`)
