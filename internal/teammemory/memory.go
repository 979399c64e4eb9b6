// Package teammemory keeps what a team knows, under the name of the agent that wrote it.
//
// A [Memory] hands out two kinds of handles: a [Writer], which cannot read, and
// a [Reader], which cannot write. A [Store] behind it makes what was written
// outlast the run. Nothing here opens an envelope: a reader gets entries as they
// were written, and takes each through the gate before an agent sees it.
//
// Time is counted in turns. A turn is one successfully completed task: each
// [Writer.WriteResult] begins the next. An entry that may be read for n turns
// can be read at the turn at which it was written and until n further tasks
// have completed. This package reads no clock: when an envelope
// itself expires, the gate withholds it.
package teammemory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
)

// A Memory is the shared memory of one run. Memories are made by [New] and
// [FromSnapshot], are safe for concurrent use, and start no goroutine.
//
// An entry that is written again under the same agent and key is replaced, and
// the new one takes over the place of the old one: neither the order of an
// agent's entries nor that of the agents changes. Where the turns of the old
// one were over, it counts as gone, and the new one goes last.
//
// An entry whose turns are over is not shown any more. It stays in the store
// until its key is written again, but is left out of snapshots.
type Memory struct {
	store Store // nil means none

	busy chan struct{} // full while someone writes, which may take the store a while; guards the next
	last int           // the highest Seq given away

	mu    sync.RWMutex // guards what follows, which only the holder of busy changes
	ready bool         // the store was read
	turn  int          // tasks completed
	list  []Entry      // in the order of their places, among them some that are gone
	at    map[place]int
	sweep int // how long the list may become before it is looked through
}

// A place is the full key of an entry, in two parts.
type place struct{ agent, key string }

// New returns a memory over a store; nil keeps everything in this process and
// for as long as the memory lives.
//
// The store is read once, when the memory is first used; from then on everything
// written is put into it. What it holds already belongs to the memory, and turns
// continue after the last one in it. It serves one memory at a time: what others
// put into it meanwhile is not read in this run.
func New(store Store) *Memory {
	return &Memory{store: store, busy: make(chan struct{}, 1), ready: store == nil, at: map[place]int{}}
}

// Writer returns a handle that can only write.
func (m *Memory) Writer() Writer { return Writer{sink: m} }

// Reader returns a handle that can only read.
func (m *Memory) Reader() Reader { return Reader{source: m} }

// lock waits until no other goroutine writes, or ctx ends, and sees to it that the
// store was read.
func (m *Memory) lock(ctx context.Context) error {
	if err := alive(ctx, m != nil && m.busy != nil); err != nil {
		return err
	}
	select {
	case m.busy <- struct{}{}:
	default: // a select of two costs much more than one that need not wait
		select {
		case m.busy <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	loaded := false
	defer func() { // also if the store panics, or ends the goroutine
		if !loaded {
			m.unlock()
		}
	}()
	if err := m.load(ctx); err != nil {
		return err
	}
	loaded = true
	return nil
}

func (m *Memory) unlock() { <-m.busy }

// load takes over what the store holds, the first time.
func (m *Memory) load(ctx context.Context) error {
	if m.ready {
		return nil
	}
	all, err := m.store.All(ctx)
	if err != nil {
		return err
	}
	if err := admit(all); err != nil {
		return err
	}
	slices.SortFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Key, b.Key))
	})
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range all {
		m.keep(e)
	}
	m.ready = true
	return nil
}

// admit checks what comes from a store, which can be written to from outside:
// nothing is believed that a Writer would have refused.
func admit(all []Entry) error {
	there := make(map[place]bool, len(all))
	for i := range all {
		e := &all[i]
		at, err := place{e.Agent, e.Key}, e.check()
		if err == nil && there[at] {
			err = fmt.Errorf("%w: it is there twice", ErrInvalid)
		}
		if err != nil {
			return fmt.Errorf("entry %q in the store: %w", e.subject(), err)
		}
		there[at] = true
	}
	return nil
}

// put writes a checked entry, after so many turns more.
func (m *Memory) put(ctx context.Context, e Entry, turns int) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.unlock()
	e.Turn = m.turn + turns
	if i, ok := m.at[place{e.Agent, e.Key}]; ok && !m.list[i].expired(e.Turn) {
		e.Seq = m.list[i].Seq
	} else {
		m.last++ // also if the store fails, for it may have kept the entry all the same
		e.Seq = m.last
	}
	if m.store != nil {
		if err := m.store.Put(ctx, e); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.keep(e)
	return nil
}

// keep gives an entry its place in the list.
func (m *Memory) keep(e Entry) {
	m.turn, m.last = max(m.turn, e.Turn), max(m.last, e.Seq)
	at := place{e.Agent, e.Key}
	if i, ok := m.at[at]; ok && m.list[i].Seq == e.Seq {
		m.list[i] = e
		return
	}
	if len(m.list) >= m.sweep {
		m.tidy()
		m.sweep = 2*len(m.list) + 64 // so that tidying costs each entry little
	}
	m.at[at] = len(m.list)
	m.list = append(m.list, e)
}

// tidy removes the entries that have expired.
func (m *Memory) tidy() {
	before := len(m.list)
	m.list = slices.DeleteFunc(m.list, func(e Entry) bool { return e.expired(m.turn) })
	if len(m.list) == before {
		return
	}
	clear(m.at)
	for i, e := range m.list {
		m.at[place{e.Agent, e.Key}] = i
	}
}

// live returns the entries that a filter shows and whose turns are not over, in
// the order of their places, and the turn for which that holds. It waits for
// writers only if the store was not read yet.
func (m *Memory) live(ctx context.Context, f Filter) (list []Entry, turn int, err error) {
	if err := alive(ctx, m != nil && m.busy != nil); err != nil {
		return nil, 0, err
	}
	list, turn, ready := m.now()
	if !ready {
		if err := m.lock(ctx); err != nil {
			return nil, 0, err
		}
		m.unlock()
		list, turn, _ = m.now()
	}
	// Whether the filter shows an entry is for the caller's code to say, which
	// may write to this memory: so there is no lock here any more.
	return slices.DeleteFunc(list, func(e Entry) bool { return e.expired(turn) || f == nil || !f(e.Task) }), turn, nil
}

// now returns a copy of the list at one turn.
func (m *Memory) now() (list []Entry, turn int, ready bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return slices.Clone(m.list), m.turn, m.ready
}
