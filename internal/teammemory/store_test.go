package teammemory_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/sharedmem"
	"github.com/runteam/runteam/sharedmem/storetest"
)

func TestMapStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) sharedmem.Store { return teammemory.NewMapStore() })
}

// A recordStore keeps what a store outside of the process would: records, by full key.
type recordStore struct {
	mu   sync.Mutex // guards kept
	kept map[string][]byte
}

func (s *recordStore) Put(ctx context.Context, e teammemory.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil {
		r, err := e.Record()
		if err != nil {
			return err
		}
		s.kept[e.FullKey()] = r
	}
	return ctx.Err()
}

func (s *recordStore) All(ctx context.Context) ([]teammemory.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]teammemory.Entry, 0, len(s.kept))
	for _, r := range s.kept {
		e, err := teammemory.ReadRecord(r)
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, ctx.Err()
}

func TestStoreOfRecords(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) sharedmem.Store { return &recordStore{kept: map[string][]byte{}} })
}

// A faulty store does something else before or after a MapStore does its work.
type faulty struct {
	*teammemory.MapStore
	put func(context.Context, *teammemory.Entry) error
	all func(context.Context, []teammemory.Entry, error) ([]teammemory.Entry, error)
}

func (s faulty) Put(ctx context.Context, e teammemory.Entry) error {
	if s.put != nil {
		if err := s.put(ctx, &e); err != nil {
			return err
		}
	}
	return s.MapStore.Put(ctx, e)
}

func (s faulty) All(ctx context.Context) ([]teammemory.Entry, error) {
	list, err := s.MapStore.All(ctx)
	if s.all != nil {
		return s.all(ctx, list, err)
	}
	return list, err
}

// change returns a store that changes what is put.
func change(how func(*teammemory.Entry)) func() teammemory.Store {
	return func() teammemory.Store {
		return faulty{MapStore: teammemory.NewMapStore(), put: func(_ context.Context, e *teammemory.Entry) error { how(e); return nil }}
	}
}

// look returns a store that changes what is read.
func look(how func([]teammemory.Entry) []teammemory.Entry) func() teammemory.Store {
	return func() teammemory.Store {
		return faulty{MapStore: teammemory.NewMapStore(), all: func(_ context.Context, list []teammemory.Entry, err error) ([]teammemory.Entry, error) {
			return how(list), err
		}}
	}
}

// A hoard keeps everything that was ever put, and hands out its own slice.
type hoard struct {
	mu   sync.Mutex
	list []teammemory.Entry
	twin func(a, b teammemory.Entry) bool // which entry takes the place of which
}

func (s *hoard) Put(ctx context.Context, e teammemory.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if i := slices.IndexFunc(s.list, func(old teammemory.Entry) bool { return s.twin(old, e) }); i >= 0 {
		s.list[i] = e
		return nil
	}
	s.list = append(s.list, e)
	return nil
}

func (s *hoard) All(ctx context.Context) ([]teammemory.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.list, ctx.Err()
}

// remade returns the envelope with something changed.
func remade(e *envelope.Envelope, change func(*envelope.Record)) *envelope.Envelope {
	r := e.Record()
	change(&r)
	made, err := r.Envelope()
	if err != nil {
		panic(err)
	}
	return made
}

