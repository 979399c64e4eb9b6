package teammemory_test

import (
	"context"
	"errors"
	"math"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/teammemory"
)

var errDisk = errors.New("the disk is full")

// failing returns a store whose methods fail while the switches say so.
func failing(put, all *bool) teammemory.Store {
	return faulty{
		MapStore: teammemory.NewMapStore(),
		put: func(context.Context, *teammemory.Entry) error {
			if *put {
				return errDisk
			}
			return nil
		},
		all: func(_ context.Context, list []teammemory.Entry, err error) ([]teammemory.Entry, error) {
			if *all {
				return list, errDisk
			}
			return list, err
		},
	}
}

func TestFailingStore(t *testing.T) {
	t.Parallel()
	snapshot := func(t *testing.T) teammemory.Snapshot {
		m := teammemory.New(nil)
		note(t, m, "ana", "k", "x", 0)
		s, err := m.Snapshot(t.Context())
		require.NoError(t, err)
		return s
	}
	tests := []struct {
		name     string
		put, all bool
		do       func(t *testing.T, m *teammemory.Memory, s teammemory.Store) error
		want     string
	}{
		{"write", true, false, func(t *testing.T, m *teammemory.Memory, _ teammemory.Store) error {
			return m.Writer().Write(t.Context(), "ana", "k", said(t, "ana", "", envelope.Text("x")), 0)
		}, `write memory "ana/k": the disk is full`},
		{"write result", true, false, func(t *testing.T, m *teammemory.Memory, _ teammemory.Store) error {
			return m.Writer().WriteResult(t.Context(), "ana", said(t, "ana", "t1", envelope.Text("x")), 0)
		}, `write memory "ana/task:t1:result": the disk is full`},
		{"read before the first write", false, true, func(t *testing.T, m *teammemory.Memory, _ teammemory.Store) error {
			return m.Writer().Write(t.Context(), "ana", "k", said(t, "ana", "", envelope.Text("x")), 0)
		}, `write memory "ana/k": the disk is full`},
		{"read", false, true, func(t *testing.T, m *teammemory.Memory, _ teammemory.Store) error {
			list, err := m.Reader().Entries(t.Context(), teammemory.Everything())
			require.Empty(t, list)
			return err
		}, `read memory: the disk is full`},
		{"summary", false, true, func(t *testing.T, m *teammemory.Memory, _ teammemory.Store) error {
			digest, err := m.Reader().Summary(t.Context(), teammemory.Everything(), pass)
			require.Empty(t, digest)
			return err
		}, `read memory: the disk is full`},
		{"snapshot", false, true, func(t *testing.T, m *teammemory.Memory, _ teammemory.Store) error {
			s, err := m.Snapshot(t.Context())
			require.Zero(t, s)
			return err
		}, `snapshot memory: the disk is full`},
		{"restore", true, false, func(t *testing.T, _ *teammemory.Memory, s teammemory.Store) error {
			m, err := teammemory.FromSnapshot(t.Context(), snapshot(t), s)
			require.Nil(t, m)
			return err
		}, `restore memory: entry "ana/k": the disk is full`},
		{"restore, reading first", false, true, func(t *testing.T, _ *teammemory.Memory, s teammemory.Store) error {
			m, err := teammemory.FromSnapshot(t.Context(), snapshot(t), s)
			require.Nil(t, m)
			return err
		}, `restore memory: the disk is full`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store := failing(&tt.put, &tt.all)
			m := teammemory.New(store)
			err := tt.do(t, m, store)
			require.ErrorIs(t, err, errDisk)
			require.EqualError(t, err, tt.want)

			tt.put, tt.all = false, false // and it works again
			require.Empty(t, lines(t, m, teammemory.Everything()))
			require.Zero(t, turn(t, m), "no turn has begun")
			result(t, m, "bob", "t2", "y", 0)
			require.Equal(t, []string{"bob/task:t2:result=y"}, lines(t, m, teammemory.Everything()))
			require.Equal(t, 1, turn(t, m))
		})
	}
}

// TestStoreThatFailsAfterKeeping checks that what a store kept although it failed
// is unknown to this run, shares its place with nobody, and counts as one turn
// when it is written again.
func TestStoreThatFailsAfterKeeping(t *testing.T) {
	t.Parallel()
	inner := teammemory.NewMapStore()
	failing := true
	m := teammemory.New(faulty{MapStore: inner, put: func(ctx context.Context, e *teammemory.Entry) error {
		if !failing {
			return nil
		}
		return errors.Join(inner.Put(ctx, *e), errDisk)
	}})
	require.ErrorIs(t, m.Writer().WriteResult(t.Context(), "ana", said(t, "ana", "t1", envelope.Text("1")), 0), errDisk)
	failing = false
	note(t, m, "bob", "k", "2", 0)
	require.Equal(t, []string{"bob/k=2"}, lines(t, m, teammemory.Everything()))
	require.Equal(t, []string{"ana/task:t1:result=1", "bob/k=2"}, lines(t, teammemory.New(inner), teammemory.Everything()))
	result(t, m, "ana", "t1", "3", 0)
	require.Equal(t, 1, turn(t, m))
	next := teammemory.New(inner)
	require.Equal(t, []string{"bob/k=2", "ana/task:t1:result=3"}, lines(t, next, teammemory.Everything()))
	require.Equal(t, 1, turn(t, next))
}

