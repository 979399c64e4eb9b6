package mailbox

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A roster is the names of a team's agents.
type roster struct {
	names []string
	index map[string]int
	each  []int                        // the index of each agent
	ways  map[way]label.Classification // along which agents may write, and the highest label of what they write
}

// newRoster reports everything that is wrong with the names.
func newRoster(names []string) (roster, error) {
	if len(names) == 0 {
		return roster{}, fmt.Errorf("%w roster: it is empty; name at least one agent", ErrInvalid)
	}
	r := roster{names: slices.Clone(names), index: make(map[string]int, len(names))}
	folded := make(map[string]string, len(names))
	var errs []error
	for i, name := range names {
		err := naming.CheckName(name)
		if first, twice := folded[strings.ToLower(name)]; twice {
			err = fmt.Errorf("%w of %q: names are not case-sensitive", task.ErrDuplicate, first)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%w roster: agent %d, %.60q: %w", ErrInvalid, i+1, name, err))
			continue
		}
		folded[strings.ToLower(name)], r.index[name] = name, i
		r.each = append(r.each, i)
	}
	return r, errors.Join(errs...)
}

// reader returns the index of an agent, who alone can read.
func (r *roster) reader(name string) (int, error) {
	i, ok := r.index[name]
	switch {
	case ok:
		return i, nil
	case name == handoff.User:
		return 0, fmt.Errorf("%w reader %q: the caller has no inbox; write the name of an agent", ErrUnknown, name)
	case name == Everyone:
		return 0, fmt.Errorf("%w reader %q: to write to all, broadcast", ErrUnknown, name)
	}
	return 0, fmt.Errorf("%w agent %.60q: %s", ErrUnknown, name, hint(name, r.names))
}

// party checks the name of someone who can write: an agent, or the caller.
func (r *roster) party(name string) error {
	if _, ok := r.index[name]; ok || name == handoff.User {
		return nil
	}
	known := append(slices.Clone(r.names), handoff.User)
	return fmt.Errorf("%w agent %.60q: %s", ErrUnknown, name, hint(name, known))
}

// pair checks the names of two who can write to each other.
func (r *roster) pair(one, other string) error {
	if err := errors.Join(r.party(one), r.party(other)); err != nil {
		return err
	}
	if one == other {
		return fmt.Errorf("%w: %q twice: write the names of two", ErrInvalid, one)
	}
	return nil
}

// others returns the indexes of all agents but one.
func (r *roster) others(name string) []int {
	list := make([]int, 0, len(r.names))
	for i, other := range r.names {
		if other != name {
			list = append(list, i)
		}
	}
	return list
}

// hint says what to write instead of a name. It does not list the roster, since
// the reader of an error need not know all names.
func hint(name string, known []string) string {
	if near, ok := naming.Nearest(name, known); ok {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "write the name of an agent of the roster"
}
