package prompt

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/task"
)

// Build writes a prompt. It refuses context that was not sealed under the
// brief's contract ([handoff.ErrUnsealed]) or stands in the wrong list,
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
	p := render(&b)
	if len(p.text) > MaxBytes {
		var err error
		if p, err = fit(&b, len(p.text)); err != nil {
			return Prompt{}, nil, err
		}
	}
	return Prompt{p}, p.receipt, nil
}

func check(b *Brief) error {
	if b.Task == nil || b.Task.ID != b.Contract.Task {
		return fmt.Errorf("the contract is for another task: %w", handoff.ErrUnsealed)
	}
	if err := task.CheckLine(b.Task.Title); err != nil {
		return fmt.Errorf("the task's title: %w", err)
	}
	if line, opener := Opener(b.Task.Description); line > 0 {
		return fmt.Errorf("line %d of the description begins with %q, which only the builder may write", line, opener)
	}
	for i, group := range [...][]handoff.Sealed{b.Inputs, b.Dependencies, b.Memory, b.Messages} {
		kind := [...]handoff.SourceKind{handoff.Input, handoff.Dependency, handoff.Memory, handoff.Message}[i]
		for j := range group {
			if err := checkSealed(&group[j], kind, &b.Contract); err != nil {
				return fmt.Errorf("%s %q: %w", group[j].Source().Kind, group[j].Source().Name, err)
			}
		}
	}
	return nil
}

// checkSealed lets through what was sealed for this prompt, belongs into this
// list, and has no structure in the words that the builder writes unfenced.
func checkSealed(s *handoff.Sealed, kind handoff.SourceKind, k *handoff.Contract) error {
	if err := s.For(k); err != nil {
		return err
	}
	if s.Source().Kind != kind {
		return fmt.Errorf("it stands among the context of another kind: %s", kind)
	}
	if status := s.Status(); status != "" && !status.Valid() {
		return fmt.Errorf("there is no status %q", status)
	}
	from := s.Decision().From
	if strings.ContainsRune(from, '"') { // it is written between quotes
		return fmt.Errorf("its producer's name has a quote: %w", task.ErrName)
	}
	for _, words := range [...]string{s.Title(), s.Assignee(), from} {
		if err := task.CheckLine(words); err != nil {
			return fmt.Errorf("its heading: %w", err)
		}
	}
	return nil
}

// fit writes the prompt, which had this size, with every text cut to one
// common length under which the whole fits.
func fit(b *Brief, size int) (*built, error) {
	const mark, fence = 32, 256 // bytes that the mark of a cut may add, and the fence that a marked message needs
	texts, sizes := 0, []int(nil)
	for _, group := range [...][]handoff.Sealed{b.Inputs, b.Dependencies, b.Memory, b.Messages} {
		for i := range group {
			n := len(group[i].Payload().Text())
			if group[i].Source().Kind == handoff.Memory {
				n = len(oneLine.Replace(group[i].Payload().Text()))
			}
			texts, sizes = texts+n, append(sizes, n)
		}
	}
	if room := MaxBytes - (size - texts) - mark*len(sizes) - fence*len(b.Messages); room >= 0 {
		// The first limit holds, but for memory, whose line breaks grow.
		for limit := common(sizes, room); limit > 0; limit /= 2 {
			lowered := lower(*b, limit)
			if p := render(&lowered); len(p.text) <= MaxBytes {
				return p, nil
			}
		}
	}
	return nil, fmt.Errorf("%w: instructions, headings and structured values have %d bytes, at most %d", ErrTooLarge, size-texts, MaxBytes)
}

// lower cuts every text of b to the limit.
func lower(b Brief, limit int) Brief {
	for _, group := range [...]*[]handoff.Sealed{&b.Inputs, &b.Dependencies, &b.Memory, &b.Messages} {
		cut := slices.Clone(*group)
		for i := range cut {
			cut[i] = cut[i].Lower(limit)
		}
		*group = cut
	}
	return b
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
