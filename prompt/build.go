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
	if overLimits(&b, p) {
		var err error
		if p, err = fit(&b, len(p.text)); err != nil {
			return Prompt{}, nil, err
		}
	}
	return Prompt{p}, p.receipt, nil
}

// overLimits reports whether a prompt of b is too large, or has too much context.
func overLimits(b *brief.Brief, p *built) bool {
	if len(p.text) > brief.Limit(b.MaxBytes) {
		return true
	}
	if b.MaxContext == 0 {
		return false
	}
	texts, fixed, _, _ := contextOf(b)
	return texts+fixed > b.MaxContext
}

// contextOf measures the context of a prompt: the sum of its texts, that of what is never cut, and
// the size of each text. Lines are the texts that may be part of a line of the builder.
func contextOf(b *brief.Brief) (texts, fixed int, sizes []int, lines int) {
	for at, list := range listsOf(b) {
		for i := range *list {
			s := &(*list)[i]
			if isHidden(s.Decision()) {
				continue
			}
			if at == listMessages || at == listFailed || at == listSkipped {
				lines++
			}
			text := s.Payload().Text()
			n := len(text)
			if s.Source().Kind == handoff.Memory {
				n = len(oneLine.Replace(text))
			}
			texts, fixed, sizes = texts+n, fixed+s.Payload().Size()-len(text), append(sizes, n)
		}
	}
	return texts, fixed, sizes, lines
}

// fit writes the prompt, which had this size, with every text cut to one
// common length under which the whole fits.
func fit(b *brief.Brief, size int) (*built, error) {
	const mark, fence = 32, 256 // bytes that the mark of a cut may add, and the fence that a marked line needs
	if b.Whole {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d", brief.ErrTooLarge, size, brief.Limit(b.MaxBytes))
	}
	texts, fixed, sizes, lines := contextOf(b)
	room := brief.Limit(b.MaxBytes) - (size - texts) - mark*len(sizes) - fence*lines
	if b.MaxContext > 0 {
		if fixed > b.MaxContext {
			return nil, fmt.Errorf("%w: the structured values of its context have %d bytes, at most %d", brief.ErrTooLarge, fixed, b.MaxContext)
		}
		room = min(room, b.MaxContext-fixed)
	}
	if room >= 0 {
		// The first limit is enough except for memory, whose line breaks grow.
		for limit := brief.CommonLength(sizes, room); limit > 0; limit /= 2 {
			lowered := lower(*b, limit)
			if p := render(&lowered); !overLimits(&lowered, p) {
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
