package trace

import (
	"errors"
	"slices"

	"github.com/runteam/runteam/internal/promptview"

	"github.com/runteam/runteam/prompt"
)

// Open sets the pieces of both texts of a prompt, with words from elsewhere. It ignores pieces
// that do not fit the sources of the prompt.
func (p *Prompt) Open(system, text []promptview.Piece) {
	open := Prompt{Shown: promptview.Shown{Receipt: new(prompt.Receipt), System: system, Text: text}}
	*open.Receipt = *p.Receipt
	open.Receipt.System, open.Receipt.Text = nil, nil
	if complete(&open); check(&open) == nil {
		p.Shown = open.Shown
	}
}

// complete sets the ranges of a receipt from the pieces of its prompt.
func complete(p *Prompt) {
	r := p.Receipt
	if r == nil || r.System != nil || r.Text != nil {
		return
	}
	ranges := func(pieces []promptview.Piece) (list []prompt.Range) {
		for i := range pieces {
			list = append(list, pieces[i].Range)
		}
		return list
	}
	r.System, r.Text = ranges(p.System), ranges(p.Text)
}

// check returns what is wrong with a prompt: its pieces must tile both texts, as its receipt
// says, and only pieces that are shown have words.
func check(p *Prompt) error {
	if p.Receipt == nil {
		return errors.New("its prompt has no receipt")
	}
	for _, text := range [...]struct {
		pieces []promptview.Piece
		ranges []prompt.Range
	}{{p.System, p.Receipt.System}, {p.Text, p.Receipt.Text}} {
		same := slices.EqualFunc(text.pieces, text.ranges, func(a promptview.Piece, b prompt.Range) bool { return a.Range == b })
		if !same || !tiled(text.pieces, len(p.Receipt.Sources)) {
			return errors.New("the pieces of its prompt do not fit together")
		}
	}
	return nil
}

func tiled(pieces []promptview.Piece, sources int) bool {
	end := int32(0)
	for i := range pieces {
		p := &pieces[i]
		words := int64(len(p.Words))
		switch {
		case p.Start != end || p.End < p.Start || p.End == p.Start && !p.Withheld || p.Source < -1 || int(p.Source) >= sources:
			return false
		case p.Withheld && words > 0, !p.Withheld && words != int64(p.End)-int64(p.Start):
			return false
		}
		end = p.End
	}
	return true
}
