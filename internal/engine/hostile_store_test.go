package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A faulty store calls a hook before it stores or reads.
type faulty struct {
	teammemory.Store
	put func(teammemory.Entry) error
	all func() error
}

// newFaulty returns a store with hooks; a nil one does nothing.
func newFaulty(put func(teammemory.Entry) error, all func() error) teammemory.Store {
	if put == nil {
		put = func(teammemory.Entry) error { return nil }
	}
	if all == nil {
		all = func() error { return nil }
	}
	return faulty{teammemory.NewMapStore(), put, all}
}

func (s faulty) Put(ctx context.Context, e teammemory.Entry) error {
	if err := s.put(e); err != nil {
		return err
	}
	return s.Store.Put(ctx, e)
}

func (s faulty) All(ctx context.Context) ([]teammemory.Entry, error) {
	if err := s.all(); err != nil {
		return nil, err
	}
	return s.Store.All(ctx)
}

var errStore = errors.New("the disk is full")

func TestMemoryThatFails(t *testing.T) {
	t.Parallel()
	t.Run("on write", func(t *testing.T) {
		t.Parallel()
		res := run(t, newTeam(t, member("ada", says("x"))), &engine.RunOptions{Memory: newFaulty(func(teammemory.Entry) error { return errStore }, nil)}, spec("ada"))
		require.True(t, res.Success())
		require.Len(t, res.Warnings, 1)
		require.Equal(t, `the result of "ada" is not in the shared memory: the store failed`, res.Warnings[0], "the words of a store may quote what it holds")
	})
	t.Run("on read by a task", func(t *testing.T) {
		t.Parallel()
		res := run(t, newTeam(t, member("ada", never(t))), &engine.RunOptions{Memory: newFaulty(nil, func() error { return errStore })}, scopeAll(spec("ada")))
		require.Equal(t, engine.StatusError, res.Status)
		require.Equal(t, "MEMORY_UNAVAILABLE", res.Errors[0].Code)
		require.ErrorIs(t, res.Err(), errStore)
	})
	t.Run("on read by the synthesis", func(t *testing.T) {
		t.Parallel()
		res, err := led(t, &planner{}, member("ada", says("x"))).RunTasks(t.Context(), []task.Spec{spec("ada")},
			&engine.RunOptions{Memory: newFaulty(nil, func() error { return errStore }), Answer: &engine.Goal{Text: "x"}})
		require.NoError(t, err)
		require.True(t, res.Success())
		require.Equal(t, "the answer", res.Output)
		require.Contains(t, strings.Join(res.Warnings, "\n"), "made without it")
	})
}

// A store is code of the caller's. Whatever it does, the run ends, and so do
// its tasks.
func TestFailingStoreDoesNotEndTheRun(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func() error{
		"panics":             func() error { panic("oh") },
		"ends its goroutine": func() error { runtime.Goexit(); return nil },
	} {
		t.Run(name+" on write", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { // a run that hangs fails the test instead of stopping it
				res := run(t, newTeam(t, member("ada", says("x")), member("bob", says("y"))),
					&engine.RunOptions{MaxConcurrency: 1, Memory: newFaulty(func(teammemory.Entry) error { return breaks() }, nil)}, spec("ada"), spec("bob", "ada"))
				require.True(t, res.Success(), "%v", res.Err())
				require.Len(t, res.Warnings, 2, "neither result is in the memory")
			})
		})
		t.Run(name+" on read", func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				res := run(t, newTeam(t, member("ada", never(t)), member("bob", says("y"))),
					&engine.RunOptions{MaxConcurrency: 1, Memory: newFaulty(nil, breaks)}, scopeAll(spec("ada")), spec("bob"))
				require.Equal(t, []task.Status{task.Failed, task.Completed}, statuses(res))
				require.Equal(t, "MEMORY_UNAVAILABLE", res.Errors[0].Code)
			})
		})
	}
}

// What a store says may quote what it holds, or what it is reached with.
//
// Requirement: G42.
func TestErrorsOfAStoreAreNotShown(t *testing.T) {
	t.Parallel()
	dial := errors.New("dial postgres://app:hunter2Xk9vQ2mR7w@db.example/x: refused")
	for _, tt := range []struct {
		name  string
		store teammemory.Store
	}{
		{"on write", newFaulty(func(e teammemory.Entry) error { r, _ := e.Record(); return fmt.Errorf("insert %q: too long", r) }, nil)},
		{"on read", newFaulty(nil, func() error { return dial })},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var heard audience
			o := heard.options()
			o.Memory, o.Answer = tt.store, &engine.Goal{Text: "x"}
			s := spec("ada")
			s.Classification = label.Secret
			c := &planner{}
			res, err := led(t, c, cleared("ada", label.Secret, says("CANARY")), member("bob", says("y")), member("cyd", says("z"))).
				RunTasks(t.Context(), []task.Spec{s, spec("bob"), scopeAll(spec("cyd"))}, o)
			require.NoError(t, err)
			require.NotEmpty(t, res.Warnings, "that it failed is told")
			all := told(t, res, &heard) + strings.Join(c.prompts, "")
			require.NotContains(t, all, "CANARY")
			require.NotContains(t, all, "hunter2")
			require.NotContains(t, all, "postgres")
		})
	}
}

// Expiry is judged when the prompt is built, which may be long after the task began.
//
// Requirement: G16.
func TestInputExpiresWhileTheMemoryIsRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := newFaulty(nil, func() error { time.Sleep(time.Minute); return nil })
		s := scopeAll(spec("eve"))
		s.Uses = []task.Use{{Name: "in"}}
		res := run(t, newTeam(t, member("eve", never(t))), &engine.RunOptions{Memory: slow, Inputs: []engine.Input{{Name: "in", Text: "canary", TTL: 10 * time.Second}}}, s)
		require.Equal(t, []task.Status{task.Failed}, statuses(res))
		require.Contains(t, res.Errors[0].Message, "expired")
	})
}
