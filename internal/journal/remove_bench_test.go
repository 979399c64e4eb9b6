package journal_test

import (
	"fmt"

	"path/filepath"
	"slices"

	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
)

// multiplied makes a journal of n runs of five tasks each, which are copies of one.
func multiplied(b *testing.B, n int) string {
	path := filepath.Join(b.TempDir(), "runs.db")
	filled(b, path, 1, 5)
	edit(b, path, "pragma synchronous = off", fmt.Sprintf(`create temp table numbers as with recursive up (n) as (select 2 union all select n + 1 from up where n < %d) select n from up`, n),
		"insert into runs (n, id, name, command, started) select u.n, 'copy-' || u.n, name, command, started from runs, numbers u where runs.n = 1",
		"insert into turns (run, at, status, tasks) select u.n, at, status, tasks from turns, numbers u where run = 1",
		"create temp table first_batches as select * from batches where run = 1",
		"insert into batches (run, at, state, parts, kept, rest) select u.n, at, state, parts, kept, rest from numbers u, first_batches",
		"insert into answers (key, batch, run) select randomblob(32), b.n, b.run from batches b, (select 1 from answers where run = 1) where b.run > 1")
	return path
}

// BenchmarkRemove removes 10,000 runs of five tasks. It took 92 s without the
// index, and takes 7.6 s with it (two cores); the goal is 10 s.
func BenchmarkRemove(b *testing.B) {
	for range b.N {
		b.StopTimer()
		j, err := journal.Open(multiplied(b, 10_000), journal.Options{})
		require.NoError(b, err)
		b.StartTimer()
		gone, _, err := j.Remove(b.Context(), noon.Add(time.Hour))
		require.NoError(b, err)
		require.Len(b, gone, 10_000)
		require.NoError(b, j.Close())
	}
}

// BenchmarkRunsBesideRemove runs eight runs of 20 calls of 20 ms, one after the
// other, beside the removal of 5,000 runs. It reports how many times as long the
// slowest of them takes as one alone (1.5 at most, where each has a processor),
// and as the slowest of eight without the removal. Before, the removal kept the
// file locked, and all eight gave up after 5 s.
func BenchmarkRunsBesideRemove(b *testing.B) {
	run := func(path string) time.Duration {
		began := time.Now()
		kept(b, path, chains(20, 1), worker{20 * time.Millisecond}, nil)
		return time.Since(began)
	}
	eight := func(path string) time.Duration {
		var all sync.WaitGroup
		took := make([]time.Duration, 8)
		for i := range took {
			all.Go(func() { took[i] = run(path) })
		}
		all.Wait()
		return slices.Max(took)
	}
	var alone, without, beside time.Duration
	for range b.N {
		b.StopTimer()
		path := multiplied(b, 5000)
		alone += run(path)
		without += eight(path)
		j, err := journal.Open(path, journal.Options{})
		require.NoError(b, err)
		b.StartTimer()
		removed := make(chan time.Duration)
		go func() {
			began := time.Now()
			gone, _, err := j.Remove(b.Context(), noon.Add(time.Hour))
			if err != nil || len(gone) != 5000 {
				b.Errorf("%d runs removed: %v", len(gone), err)
			}
			removed <- time.Since(began)
		}()
		took := eight(path)
		beside += took
		if whole := <-removed; whole < took {
			b.Logf("the removal took only %s of %s", whole, took)
		}
		require.NoError(b, j.Close())
	}
	b.ReportMetric(beside.Seconds()/alone.Seconds(), "x-alone")
	b.ReportMetric(beside.Seconds()/without.Seconds(), "x-without")
}
