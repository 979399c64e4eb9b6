package task

import (
	"fmt"
	"slices"
	"strings"
)

// A CycleError lists the tasks on a cycle, each depending on the next and the
// last on the first.
type CycleError struct {
	Path   []ID
	Titles []string // parallel to Path
}

// Error reads like `dependency cycle: a -> b -> a`, with titles. The middle of
// a long cycle is left out.
func (e *CycleError) Error() string {
	const head, tail = 5, 3
	names := e.Titles
	if len(names) != len(e.Path) {
		names = make([]string, len(e.Path))
		for i, id := range e.Path {
			names[i] = string(id)
		}
	}
	if len(names) == 0 {
		return ErrCycle.Error()
	}
	shown := slices.Clone(names)
	if len(names) > head+tail+1 {
		gap := fmt.Sprintf("(%d more)", len(names)-head-tail)
		shown = slices.Concat(names[:head], []string{gap}, names[len(names)-tail:])
	}
	return fmt.Sprintf("%v: %s", ErrCycle, strings.Join(append(shown, names[0]), " -> "))
}

// Unwrap returns [ErrCycle].
func (e *CycleError) Unwrap() error { return ErrCycle }
