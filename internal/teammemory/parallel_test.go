package teammemory_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/task"
)

func TestConcurrentWritesAndReads(t *testing.T) {
	t.Parallel()
	const agents, each = 8, 30
	m := teammemory.New(nil)
	var writers, readers sync.WaitGroup
	done := make(chan struct{})
	for range 2 {
		readers.Go(func() {
			for r := m.Reader(); ; {
				list, err := r.Entries(context.Background(), teammemory.Everything())
				if err == nil {
					err = inOrder(list)
				}
				if err != nil {
					t.Error(err)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	for a := range agents {
		agent := fmt.Sprintf("agent %d", a)
		writers.Go(func() {
			for i := range each {
				id := task.ID(fmt.Sprintf("t-%d-%03d", a, i))
				note(t, m, agent, fmt.Sprintf("k%03d", 2*i), "x", 0)
				result(t, m, agent, id, "x", 0)
				note(t, m, agent, "same", fmt.Sprint(i), 0)
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()

	list, err := m.Reader().Entries(t.Context(), teammemory.Everything())
	require.NoError(t, err)
	require.Len(t, list, agents*(2*each+1))
	require.NoError(t, inOrder(list))
	require.Equal(t, agents*each, turn(t, m), "every result is a turn of its own")
	turns, places := map[int]bool{}, map[int]bool{}
	for _, e := range list {
		require.False(t, places[e.Seq], "place %d is taken twice", e.Seq)
		places[e.Seq] = true
		if e.Task != "" {
			require.False(t, turns[e.Turn], "turn %d has begun twice", e.Turn)
			turns[e.Turn] = true
		}
		if e.Key == "same" {
			require.Equal(t, fmt.Sprint(each-1), text(e), "the last one written stands")
		}
	}
}

// inOrder returns an error unless every agent stands together, its notes as it wrote them.
func inOrder(list []teammemory.Entry) error {
	seen, agent, last := map[string]bool{}, "", ""
	for _, e := range list {
		if e.Agent != agent {
			if seen[e.Agent] {
				return fmt.Errorf("%s stands in two places", e.Agent)
			}
			agent, last = e.Agent, ""
			seen[agent] = true
		}
		if strings.HasPrefix(e.Key, "k") {
			if e.Key <= last {
				return fmt.Errorf("%s after %s", e.FullKey(), last)
			}
			last = e.Key
		}
	}
	return nil
}

// A stuck store holds every Put until it is told to go on, or its context ends.
type stuck struct {
	teammemory.Store
	goOn chan struct{}
}

func (s stuck) Put(ctx context.Context, e teammemory.Entry) error {
	select {
	case <-s.goOn:
		return s.Store.Put(ctx, e)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestWaitingForAWriterEndsWithTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := stuck{teammemory.NewMapStore(), make(chan struct{})}
		m := teammemory.New(store)
		first := make(chan error)
		e := said(t, "ana", "", envelope.Text("x"))
		go func() { first <- m.Writer().Write(t.Context(), "ana", "first", e, 0) }()
		synctest.Wait()

		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		err := m.Writer().Write(ctx, "ana", "second", e, 0)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.EqualError(t, err, `write memory "ana/second": context deadline exceeded`)
		require.Equal(t, time.Minute, time.Since(start))
		require.Empty(t, lines(t, m, teammemory.Everything()), "a reader does not wait")

		close(store.goOn)
		require.NoError(t, <-first)
		require.Equal(t, []string{"ana/first=x"}, lines(t, m, teammemory.Everything()))
	})
}

func TestNothingIsWrittenAfterTheContextHasEnded(t *testing.T) {
	t.Parallel()
	m := teammemory.New(nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for range 50 { // a free lock and an ended context are ready both
		require.ErrorIs(t, m.Writer().WriteResult(ctx, "ana", said(t, "ana", "t1", envelope.Text("x")), 0), context.Canceled)
	}
	_, err := m.Reader().Entries(ctx, teammemory.Everything())
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, lines(t, m, teammemory.Everything()))
	require.Zero(t, turn(t, m))
}

// TestFiltersMayUseTheMemory checks that no lock is held while the caller's code decides.
func TestFiltersMayUseTheMemory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // a deadlock fails the test instead of stopping it
		m := teammemory.New(teammemory.NewMapStore())
		result(t, m, "ana", "t1", "x", 0)
		f := func(id task.ID) bool {
			if id == "" {
				return false
			}
			note(t, m, "ana", "seen", string(id), 0)
			return len(lines(t, m, teammemory.Everything())) == 2
		}
		require.Equal(t, []string{"ana/task:t1:result=x"}, lines(t, m, f), "as it was when the read began")
		_, err := m.Reader().Summary(t.Context(), f, func(e teammemory.Entry) (string, bool, error) {
			result(t, m, "ana", "t2", "y", 0)
			return "", true, nil
		})
		require.NoError(t, err)
		require.Len(t, lines(t, m, teammemory.Everything()), 3)
	})
}
