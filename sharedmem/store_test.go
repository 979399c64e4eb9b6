package sharedmem_test

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
	"github.com/runteam/runteam/sharedmem"
	"github.com/runteam/runteam/sharedmem/storetest"
)

func TestMapStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) sharedmem.Store { return sharedmem.NewMapStore() })
}

// A recordStore keeps what a store outside of the process would: records, by full key.
type recordStore struct {
	mu   sync.Mutex // guards kept
	kept map[string]sharedmem.Record
}

func (s *recordStore) Put(ctx context.Context, e sharedmem.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil {
		s.kept[e.FullKey()] = e.Record()
	}
	return ctx.Err()
}

func (s *recordStore) All(ctx context.Context) ([]sharedmem.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := make([]sharedmem.Entry, 0, len(s.kept))
	for _, r := range s.kept {
		e, err := r.Entry()
		if err != nil {
			return nil, err
		}
		list = append(list, e)
	}
	return list, ctx.Err()
}

func TestStoreOfRecords(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(*testing.T) sharedmem.Store { return &recordStore{kept: map[string]sharedmem.Record{}} })
}

// A faulty store does something else before or after a MapStore does its work.
type faulty struct {
	*sharedmem.MapStore
	put func(context.Context, *sharedmem.Entry) error
	all func(context.Context, []sharedmem.Entry, error) ([]sharedmem.Entry, error)
}

func (s faulty) Put(ctx context.Context, e sharedmem.Entry) error {
	if s.put != nil {
		if err := s.put(ctx, &e); err != nil {
			return err
		}
	}
	return s.MapStore.Put(ctx, e)
}

func (s faulty) All(ctx context.Context) ([]sharedmem.Entry, error) {
	list, err := s.MapStore.All(ctx)
	if s.all != nil {
		return s.all(ctx, list, err)
	}
	return list, err
}

// change returns a store that changes what is put.
func change(how func(*sharedmem.Entry)) func() sharedmem.Store {
	return func() sharedmem.Store {
		return faulty{MapStore: sharedmem.NewMapStore(), put: func(_ context.Context, e *sharedmem.Entry) error { how(e); return nil }}
	}
}

// look returns a store that changes what is read.
func look(how func([]sharedmem.Entry) []sharedmem.Entry) func() sharedmem.Store {
	return func() sharedmem.Store {
		return faulty{MapStore: sharedmem.NewMapStore(), all: func(_ context.Context, list []sharedmem.Entry, err error) ([]sharedmem.Entry, error) {
			return how(list), err
		}}
	}
}

// A hoard keeps everything that was ever put, and hands out its own slice.
type hoard struct {
	mu   sync.Mutex
	list []sharedmem.Entry
	twin func(a, b sharedmem.Entry) bool // which entry takes the place of which
}

func (s *hoard) Put(ctx context.Context, e sharedmem.Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if i := slices.IndexFunc(s.list, func(old sharedmem.Entry) bool { return s.twin(old, e) }); i >= 0 {
		s.list[i] = e
		return nil
	}
	s.list = append(s.list, e)
	return nil
}

func (s *hoard) All(ctx context.Context) ([]sharedmem.Entry, error) {
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
	open   func() sharedmem.Store
}{
	"remembers others": {"a_new_store_is_empty", look(func(list []sharedmem.Entry) []sharedmem.Entry {
		return append(list, sharedmem.Entry{Agent: "old", Key: "k"})
	})},
	"loses the turn":     {"an_entry_comes_back_whole", change(func(e *sharedmem.Entry) { e.Turn = 0 })},
	"loses the life":     {"an_entry_comes_back_whole", change(func(e *sharedmem.Entry) { e.TTLTurns = 0 })},
	"loses the place":    {"an_entry_comes_back_whole", change(func(e *sharedmem.Entry) { e.Seq = 0 })},
	"loses the task":     {"an_entry_comes_back_whole", change(func(e *sharedmem.Entry) { e.Task = "" })},
	"counts in 32 bits":  {"an_entry_comes_back_whole", change(func(e *sharedmem.Entry) { e.Turn = int(int32(e.Turn)) })},
	"loses the envelope": {"an_entry_comes_back_whole", change(func(e *sharedmem.Entry) { e.Envelope = nil })},
	"loses the label": {"an_envelope_comes_back_genuine", change(func(e *sharedmem.Entry) {
		e.Envelope = remade(e.Envelope, func(r *envelope.Record) { r.Classification = 0 })
	})},
	"rounds times": {"an_envelope_comes_back_genuine", change(func(e *sharedmem.Entry) {
		e.Envelope = remade(e.Envelope, func(r *envelope.Record) { r.CreatedAt = r.CreatedAt.Truncate(1000) })
	})},
	"cuts texts at NUL": {"an_envelope_comes_back_genuine", change(func(e *sharedmem.Entry) {
		e.Envelope = remade(e.Envelope, func(r *envelope.Record) { r.Text, _, _ = strings.Cut(r.Text, "\x00") })
	})},
	"seals anew": {"an_envelope_comes_back_genuine", change(func(e *sharedmem.Entry) {
		made, err := envelope.New(envelope.Header{ID: e.Envelope.ID(), Producer: e.Agent, CreatedAt: noon}, e.Envelope.Open())
		if err != nil {
			panic(err)
		}
		e.Envelope = made
	})},
	"keeps every version": {"a_later_entry_replaces_an_earlier_one", func() sharedmem.Store { return &hoard{twin: func(a, b sharedmem.Entry) bool { return false }} }},
	"knows keys only":     {"places_differ_by_every_byte", func() sharedmem.Store { return &hoard{twin: func(a, b sharedmem.Entry) bool { return a.Key == b.Key }} }},
	"folds letters": {"places_differ_by_every_byte", func() sharedmem.Store {
		return &hoard{twin: func(a, b sharedmem.Entry) bool { return strings.EqualFold(a.FullKey(), b.FullKey()) }}
	}},
	"hands out its slice": {"a_slice_belongs_to_the_caller", func() sharedmem.Store {
		return &hoard{twin: func(a, b sharedmem.Entry) bool { return a.FullKey() == b.FullKey() }}
	}},
	"ignores the context":  {"nothing_happens_after_the_context_has_ended", func() sharedmem.Store { return deaf{sharedmem.NewMapStore()} }},
	"forgets what is many": {"many_entries_are_kept", look(func(list []sharedmem.Entry) []sharedmem.Entry { return list[:min(len(list), 500)] })},
	"loses some of two":    {"many_write_and_read_at_once", look(func(list []sharedmem.Entry) []sharedmem.Entry { return list[:len(list)-len(list)/50] })},
}

// A deaf store does not hear that the context has ended.
type deaf struct{ *sharedmem.MapStore }

func (s deaf) Put(_ context.Context, e sharedmem.Entry) error {
	return s.MapStore.Put(context.Background(), e)
}

func (s deaf) All(context.Context) ([]sharedmem.Entry, error) {
	return s.MapStore.All(context.Background())
}

// brokenEnv names the broken store that a process of TestSuiteFindsBrokenStores tries.
const brokenEnv = "SHAREDMEM_BROKEN_STORE"

// TestSuiteFindsBrokenStores holds that the suite can fail: it runs it on broken
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
