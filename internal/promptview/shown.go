// Package promptview decides which pieces of a prompt a viewer sees.
package promptview

import (
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
)

// Shown is a prompt as a viewer may see it: piece by piece, in the order of the
// bytes. Pieces that are withheld from the viewer have no words and no length;
// the decisions about their sources are outlines.
// Positions count in the texts as shown, which are those of the prompt if nothing is
// withheld.
type Shown struct {
	Receipt *prompt.Receipt `json:"receipt"`
	System  []Piece         `json:"system,omitempty"`
	Text    []Piece         `json:"text,omitempty"`
}

// A Piece is one range of a prompt and its words.
type Piece struct {
	prompt.Range
	Words    string `json:"words,omitempty"`
	Withheld bool   `json:"withheld,omitempty"` // from the viewer; the length is zero
}

// Show returns the prompt with this receipt for a viewer with this clearance, without
// the words of the sources for which hide is true; a nil hide is true for none. A piece
// is as sensitive as its source. The builder's own words are public, except for the
// fences of a prompt with withheld context, and what their first lines say about a
// payload that is withheld. The lines of a task that gave the reader nothing stay: its title, its status and the
// reason are everybody's. It also reports whether words may have been left out.
func Show(p prompt.Prompt, r *prompt.Receipt, clearance label.Classification, hide func(*prompt.Source) bool) (shown Shown, hid bool) {
	whole := Shown{Receipt: r, System: pieces(r.System, p.System()), Text: pieces(r.Text, p.Added())}
	if hidden := above(r, clearance, hide); hidden != nil {
		return whole.without(hidden)
	}
	whole.Receipt = copyOf(r)
	return whole, false
}

// copyOf returns a receipt that shares nothing with r that could be changed: a recorder
// may write into the receipts that it gets.
func copyOf(r *prompt.Receipt) *prompt.Receipt {
	c := *r
	c.System, c.Text, c.Sources = slices.Clone(r.System), slices.Clone(r.Text), slices.Clone(r.Sources)
	c.Returned = slices.Clone(r.Returned)
	for i := range c.Returned {
		c.Returned[i].Members = slices.Clone(c.Returned[i].Members)
	}
	for i := range c.Sources {
		if d := c.Sources[i].Decision; d != nil {
			c.Sources[i].Decision = d.Clone()
		}
	}
	return &c
}

// Receipt returns the receipt of [Show], which must not be changed, how many bytes
// both texts have there, and whether words may have been left out.
func Receipt(p prompt.Prompt, r *prompt.Receipt, clearance label.Classification, hide func(*prompt.Source) bool) (shown *prompt.Receipt, bytes int, hid bool) {
	if above(r, clearance, hide) == nil {
		return r, len(p.System()) + len(p.Added()), false
	}
	s, hid := Show(p, r, clearance, hide)
	return s.Receipt, s.Bytes(), hid
}

// Lower returns the prompt for a viewer with a lower clearance, as [Show] does, and
// whether words were left out. If the viewer may see all that s has, it returns s itself.
func (s *Shown) Lower(clearance label.Classification) (lowered *Shown, hid bool) {
	if s == nil || s.Receipt == nil { // without a receipt the labels of the words are unknown
		return &Shown{}, true
	}
	hidden := above(s.Receipt, clearance, nil)
	worded := func(p Piece) bool { return p.Words != "" && hidden.withholds(p.Source, s.Receipt.Sources) }
	hid = slices.ContainsFunc(s.System, worded) || slices.ContainsFunc(s.Text, worded)
	for i := range hidden {
		if d := s.Receipt.Sources[i].Decision; hid || hidden[i] && d != nil && !d.Coarse {
			shown, _ := s.without(hidden)
			return &shown, hid
		}
	}
	return s, false
}

// A sourceSet marks sources of a receipt by their index.
type sourceSet []bool

func (set sourceSet) has(source int32) bool {
	return source >= 0 && int(source) < len(set) && set[source]
}

// withholds reports whether words of a hidden source are withheld: of all but a task that gave the reader nothing,
// whose title, status and reason are all that a prompt has.
func (set sourceSet) withholds(source int32, sources []prompt.Source) bool {
	if !set.has(source) {
		return false
	}
	d := sources[source].Decision
	return d == nil || d.IsDelivered() || d.Source.Kind != handoff.Dependency
}

// above returns the sources that a viewer may not see; nil if there are none.
func above(r *prompt.Receipt, clearance label.Classification, hide func(*prompt.Source) bool) (hidden sourceSet) {
	for i := range r.Sources {
		s := &r.Sources[i]
		level := s.Classification
		if s.Decision != nil { // which may have lowered it for its reader
			level = level.Join(s.Decision.Before)
		}
		if level > clearance || hide != nil && hide(s) {
			if hidden == nil {
				hidden = make(sourceSet, len(r.Sources))
			}
			hidden[i] = true
		}
	}
	return hidden
}

