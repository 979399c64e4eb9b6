package mailbox

import (
	"errors"
	"fmt"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
)

// ErrNoEdge reports a message of an agent to one to which no edge leads, or above what the edge carries.
var ErrNoEdge = errors.New("no edge")

// connect checks the edges and stores the ways that they open.
func (r *roster) connect(edges []handoff.Edge) error {
	r.ways = make(map[way]label.Classification, len(edges))
	var errs []error
	for k := range edges {
		e := &edges[k]
		from, unknown := r.reader(e.From)
		to, err := r.reader(e.To)
		if unknown == nil && err == nil && from == to {
			err = fmt.Errorf("%w: %q twice: name two agents", ErrInvalid, e.From)
		}
		if err = errors.Join(unknown, err); err != nil {
			errs = append(errs, fmt.Errorf("edge %d: %w", k+1, err))
			continue
		}
		r.ways[way{from, to}] = max(e.Max(), r.ways[way{from, to}])
		if e.Bidirectional {
			r.ways[way{to, from}] = max(e.Max(), r.ways[way{to, from}])
		}
	}
	return errors.Join(errs...)
}

// A way leads from an agent to another one, by their indexes.
type way struct{ from, to int }

// sends checks that a sender may send a message with this label to the readers. The user may send
// to everyone.
func (r *roster) sends(from string, level label.Classification, readers []int) error {
	i, isAgent := r.index[from]
	if !isAgent {
		return nil
	}
	for _, to := range readers {
		most, ok := r.ways[way{i, to}]
		switch {
		case !ok:
			return fmt.Errorf("%w leads from %q to %q", ErrNoEdge, from, r.names[to])
		case level > most:
			return fmt.Errorf("%w leads from %q to %q for what is %v: at most %v", ErrNoEdge, from, r.names[to], level, most)
		}
	}
	return nil
}

// neighbors returns the indexes of those to whom somebody may write.
func (r *roster) neighbors(name string) []int {
	list := r.others(name)
	i, isAgent := r.index[name]
	if !isAgent {
		return list
	}
	return slices.DeleteFunc(list, func(to int) bool {
		_, ok := r.ways[way{i, to}]
		return !ok
	})
}