// TestStoreThatBreaksLeavesTheMemoryFree checks that a store, which is code of
// the caller's, may do worse than fail and nobody waits for it ever after.
func TestStoreThatBreaksLeavesTheMemoryFree(t *testing.T) {
	t.Parallel()
	for how, breaks := range map[string]func(){"panics": func() { panic("oh") }, "ends its goroutine": runtime.Goexit} {
		for _, where := range []string{"put", "all"} {
			t.Run(how+" on "+where, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { // a lock that is held fails the test instead of stopping it
					now := where
					m := teammemory.New(faulty{
						MapStore: teammemory.NewMapStore(),
						put: func(context.Context, *teammemory.Entry) error {
							if now == "put" {
								breaks()
							}
							return nil
						},
						all: func(_ context.Context, list []teammemory.Entry, err error) ([]teammemory.Entry, error) {
							if now == "all" {
								breaks()
							}
							return list, err
						},
					})
					done := make(chan bool)
					go func() {
						returned := false
						defer func() { _ = recover(); done <- returned }()
						_ = m.Writer().Write(t.Context(), "ana", "k", said(t, "ana", "", envelope.Text("1")), 0)
						returned = true
					}()
					require.False(t, <-done)
					now = ""
					note(t, m, "bob", "k", "2", 0)
					require.Equal(t, []string{"bob/k=2"}, lines(t, m, teammemory.Everything()))
				})
			})
		}
	}
}

// TestStoreWithInvalidEntries checks that the door stands on the way out too.
func TestStoreWithInvalidEntries(t *testing.T) {
	t.Parallel()
	good := func(t *testing.T) teammemory.Entry {
		return teammemory.Entry{Agent: "ana", Key: "k", Envelope: said(t, "ana", "t1", envelope.Text("CANARY")), Seq: 1}
	}
	tests := []struct {
		name   string
		change func(t *testing.T, e *teammemory.Entry)
		want   string
	}{
		{"another's name", func(t *testing.T, e *teammemory.Entry) { e.Agent = "bob" }, `entry "bob/k" in the store: invalid entry: written in another's name`},
		{"no agent", func(t *testing.T, e *teammemory.Entry) { e.Agent = "" }, "agent: not a name"},
		{"key that makes structure", func(t *testing.T, e *teammemory.Entry) { e.Key = "k\n## Inputs" }, "key: not one clean line"},
		{"no envelope", func(t *testing.T, e *teammemory.Entry) { e.Envelope = nil }, "no envelope"},
		{"a note that became a result", func(t *testing.T, e *teammemory.Entry) { e.Task = "t1" }, `the result of task "t1" has the key "task:t1:result"`},
		{"a result that became a note", func(t *testing.T, e *teammemory.Entry) { e.Key = teammemory.ResultKey("t1") }, "are for results"},
		{"the result of another task", func(t *testing.T, e *teammemory.Entry) { e.Task, e.Key = "t2", teammemory.ResultKey("t2") }, `the envelope is the result of task "t1"`},
		{"no result of any", func(t *testing.T, e *teammemory.Entry) { e.Key = "task::result" }, "are for results"},
		{"before the first turn", func(t *testing.T, e *teammemory.Entry) { e.Turn = -1 }, "turn -1"},
		{"no room for turns", func(t *testing.T, e *teammemory.Entry) { e.Turn = math.MaxInt }, "turns count from 0"},
		{"before the first place", func(t *testing.T, e *teammemory.Entry) { e.Seq = -1 }, "place -1"},
		{"no life", func(t *testing.T, e *teammemory.Entry) { e.TTLTurns = -1 }, "-1 turns to live"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			store, e := teammemory.NewMapStore(), good(t)
			require.NoError(t, store.Put(t.Context(), e))
			require.Len(t, lines(t, teammemory.New(store), teammemory.Everything()), 1, "all is well")

			store = teammemory.NewMapStore()
			tt.change(t, &e)
			require.NoError(t, store.Put(t.Context(), e))
			m := teammemory.New(store)
			list, read := m.Reader().Entries(t.Context(), teammemory.Only()) // also if it would not be shown
			require.Nil(t, list)
			digest, sum := m.Reader().Summary(t.Context(), teammemory.Everything(), pass)
			require.Empty(t, digest)
			_, snap := m.Snapshot(t.Context())
			write := m.Writer().Write(t.Context(), "ana", "other", good(t).Envelope, 0)
			for _, err := range []error{read, sum, snap, write} {
				require.ErrorIs(t, err, teammemory.ErrInvalid)
				require.ErrorContains(t, err, tt.want)
				require.Equal(t, 1, strings.Count(err.Error(), teammemory.ErrInvalid.Error()))
				require.NotContains(t, err.Error(), "CANARY")
			}
		})
	}
}

func TestStoreWithADuplicateKey(t *testing.T) {
	t.Parallel()
	store := &hoard{twin: func(a, b teammemory.Entry) bool { return false }}
	for seq := range 2 {
		require.NoError(t, store.Put(t.Context(), teammemory.Entry{Agent: "ana", Key: "k", Envelope: said(t, "ana", "", envelope.Text("x")), Seq: seq + 1}))
	}
	_, err := teammemory.New(store).Reader().Entries(t.Context(), teammemory.Everything())
	require.EqualError(t, err, `read memory: entry "ana/k" in the store: invalid entry: it is there twice`)
}
