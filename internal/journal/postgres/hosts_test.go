package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/pgtest"
	"github.com/runteam/runteam/internal/slowtest"
)

// Many hosts begin, resume, write to, end and remove the same runs at once. Each run has one owner at a time, nothing of it
// is lost while it exists, and its chain verifies.
func TestManyHostsWorkOnTheSameRuns(t *testing.T) {
	t.Parallel()
	hosts, lasts := 3, time.Second
	if slowtest.Enabled() {
		hosts, lasts = 6, 15*time.Second
	}
	const runs, goroutines, enough = 4, 3, 10
	address := pgtest.Address(t)
	var owners [runs]atomic.Int64
	var owned, removed atomic.Int64
	until := time.Now().Add(lasts)
	work := func(j *journal.Journal) error {
		n := rand.IntN(runs)
		id := fmt.Sprint("r", n)
		if rand.IntN(10) == 0 {
			gone, _, err := j.Remove(t.Context(), time.Now().Add(time.Hour))
			removed.Add(int64(len(gone)))
			return err
		}
		wait, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		r, err := j.Begin(wait, journal.Info{Run: id})
		before := 0
		if err != nil {
			var s *journal.Stored
			if r, s, err = j.Resume(wait, id); err != nil {
				return err
			}
			before = len(s.History.Log)
		}
		if owner := owners[n].Add(1); owner != 1 {
			return fmt.Errorf("run %s has %d owners", id, owner)
		}
		owned.Add(1)
		const adds = 3
		for k := range adds {
			if err := add(r, ready(fmt.Sprint("t", k))); err != nil {
				return fmt.Errorf("the owner of run %s: %w", id, err)
			}
		}
		s, err := j.Load(t.Context(), id)
		if err != nil {
			return fmt.Errorf("the owner of run %s: %w", id, err)
		}
		if got := len(s.History.Log); got != before+adds {
			return fmt.Errorf("run %s has %d entries after %d and %d", id, got, before, adds)
		}
		owners[n].Add(-1)
		_, err = r.End(t.Context())
		return err
	}
	var all sync.WaitGroup
	for h := range hosts {
		j := open(t, address, journal.Options{Holder: host(fmt.Sprint("boot ", h))})
		for range goroutines {
			all.Go(func() {
				for time.Now().Before(until) || owned.Load() <= enough || removed.Load() == 0 { // a busy machine takes longer
					err := work(j)
					if err != nil && !errors.Is(err, journal.ErrLeased) && !errors.Is(err, journal.ErrUnknownRun) && !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, journal.ErrLost) {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	t.Logf("%d turns of runs, %d removed", owned.Load(), removed.Load())
	j := open(t, address, journal.Options{})
	list, err := j.Runs(t.Context())
	require.NoError(t, err)
	for _, r := range list {
		require.Nil(t, r.Holder, r.Run)
		requireVerified(t, j, r.Run)
	}
	w := &world{direct: address}
	for _, table := range []string{"batches", "turns", "leases", "answers", "commands"} {
		require.Zero(t, w.value(t, "select count(*) from "+table+" where run not in (select n from runs)"), "rows of removed runs in %s", table)
	}
}
