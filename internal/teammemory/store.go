package teammemory

import (
	"context"
	"fmt"
	"slices"
	"sync"
)

// A Store keeps the entries of a memory beyond a run: a map from agent and key to
// the last entry that was put. It decides nothing. Test an implementation with the
// suite of package storetest. A store is safe for concurrent use. What leaves the
// process is [Entry.Record]; an Entry itself marshals without what it holds. Called
// after ctx has ended, both methods do nothing and return an error that wraps that
// of ctx.
type Store interface {
	// Put keeps e, in place of the entry with the same agent and key if there is
	// one. Agents and keys differ if their bytes do.
	Put(ctx context.Context, e Entry) error

	// All returns every entry once, whole, in any order. The slice is the caller's.
	All(ctx context.Context) ([]Entry, error)
}

// A MapStore keeps entries for as long as this process lives, for runs that
// follow each other. The zero value is an empty store.
type MapStore struct {
	mu   sync.RWMutex // guards both
	list []Entry
	at   map[place]int // index into list
}

// NewMapStore returns an empty store.
func NewMapStore() *MapStore { return &MapStore{at: map[place]int{}} }

// Put keeps e. It fails only if ctx has ended.
func (s *MapStore) Put(ctx context.Context, e Entry) error {
	if err := alive(ctx, s != nil); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.at == nil {
		s.at = map[place]int{}
	}
	at := place{e.Agent, e.Key}
	if i, ok := s.at[at]; ok {
		s.list[i] = e
		return nil
	}
	s.at[at] = len(s.list)
	s.list = append(s.list, e)
	return nil
}

// All returns the entries in the order in which their keys first came. It fails
// only if ctx has ended.
func (s *MapStore) All(ctx context.Context) ([]Entry, error) {
	if err := alive(ctx, s != nil); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.list), nil
}

// alive returns an error for a nil or zero receiver, a nil context, and one that
// has ended.
func alive(ctx context.Context, made bool) error {
	switch {
	case !made:
		return fmt.Errorf("%w: it is nil or was not made with New", ErrInvalid)
	case ctx == nil:
		return fmt.Errorf("%w: the context is nil", ErrInvalid)
	}
	return ctx.Err()
}
