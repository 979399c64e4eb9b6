package prompt

import (
	"regexp"
	"slices"
	"strings"

	"github.com/runteam/runteam/label"
)

// Shown is a prompt as a reader of the record may see it: piece by piece, in
// the order of the bytes. Pieces that are kept from the reader have no words.
type Shown struct {
	Receipt *Receipt `json:"receipt"`
	System  []Piece  `json:"system,omitempty"`
	Text    []Piece  `json:"text,omitempty"`
}

// A Piece is one range of a prompt and its words.
type Piece struct {
	Range
	Words    string `json:"words,omitempty"`
	Withheld bool   `json:"withheld,omitempty"` // kept from the reader: only its length is told
}

// Show returns the prompt for a reader with this clearance, without the words
// of sources that keep is true of; nil keeps none back. A piece is as sensitive
// as its source, and the builder's own words are public, but for the fences of
// a prompt of which something is withheld.
func (p Prompt) Show(clearance label.Classification, keep func(*Source) bool) Shown {
	b := p.get()
	r := b.receipt.clone()
	kept := make([]bool, len(r.Sources))
	for i := range kept {
		kept[i] = r.Sources[i].level() > clearance || keep != nil && keep(&r.Sources[i])
	}
	s := Shown{Receipt: r, System: pieces(r.System, b.system, kept), Text: pieces(r.Text, b.text, kept)}
	if slices.ContainsFunc(s.System, withheld) || slices.ContainsFunc(s.Text, withheld) {
		hideFences(s.System)
		hideFences(s.Text)
	}
	return s
}

// Lower returns the prompt for a reader with a lower clearance, without the words
// that are above it as [Prompt.Show] leaves them out, and whether there were any.
// If there were none it returns s itself, and else what is not s's but its
// receipt.
func (s *Shown) Lower(clearance label.Classification) (lowered *Shown, hid bool) {
	above := func(p Piece) bool {
		return p.Words != "" && p.Source >= 0 && int(p.Source) < len(s.Receipt.Sources) && s.Receipt.Sources[p.Source].level() > clearance
	}
	if !slices.ContainsFunc(s.System, above) && !slices.ContainsFunc(s.Text, above) {
		return s, false
	}
	low := &Shown{Receipt: s.Receipt, System: slices.Clone(s.System), Text: slices.Clone(s.Text)}
	for _, pieces := range [...][]Piece{low.System, low.Text} {
		for i := range pieces {
			if p := &pieces[i]; above(*p) {
				p.Words, p.Withheld = "", true
			}
		}
		hideFences(pieces)
	}
	return low, true
}

// level is how sensitive a source is, also where it was lowered for its reader.
func (s *Source) level() label.Classification {
	if s.Decision == nil {
		return s.Classification
	}
	return s.Classification.Join(s.Decision.Before)
}

// Bytes returns the length of both texts of the prompt, also of what is kept
// from the reader.
func (s *Shown) Bytes() int { return length(s.System) + length(s.Text) }

func length(pieces []Piece) int {
	if len(pieces) == 0 {
		return 0
	}
	return int(pieces[len(pieces)-1].End)
}

func withheld(p Piece) bool { return p.Withheld }

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

func pieces(ranges []Range, text string, kept []bool) []Piece {
	out := make([]Piece, len(ranges))
	for i, at := range ranges {
		out[i] = Piece{Range: at}
		if at.Source >= 0 && kept[at.Source] {
			out[i].Withheld = true
			continue
		}
		out[i].Words = text[at.Start:at.End]
	}
	return out
}
