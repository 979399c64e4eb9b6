package prompt

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
)

// Build writes a prompt. It refuses context that was not sealed under the
// brief's contract ([handoff.ErrUnsealed]), and instructions that are too
// large ([ErrTooLarge]) or begin a line as only the builder may. Equal briefs
// give equal bytes.
func Build(b Brief) (Prompt, error) {
	if line, opener := Opener(b.Task.Description); line > 0 {
		return Prompt{}, fmt.Errorf("line %d of the description begins with %q, which only the builder may write", line, opener)
	}
	for _, group := range [...][]handoff.Sealed{b.Inputs, b.Dependencies, b.Memory, b.Messages} {
		for i := range group {
			if err := group[i].For(&b.Contract); err != nil {
				return Prompt{}, fmt.Errorf("%s %q: %w", group[i].Source().Kind, group[i].Source().Name, err)
			}
		}
	}
	p := render(&b)
	if excess := len(p.text) - MaxBytes; excess > 0 {
		lowered, err := lower(b, len(p.text))
		if err != nil {
			return Prompt{}, err
		}
		if p = render(&lowered); len(p.text) > MaxBytes {
			return Prompt{}, fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, len(p.text), MaxBytes)
		}
	}
	return Prompt{p}, nil
}

// lower cuts every text of b to one common length so that the whole fits.
func lower(b Brief, size int) (Brief, error) {
	groups := []*[]handoff.Sealed{&b.Inputs, &b.Dependencies, &b.Memory, &b.Messages}
	var sizes []int
	for _, g := range groups {
		for _, s := range *g {
			sizes = append(sizes, len(s.Payload().Text()))
		}
	}
	const mark = 32 // bytes that the mark of a cut may add to a fence
	texts := 0
	for _, n := range sizes {
		texts += n
	}
	room := MaxBytes - (size - texts) - mark*len(sizes)
	if room < 0 {
		return b, fmt.Errorf("%w: instructions and structured values have %d bytes, at most %d", ErrTooLarge, size-texts, MaxBytes)
	}
	limit := common(sizes, room)
	for _, g := range groups {
		cut := slices.Clone(*g)
		for i := range cut {
			cut[i] = cut[i].Lower(limit)
		}
		*g = cut
	}
	return b, nil
}

// common returns the largest limit under which the sizes, each cut to it, fit into room.
func common(sizes []int, room int) int {
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