// broken stores, each with the clause that must find its fault.
var broken = map[string]struct {
	clause string
	open   func() teammemory.Store
}{
	"remembers others": {"a_new_store_is_empty", look(func(list []teammemory.Entry) []teammemory.Entry {
		return append(list, teammemory.Entry{Agent: "old", Key: "k"})
	})},
	"loses the turn":     {"an_entry_comes_back_whole", change(func(e *teammemory.Entry) { e.Turn = 0 })},
	"loses the life":     {"an_entry_comes_back_whole", change(func(e *teammemory.Entry) { e.TTLTurns = 0 })},
	"loses the place":    {"an_entry_comes_back_whole", change(func(e *teammemory.Entry) { e.Seq = 0 })},
	"loses the task":     {"an_entry_comes_back_whole", change(func(e *teammemory.Entry) { e.Task = "" })},
	"counts in 32 bits":  {"an_entry_comes_back_whole", change(func(e *teammemory.Entry) { e.Turn = int(int32(e.Turn)) })},
	"loses the envelope": {"an_entry_comes_back_whole", change(func(e *teammemory.Entry) { e.Envelope = nil })},
	"loses the label": {"an_envelope_comes_back_genuine", change(func(e *teammemory.Entry) {
		e.Envelope = remade(e.Envelope, func(r *envelope.Record) { r.Classification = 0 })
	})},
	"rounds times": {"an_envelope_comes_back_genuine", change(func(e *teammemory.Entry) {
		e.Envelope = remade(e.Envelope, func(r *envelope.Record) { r.CreatedAt = r.CreatedAt.Truncate(1000) })
	})},
	"cuts texts at NUL": {"an_envelope_comes_back_genuine", change(func(e *teammemory.Entry) {
		e.Envelope = remade(e.Envelope, func(r *envelope.Record) { r.Text, _, _ = strings.Cut(r.Text, "\x00") })
	})},
	"seals anew": {"an_envelope_comes_back_genuine", change(func(e *teammemory.Entry) {
		made, err := envelope.New(envelope.Header{ID: e.Envelope.ID(), Producer: e.Agent, CreatedAt: noon}, e.Envelope.Open())
		if err != nil {
			panic(err)
		}
		e.Envelope = made
	})},
	"keeps every version": {"a_later_entry_replaces_an_earlier_one", func() teammemory.Store { return &hoard{twin: func(a, b teammemory.Entry) bool { return false }} }},
	"knows keys only": {"places_differ_by_every_byte", func() teammemory.Store {
		return &hoard{twin: func(a, b teammemory.Entry) bool { return a.Key == b.Key }}
	}},
	"folds letters": {"places_differ_by_every_byte", func() teammemory.Store {
		return &hoard{twin: func(a, b teammemory.Entry) bool { return strings.EqualFold(a.FullKey(), b.FullKey()) }}
	}},
	"hands out its slice": {"the_caller_may_change_the_slice", func() teammemory.Store {
		return &hoard{twin: func(a, b teammemory.Entry) bool { return a.FullKey() == b.FullKey() }}
	}},
	"ignores the context":  {"nothing_happens_after_the_context_has_ended", func() teammemory.Store { return deaf{teammemory.NewMapStore()} }},
	"forgets what is many": {"many_entries_are_kept", look(func(list []teammemory.Entry) []teammemory.Entry { return list[:min(len(list), 500)] })},
	"loses some of two":    {"writes_and_reads_at_the_same_time", look(func(list []teammemory.Entry) []teammemory.Entry { return list[:len(list)-len(list)/50] })},
}

// A deaf store does not hear that the context has ended.
type deaf struct{ *teammemory.MapStore }

func (s deaf) Put(_ context.Context, e teammemory.Entry) error {
	return s.MapStore.Put(context.Background(), e)
}

func (s deaf) All(context.Context) ([]teammemory.Entry, error) {
	return s.MapStore.All(context.Background())
}

// brokenEnv names the broken store that a process of TestSuiteFindsBrokenStores tries.
const brokenEnv = "SHAREDMEM_BROKEN_STORE"

// TestSuiteFindsBrokenStores checks that the suite can fail: it runs it on broken
// stores, in processes of their own, since a test that fails fails its parents.
func TestSuiteFindsBrokenStores(t *testing.T) {
	t.Parallel()
	if name := os.Getenv(brokenEnv); name != "" {
		storetest.Run(t, func(*testing.T) sharedmem.Store { return broken[name].open() })
		return
	}
	for name, b := range broken {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSuiteFindsBrokenStores$", "-test.v")
			run.Env = append(os.Environ(), brokenEnv+"="+name)
			out, err := run.CombinedOutput()
			_, failed := errors.AsType[*exec.ExitError](err)
			require.True(t, failed, "the suite passes: %v", err)
			require.Contains(t, string(out), fmt.Sprintf("--- FAIL: TestSuiteFindsBrokenStores/%s ", b.clause))
		})
	}
}
