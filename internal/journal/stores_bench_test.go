package journal_test

import (
	"bytes"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journal/postgres"
	"github.com/runteam/runteam/internal/pgtest"
)

// BenchmarkStores completes tasks in a file and in PostgreSQL by turns, so that both have the same machine: at 1, 16 and 64
// parallel in one journal, and at 16 parallel in each of four journals that share a file or a database.
func BenchmarkStores(b *testing.B) {
	server := pgtest.Start(b)
	for _, shape := range []struct{ journals, parallel int }{{1, 1}, {1, 16}, {1, 64}, {4, 16}} {
		b.Run(fmt.Sprintf("%d x %d parallel", shape.journals, shape.parallel), func(b *testing.B) {
			path, address := filepath.Join(b.TempDir(), "runs.db"), server.Schema(b)
			file := openRuns(b, shape.journals, func() (*journal.Journal, error) { return journal.Open(path, journal.Options{}) })
			shared := openRuns(b, shape.journals, func() (*journal.Journal, error) {
				return postgres.Open(b.Context(), address, journal.Options{Key: bytes.Repeat([]byte{7}, journal.KeyBytes)})
			})
			list := completions(500)
			var inFile, inPostgres time.Duration
			for b.Loop() {
				inFile += complete(b, file, shape.parallel, list)
				inPostgres += complete(b, shared, shape.parallel, list)
			}
			n := float64(b.N * len(list) * shape.journals)
			b.ReportMetric(n/inFile.Seconds(), "file/s")
			b.ReportMetric(n/inPostgres.Seconds(), "postgres/s")
			b.ReportMetric(inFile.Seconds()/inPostgres.Seconds(), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// openRuns opens journals in one place, and begins a run in each.
func openRuns(b *testing.B, journals int, open func() (*journal.Journal, error)) (runs []*journal.Run) {
	b.Helper()
	for n := range journals {
		j, err := open()
		require.NoError(b, err)
		b.Cleanup(func() { require.NoError(b, j.Close()) })
		r, err := j.Begin(b.Context(), journal.Info{Run: fmt.Sprint("bench", n)})
		require.NoError(b, err)
		runs = append(runs, r)
	}
	return runs
}

// complete completes all tasks in each run, so many at a time, and returns how long that took.
func complete(b *testing.B, runs []*journal.Run, parallel int, list []completion) time.Duration {
	b.Helper()
	began := time.Now()
	var all sync.WaitGroup
	for _, r := range runs {
		next := make(chan completion)
		for range parallel {
			all.Go(func() {
				for c := range next {
					if err := appendEntries(r, c...); err != nil {
						b.Error(err)
					}
				}
			})
		}
		all.Go(func() {
			for _, c := range list {
				next <- c
			}
			close(next)
		})
	}
	all.Wait()
	return time.Since(began)
}
