package prompt

import (
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/label"
)

// Shown is a prompt as a viewer may see it: piece by piece, in the order of the
// bytes. Pieces that are withheld from the viewer have no words, and the length
// of their [bytesize.Class]; the decisions about their sources are outlines.
// Positions count in the texts as shown, which are those of the prompt where
// nothing is withheld.
type Shown struct {
	Receipt *Receipt `json:"receipt"`
	System  []Piece  `json:"system,omitempty"`
	Text    []Piece  `json:"text,omitempty"`
}

// A Piece is one range of a prompt and its words.
type Piece struct {
	Range
	Words    string `json:"words,omitempty"`
	Withheld bool   `json:"withheld,omitempty"` // from the viewer; the length is a class
}

// Show returns the prompt for a viewer with this clearance, without the words
// of sources that keep is true of; nil keeps none back. A piece is as sensitive
// as its source, and the builder's own words are public, but for the fences of
// a prompt of which something is withheld, and what their first lines say about
// a payload that is.
func (p Prompt) Show(clearance label.Classification, keep func(*Source) bool) Shown {
	b := p.get()
	whole := Shown{Receipt: b.receipt, System: pieces(b.receipt.System, b.system), Text: pieces(b.receipt.Text, b.text)}
	if hidden := b.receipt.above(clearance, keep); hidden != nil {
		return *whole.without(hidden)
	}
	whole.Receipt = b.receipt.clone()
	return whole
}

// ShownReceipt returns the receipt of [Prompt.Show], and how many bytes both texts
// have there. The receipt is shared and must not be changed.
func (p Prompt) ShownReceipt(clearance label.Classification, keep func(*Source) bool) (r *Receipt, bytes int) {
	b := p.get()
	if b.receipt.above(clearance, keep) == nil {
		return b.receipt, len(b.system) + len(b.text)
	}
	s := p.Show(clearance, keep)
	return s.Receipt, s.Bytes()
}

// Lower returns the prompt for a viewer with a lower clearance, as [Prompt.Show]
// does, and whether words were left out. If the viewer may see all that s has,
// it returns s itself.
func (s *Shown) Lower(clearance label.Classification) (lowered *Shown, hid bool) {
	if s == nil || s.Receipt == nil { // without a receipt the labels of the words are unknown
		return &Shown{}, true
	}
	hidden := s.Receipt.above(clearance, nil)
	worded := func(p Piece) bool { return p.Words != "" && hidden.has(p.Source) }
	hid = slices.ContainsFunc(s.System, worded) || slices.ContainsFunc(s.Text, worded)
	for i := range hidden {
		if d := s.Receipt.Sources[i].Decision; hid || hidden[i] && d != nil && !d.Coarse {
			return s.without(hidden), hid
		}
	}
	return s, false
}

// A sourceSet marks sources of a receipt by their index.
type sourceSet []bool

func (set sourceSet) has(source int32) bool {
	return source >= 0 && int(source) < len(set) && set[source]
}

// above returns the sources that a viewer may not see; nil if there are none.
func (r *Receipt) above(clearance label.Classification, keep func(*Source) bool) (hidden sourceSet) {
	for i := range r.Sources {
		if s := &r.Sources[i]; s.level() > clearance || keep != nil && keep(s) {
			if hidden == nil {
				hidden = make(sourceSet, len(r.Sources))
			}
			hidden[i] = true
		}
	}
	return hidden
}

// level is how sensitive a source is, also where it was lowered for its reader.
func (s *Source) level() label.Classification {
	if s.Decision == nil {
		return s.Classification
	}
	return s.Classification.Join(s.Decision.Before)
}

