package prompt

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
)

// Build writes a prompt. It refuses context that was not sealed under the
// brief's contract ([gate.ErrUnsealed]) or has no place where it stands,
// headings that are not one clean line, and instructions that are too large
// ([ErrTooLarge]) or begin a line as only the builder may. Equal briefs give
// equal bytes.
//
// The receipt is for whoever keeps the record: an agent that asks its prompt
// for it gets a copy, and so cannot change what is said of it.
func Build(b Brief) (Prompt, *Receipt, error) {
	if err := check(&b); err != nil {
		return Prompt{}, nil, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if err := uncut(&b); err != nil {
		return Prompt{}, nil, err
	}
	p := render(&b)
	if len(p.text) > b.limit() {
		var err error
		if p, err = fit(&b, len(p.text)); err != nil {
			return Prompt{}, nil, err
		}
	}
	return Prompt{p}, p.receipt, nil
}

func (b *Brief) limit() int { return Limit(b.MaxBytes) }

// Limit returns how many bytes a user message may have under a setting of
// [Brief].MaxBytes.
func Limit(setting int) int {
	if setting == 0 {
		return DefaultBytes
	}
	return min(setting, MaxBytes)
}

// fit writes the prompt, which had this size, with every text cut to one
// common length under which the whole fits.
func fit(b *Brief, size int) (*built, error) {
	const mark, fence = 32, 256 // bytes that the mark of a cut may add, and the fence that a marked line needs
	if b.Whole {
		return nil, fmt.Errorf("%w: it has %d bytes, at most %d", ErrTooLarge, size, b.limit())
	}
	texts, sizes := 0, []int(nil)
	for _, list := range b.lists() {
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
	if room := b.limit() - (size - texts) - mark*len(sizes) - fence*lines; room >= 0 {
		// The first limit holds, but for memory, whose line breaks grow.
		for limit := CommonLength(sizes, room); limit > 0; limit /= 2 {
			lowered := lower(*b, limit)
			if p := render(&lowered); len(p.text) <= b.limit() {
				return p, nil
			}
		}
	}
	return nil, fmt.Errorf("%w: instructions, headings and structured values have %d bytes, at most %d", ErrTooLarge, size-texts, b.limit())
}

// lower cuts every text of b to the limit.
func lower(b Brief, limit int) Brief {
	for _, list := range b.lists() {
		cut := slices.Clone(*list)
		for i := range cut {
			cut[i] = cut[i].Lower(limit)
		}
		*list = cut
	}
	return b
}

// CommonLength returns the largest length that texts of these sizes can be cut to
// so that all of them fit into room, which is not negative. It sorts sizes.
func CommonLength(sizes []int, room int) int {
	slices.Sort(sizes)
	for i, n := range sizes {
		left := len(sizes) - i
		if n*left > room {
			return room / left
		}
		room -= n
	}
	return MaxBytes
}
