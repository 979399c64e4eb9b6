// Package sharedmem keeps what a team knows, under the name of the agent that wrote it.
//
//	memory := sharedmem.New(nil)
//	err := memory.Write(ctx, "intake", "seen", note, 3)
//	entries, err := memory.Entries(ctx, sharedmem.Everything())
//
// Nothing here opens an envelope: a run takes each entry through the gate before an
// agent sees it. A program that only wants a team to remember something across runs
// gives the team a [Store].
//
// Time is counted in turns. A turn is one successfully completed task, so each
// [Memory.WriteResult] begins the next one. An entry for n turns can be read until n
// further tasks have completed.
package sharedmem

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/task"
)

// The conditions that this package reports. Its errors wrap these.
var (
	ErrInvalid  = teammemory.ErrInvalid  // an invalid entry
	ErrSnapshot = teammemory.ErrSnapshot // an invalid snapshot
)

// An Entry is one thing that the team knows: an envelope with a place. It is the result
// of a task, or else a note. It prints, and marshals, without what its envelope holds.
type Entry = teammemory.Entry

// ReadRecord returns the entry that [Entry.Record] wrote. Invalid entries return
// [ErrInvalid].
func ReadRecord(record []byte) (Entry, error) { return teammemory.ReadRecord(record) }

// A Store keeps the entries of a memory beyond a run: a map from agent and key
// to the last entry that was put. It decides nothing, and is safe for concurrent use.
// What leaves the process is [Entry.Record]. Called after ctx has ended, both methods do
// nothing and return an error that wraps that of ctx. Package storetest has a test suite
// for stores.
type Store interface {
	// Put keeps e, in place of the entry with the same agent and key if there is
	// one. Agents and keys differ if their bytes do.
	Put(ctx context.Context, e Entry) error

	// All returns every entry once, whole, in any order. The slice is the caller's.
	All(ctx context.Context) ([]Entry, error)
}

// NewMapStore returns an empty store that keeps entries for as long as the process lives.
func NewMapStore() Store { return teammemory.NewMapStore() }

// A Filter selects entries by the task whose result they are. The task of
// a note is empty. A nil filter selects nothing.
type Filter func(task.ID) bool

// Everything selects all entries.
func Everything() Filter { return Filter(teammemory.Everything()) }

// Only selects the results of these tasks and no notes. Without IDs it selects nothing.
func Only(ids ...task.ID) Filter { return Filter(teammemory.Only(ids...)) }

// A Memory is the shared memory of one run. It is safe for concurrent use.
type Memory struct{ m *teammemory.Memory }

// New returns a memory over a store, which serves one memory at a time; nil keeps
// everything in this process. Entries that the store holds belong to the memory.
func New(store Store) *Memory { return &Memory{teammemory.New(store)} }

// FromSnapshot restores a memory from a snapshot, in an empty store or, if store is nil, in
// this process. Invalid snapshots return [ErrSnapshot].
func FromSnapshot(ctx context.Context, snapshot []byte, store Store) (*Memory, error) {
	var s teammemory.Snapshot
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return nil, fmt.Errorf("restore memory: %w: %w", ErrSnapshot, err)
	}
	m, err := teammemory.FromSnapshot(ctx, s, store)
	if err != nil {
		return nil, err
	}
	return &Memory{m}, nil
}

// Snapshot returns the entries that can be read now as JSON, for [FromSnapshot]. Do not log
// it: it contains the payloads.
func (m *Memory) Snapshot(ctx context.Context) ([]byte, error) {
	s, err := m.memory().Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// Write keeps a note of an agent, or of the user (handoff.User), under a key for a number of
// turns; zero means without end. A note under that key is replaced. The agent must be
// the producer of the envelope.
func (m *Memory) Write(ctx context.Context, agent, key string, e *envelope.Envelope, ttlTurns int) error {
	return m.memory().Writer().Write(ctx, agent, key, e, ttlTurns)
}

// WriteResult keeps the result of a task that has completed, which the envelope names,
// under the key `task:<id>:result`, and begins the next turn.
func (m *Memory) WriteResult(ctx context.Context, agent string, e *envelope.Envelope, ttlTurns int) error {
	return m.memory().Writer().WriteResult(ctx, agent, e, ttlTurns)
}

// Entries returns what a filter selects: agents in the order of their first entry, and the
// entries of each agent in the order in which they were written.
func (m *Memory) Entries(ctx context.Context, f Filter) ([]Entry, error) {
	return m.memory().Reader().Entries(ctx, teammemory.Filter(f))
}

// Summary returns a digest of what a filter selects, in the layout of open-multi-agent:
//
//	## Shared Team Memory
//
//	### <agent>
//	- <key>: <value>
//
// Show returns what the reader may see of an entry; ok is false for what is withheld.
// Values above 200 UTF-16 units are cut. Do not put this text into a prompt: values are not
// escaped.
func (m *Memory) Summary(ctx context.Context, f Filter, show func(Entry) (text string, ok bool, err error)) (string, error) {
	return m.memory().Reader().Summary(ctx, teammemory.Filter(f), show)
}

// memory returns nil for a nil Memory, which every operation refuses.
func (m *Memory) memory() *teammemory.Memory {
	if m == nil {
		return nil
	}
	return m.m
}