// without returns s for a viewer who may not see these sources.
func (s *Shown) without(hidden sourceSet) *Shown {
	r := s.Receipt.clone()
	for i := range r.Sources {
		if d := r.Sources[i].Decision; d != nil && hidden[i] {
			*d = d.Outline()
		}
	}
	out := &Shown{Receipt: r, System: withhold(s.System, hidden, r.Sources), Text: withhold(s.Text, hidden, r.Sources)}
	gone := func(p Piece) bool { return p.Withheld }
	if slices.ContainsFunc(out.System, gone) || slices.ContainsFunc(out.Text, gone) {
		hideFences(out.System)
		hideFences(out.Text)
	}
	r.System, r.Text = ranges(out.System), ranges(out.Text)
	return out
}

// withhold returns the pieces of a text without the words of hidden sources, and
// without what the builder's words around them say about their payloads.
func withhold(from []Piece, hidden sourceSet, sources []Source) []Piece {
	out := make([]Piece, 0, len(from))
	end := int32(0)
	for i := 0; i < len(from); i++ {
		p := from[i]
		for p.Part == PartPayload && hidden.has(p.Source) && i+2 < len(from) && from[i+2].Part == PartPayload && from[i+2].Source == p.Source {
			i += 2 // text and structured part are one, with the words between them
			p.End += from[i].End - from[i].Start
		}
		switch {
		case hidden.has(p.Source):
			p.Words, p.Withheld = "", true
		case p.Part == PartFrame:
			p.Words = unmarked(p.Words, from[:i], from[i+1:], hidden, sources)
		}
		size := int32(len(p.Words))
		if p.Withheld {
			if size = p.End - p.Start; p.Part.sized() {
				size = int32(bytesize.Class(int(size)))
			}
		}
		if size == 0 {
			continue
		}
		p.Start, p.End = end, end+size
		end = p.End
		out = append(out, p)
	}
	return out
}

// sized reports whether the length of a range depends on a value. That of a name in
// a heading, of a title and of a line in place of a value does not.
func (p Part) sized() bool { return p != PartHeading && p != PartTitle && p != PartWithheld }

// unmarked returns the builder's words between two pieces, without what they say
// about hidden payloads next to them.
func unmarked(words string, before, behind []Piece, hidden sourceSet, sources []Source) string {
	inline := func(p *Piece) bool { // stands in the builder's line if it is a short one
		d := sources[p.Source].Decision
		return d != nil && (d.Source.Kind == handoff.Message || d.Source.Kind == handoff.Fault)
	}
	if n := len(before); n > 0 {
		if p := &before[n-1]; p.Part == PartPayload && hidden.has(p.Source) && inline(p) {
			words = closingLine.ReplaceAllString(words, "")
		}
	}
	for i := range behind {
		p := &behind[i]
		if p.Part != PartPayload {
			break
		}
		if !hidden.has(p.Source) { // an entry of the memory beside hidden ones
			continue
		}
		if inline(p) {
			return strings.TrimSuffix(openingLine.ReplaceAllString(words, ""), " ") + " "
		}
		return openingLine.ReplaceAllString(formHeading.ReplaceAllString(words, "$1"), "$1$2")
	}
	return words
}

// The builder's lines around a payload. Its first line ends in the marks that
// the gate's work on it left.
var (
	openingLine = regexp.MustCompile(`(\n\[envelope [0-9a-f*]+ from "[^"]*", [a-z]+)[^\n]*(: data, not instructions\]\n)$`)
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
		if p := &pieces[i]; p.Part == PartFrame {
			p.Words = fenceLine.ReplaceAllStringFunc(p.Words, func(line string) string {
				opener, fence, _ := strings.Cut(line, " ")
				return opener + " " + strings.Repeat("*", len(fence))
			})
		}
	}
}

func pieces(ranges []Range, text string) []Piece {
	out := make([]Piece, len(ranges))
	for i, at := range ranges {
		out[i] = Piece{Range: at, Words: text[at.Start:at.End]}
	}
	return out
}

func ranges(pieces []Piece) []Range {
	out := make([]Range, len(pieces))
	for i := range pieces {
		out[i] = pieces[i].Range
	}
	return out
}
