package prompt

import "github.com/runteam/runteam/label"

// Shown is a prompt as a reader of the record may see it: piece by piece, in
// the order of the bytes. Pieces above the reader's clearance have no words.
type Shown struct {
	Receipt *Receipt `json:"receipt"`
	System  []Piece  `json:"system,omitempty"`
	Text    []Piece  `json:"text,omitempty"`
}

// A Piece is one range of a prompt and its words.
type Piece struct {
	Range
	Words    string `json:"words,omitempty"`
	Withheld bool   `json:"withheld,omitempty"` // above the reader's clearance: only its length is told
}

// Show returns the prompt for a reader with this clearance. A piece is as
// sensitive as its source, and the builder's own words are public.
func (p Prompt) Show(clearance label.Classification) Shown {
	b := p.get()
	r := b.receipt.clone()
	return Shown{Receipt: r, System: pieces(r, r.System, b.system, clearance), Text: pieces(r, r.Text, b.text, clearance)}
}

func pieces(r *Receipt, ranges []Range, text string, clearance label.Classification) []Piece {
	out := make([]Piece, len(ranges))
	for i, at := range ranges {
		out[i] = Piece{Range: at}
		if at.Source >= 0 && r.Sources[at.Source].Classification > clearance {
			out[i].Withheld = true
			continue
		}
		out[i].Words = text[at.Start:at.End]
	}
	return out
}
