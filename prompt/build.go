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
func Build(b Brief) (Prompt, error) {
	if err := check(&b); err != nil {
		return Prompt{}, err
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

// lower cuts every text of b to one common length so that the whole fits.
func lower(b Brief, size int) (Brief, error) {
	groups := []*[]handoff.Sealed{&b.Inputs, &b.Dependencies, &b.Memory, &b.Messages}
	var sizes []int
	for _, g := range groups {
		for _, s := range *g {
			sizes = append(sizes, len(s.Payload().Text()))
		}
	}
	const mark, fence = 32, 256 // bytes that the mark of a cut may add, and the fence that a marked message needs
	texts := 0
	for _, n := range sizes {
		texts += n
	}
	room := MaxBytes - (size - texts) - mark*len(sizes) - fence*len(b.Messages)
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
