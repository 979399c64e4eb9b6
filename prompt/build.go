package prompt

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
)

// Build returns the prompt of a brief and its receipt. Equal briefs give equal bytes. It
// returns an error
//
//   - if context was not sealed under the contract of the brief ([gate.ErrUnsealed]), or is in
//     the wrong field of it,
//   - if a heading is not one clean line,
//   - if the instructions are too large ([brief.ErrTooLarge]), or if one of their lines could
//     be mistaken for the builder's own.
//
// The receipt is for the record of the run. [Prompt.Receipt] returns a copy, so an
// agent cannot change it.
func Build(b brief.Brief) (Prompt, *Receipt, error) {
	if err := check(&b); err != nil {
		return Prompt{}, nil, fmt.Errorf("%w: %w", brief.ErrInvalid, err)
	}
	if err := uncut(&b); err != nil {
		return Prompt{}, nil, err
	}
	p := render(&b)
	if len(p.text) > brief.Limit(b.MaxBytes) {
		var err error
		if p, err = fit(&b, len(p.text)); err != nil {
			return Prompt{}, nil, err
		}
	}
	return Prompt{p}, p.receipt, nil
}

// fit writes the prompt, which had this size, with every text cut to one
// common length under which the whole fits.
func fit(b *brief.Brief, size int) (*built, error) {
	const mark, fence = 32, 256 // bytes that the mark of a cut may add, and the fence that a marked line needs
	if b.Whole {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d", brief.ErrTooLarge, size, brief.Limit(b.MaxBytes))
	}
	texts, sizes := 0, []int(nil)
	for _, list := range listsOf(b) {
		for i := range *list {
			s := &(*list)[i]
			n := len(s.Payload().Text())
			if s.Source().Kind == handoff.Memory {
				n = len(oneLine.Replace(s.Payload().Text()))
			}
			texts, sizes = texts+n, append(sizes, n)
		}
	}
	lines := len(b.Messages) + len(b.Failed) + len(b.Skipped)
	if room := brief.Limit(b.MaxBytes) - (size - texts) - mark*len(sizes) - fence*lines; room >= 0 {
		// The first limit is enough except for memory, whose line breaks grow.
		for limit := brief.CommonLength(sizes, room); limit > 0; limit /= 2 {
			lowered := lower(*b, limit)
			if p := render(&lowered); len(p.text) <= brief.Limit(b.MaxBytes) {
				return p, nil
			}
		}
	}
	return nil, fmt.Errorf("%w: instructions, headings and structured values have %d bytes, at most %d", brief.ErrTooLarge, size-texts, brief.Limit(b.MaxBytes))
}

// lower cuts every text of b to the limit.
func lower(b brief.Brief, limit int) brief.Brief {
	for _, list := range listsOf(&b) {
		cut := slices.Clone(*list)
		for i := range cut {
			cut[i] = cut[i].Lower(limit)
		}
		*list = cut
	}
	return b
}
