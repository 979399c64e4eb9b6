package teammemory

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/task"
)

// SnapshotVersion is the version that [Memory.Snapshot] makes and [FromSnapshot] reads.
const SnapshotVersion = 1

// A record is an entry as it is stored, with its payload.
type record struct {
	Agent    string          `json:"agent"`
	Key      string          `json:"key"`
	Task     task.ID         `json:"task,omitempty"`
	Turn     int             `json:"turn"`
	TTLTurns int             `json:"ttlTurns,omitempty"`
	Seq      int             `json:"seq"`
	Envelope envelope.Record `json:"envelope"`
}

func (e *Entry) record() record {
	return record{e.Agent, e.Key, e.Task, e.Turn, e.TTLTurns, e.Seq, e.Envelope.Record()}
}

// entry returns the entry that r stores, with the labels and the digest of its
// envelope as they were. The gate checks whether that is still genuine, as at every
// other read.
func (r *record) entry() (Entry, error) {
	e := Entry{Agent: r.Agent, Key: r.Key, Task: r.Task, Turn: r.Turn, TTLTurns: r.TTLTurns, Seq: r.Seq}
	var err error
	if e.Envelope, err = r.Envelope.Envelope(); err == nil {
		err = e.check()
	}
	if err != nil {
		return Entry{}, fmt.Errorf("entry %q: %w", e.subject(), err)
	}
	return e, nil
}

// Record returns the stored form of e as JSON. It holds the payload, so it is data to
// keep, not a log. An entry without an envelope has none.
func (e Entry) Record() ([]byte, error) {
	if e.Envelope == nil {
		return nil, fmt.Errorf("%w: no envelope", ErrInvalid)
	}
	return json.Marshal(e.record())
}

// ReadRecord returns the entry that [Entry.Record] wrote. A record that no entry can
// come from is refused with [ErrInvalid], or as its envelope is.
func ReadRecord(data []byte) (Entry, error) {
	var r record
	if err := json.Unmarshal(data, &r); err != nil {
		return Entry{}, fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	return r.entry()
}

// A Snapshot is a memory as data: what could be read at a turn, in the order of
// its places. Like its records it holds payloads.
type Snapshot struct {
	Version int      `json:"version"`
	Turn    int      `json:"turn"` // tasks completed
	Entries []record `json:"entries"`
}

// Snapshot returns the memory as data, from which [FromSnapshot] makes an equal one.
func (m *Memory) Snapshot(ctx context.Context) (Snapshot, error) {
	list, turn, err := m.live(ctx, Everything())
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot memory: %w", err)
	}
	s := Snapshot{Version: SnapshotVersion, Turn: turn, Entries: make([]record, len(list))}
	for i := range list {
		s.Entries[i] = list[i].record()
	}
	return s, nil
}

// FromSnapshot returns a memory that continues where the snapshot was taken, over
// an empty store, or none, as of [New]. Its entries keep labels, digests, turns
// and places.
//
// Another version, an entry that no Writer could have written, that is from a
// later turn, out of order or there twice is refused with [ErrSnapshot] before
// anything is put. After an error of the store, what it holds is of no use.
func FromSnapshot(ctx context.Context, s Snapshot, store Store) (*Memory, error) {
	entries, err := s.entries()
	if err != nil {
		return nil, fmt.Errorf("restore memory: %w: %w", ErrSnapshot, err)
	}
	m := New(store)
	if err := m.restore(ctx, entries); err != nil {
		return nil, fmt.Errorf("restore memory: %w", err)
	}
	m.turn = s.Turn
	return m, nil
}

// entries checks the snapshot and returns what it holds.
func (s *Snapshot) entries() ([]Entry, error) {
	switch {
	case s.Version != SnapshotVersion:
		return nil, fmt.Errorf("version %d: this program reads %d", s.Version, SnapshotVersion)
	case s.Turn < 0 || s.Turn > maxCount:
		return nil, fmt.Errorf("turn %d: turns count from 0 to %d", s.Turn, maxCount)
	}
	list := make([]Entry, len(s.Entries))
	there := make(map[place]bool, len(list))
	last := 0
	for i := range list {
		e, err := s.Entries[i].entry()
		at := place{e.Agent, e.Key}
		switch {
		case err != nil:
			return nil, err
		case e.Turn > s.Turn:
			return nil, fmt.Errorf("entry %q: from turn %d, after the last, %d", e.subject(), e.Turn, s.Turn)
		case e.Seq <= last:
			return nil, fmt.Errorf("entry %q: place %d after place %d", e.subject(), e.Seq, last)
		case there[at]:
			return nil, fmt.Errorf("entry %q: it is there twice", e.subject())
		}
		list[i], there[at], last = e, true, e.Seq
	}
	return list, nil
}

// restore fills the memory and its store, which must be empty.
func (m *Memory) restore(ctx context.Context, list []Entry) error {
	if err := m.lock(ctx); err != nil {
		return err
	}
	defer m.unlock()
	if len(m.list) > 0 {
		return errors.New("the store holds entries already: give an empty one, or go on from it with New")
	}
	for _, e := range list {
		if m.store != nil {
			if err := m.store.Put(ctx, e); err != nil {
				return fmt.Errorf("entry %q: %w", e.subject(), err)
			}
		}
		m.keep(e)
	}
	return nil
}