// without returns s for a viewer who may not see these sources, and whether words may have been left out: also of
// a source that has none, since the viewer would learn that.
func (s *Shown) without(hidden sourceSet) (shown Shown, hid bool) {
	all := len(s.Receipt.Sources)
	s, hidden = s.withoutMessages(hidden)
	hid = len(s.Receipt.Sources) < all
	r := copyOf(s.Receipt)
	for i := range r.Sources {
		s := &r.Sources[i]
		if !hidden[i] {
			continue
		}
		hid = hid || hidden.withholds(int32(i), r.Sources)
		if s.Producer = naming.First(s.Producer); s.Decision != nil {
			*s.Decision = s.Decision.Outline()
		}
	}
	shown = Shown{Receipt: r, System: withhold(s.System, hidden, r.Sources), Text: withhold(s.Text, hidden, r.Sources)}
	if hid {
		r.Returned = nil // the model may have chosen their number and size by what is hidden
		hideFences(shown.System)
		hideFences(shown.Text)
	}
	r.System, r.Text = ranges(shown.System), ranges(shown.Text)
	return shown, hid
}

// Withholds reports whether a piece is withheld from the viewer.
func (s *Shown) Withholds() bool {
	gone := func(p Piece) bool { return p.Withheld }
	return slices.ContainsFunc(s.System, gone) || slices.ContainsFunc(s.Text, gone)
}

// withhold returns the pieces of a text without the words of hidden sources, and
// without what the builder's words around them say about their payloads.
func withhold(from []Piece, hidden sourceSet, sources []prompt.Source) []Piece {
	out := make([]Piece, 0, len(from))
	end := int32(0)
	for i := 0; i < len(from); i++ {
		p := from[i]
		for p.Part == brief.PartPayload && hidden.has(p.Source) && i+2 < len(from) && from[i+2].Part == brief.PartPayload && from[i+2].Source == p.Source {
			i += 2 // text and structured part are one, with the words between them
		}
		switch {
		case hidden.withholds(p.Source, sources):
			p.Words, p.Withheld = "", true
		case p.Part == brief.PartFrame:
			p.Words = unmarked(p.Words, from[:i], from[i+1:], hidden, sources)
		}
		size := int32(len(p.Words))
		if size == 0 && !p.Withheld {
			continue
		}
		p.Start, p.End = end, end+size
		end = p.End
		out = append(out, p)
	}
	return out
}

// unmarked returns the builder's words between two pieces, without what they say
// about hidden payloads next to them.
func unmarked(words string, before, behind []Piece, hidden sourceSet, sources []prompt.Source) string {
	inline := func(p *Piece) bool { // in the line of the builder if it is short
		d := sources[p.Source].Decision
		return d != nil && (d.Source.Kind == handoff.Message || d.Source.Kind == handoff.Fault)
	}
	if n := len(before); n > 0 {
		if p := &before[n-1]; p.Part == brief.PartPayload && hidden.has(p.Source) && inline(p) {
			words = closingLine.ReplaceAllString(words, "")
		}
	}
	for i := range behind {
		p := &behind[i]
		if p.Part != brief.PartPayload {
			break
		}
		if !hidden.has(p.Source) { // an entry of the memory next to hidden ones
			continue
		}
		if inline(p) {
			return strings.TrimSuffix(openingLine.ReplaceAllString(words, ""), " ") + " "
		}
		return openingLine.ReplaceAllString(formHeading.ReplaceAllString(words, "$1"), "$1$2$3")
	}
	return words
}

// The builder's lines around a payload. Its first line names all agents that made it,
// and ends in the marks that the gate's work on it left.
var (
	openingLine = regexp.MustCompile(`(\n\[envelope [0-9a-f*]+ from "[^"]*?)(?: > [^"]*)?(", [a-z]+)[^\n]*(: data, not instructions\]\n)$`)
	formHeading = regexp.MustCompile(`\n(?:` + regexp.QuoteMeta(brief.HeadRaw) + `|` + regexp.QuoteMeta(brief.HeadStructured) + `)(\n\[envelope [^\n]*\n)$`)
	closingLine = regexp.MustCompile(`^\n\[/envelope [0-9a-f*]+\]`)
)

// Bytes returns the length of both texts as shown.
func (s *Shown) Bytes() int { return length(s.System) + length(s.Text) }

func length(pieces []Piece) int {
	if len(pieces) == 0 {
		return 0
	}
	return int(pieces[len(pieces)-1].End)
}

// fenceLine finds the fence in a line of the builder's.
var fenceLine = regexp.MustCompile(`\[/?envelope [0-9a-f]+`)

// hideFences takes the fences out of the builder's words. They are a digest of
// all payloads, by which one that is withheld and has few values could be guessed.
func hideFences(pieces []Piece) {
	for i := range pieces {
		if p := &pieces[i]; p.Part == brief.PartFrame {
			p.Words = fenceLine.ReplaceAllStringFunc(p.Words, func(line string) string {
				opener, fence, _ := strings.Cut(line, " ")
				return opener + " " + strings.Repeat("*", len(fence))
			})
		}
	}
}

func pieces(ranges []prompt.Range, text string) []Piece {
	out := make([]Piece, len(ranges))
	for i, at := range ranges {
		out[i] = Piece{Range: at, Words: text[at.Start:at.End]}
	}
	return out
}

func ranges(pieces []Piece) []prompt.Range {
	out := make([]prompt.Range, len(pieces))
	for i := range pieces {
		out[i] = pieces[i].Range
	}
	return out
}
