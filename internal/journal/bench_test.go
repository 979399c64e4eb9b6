package journal_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
)

// parallel is how many tasks run at the same time.
const parallel = 16

// A completion is what the end of one call brings: its answer, and the prompt of the
// next call.
type completion []record.Entry

func completions(n int) []completion {
	t := newFakeRun("bench", 7)
	list := make([]completion, n)
	for i := range list {
		before, after := t.Complete(i, 1000)
		list[i] = append(after, before...)
	}
	return list
}

// BenchmarkJournal completes tasks at 16 parallel. Each completion waits for the disk
// once, as in a run: the answer and the prompt of the next task are one batch. "journal"
// stores them in a journal, and "floor" by bare inserts of as many bytes into SQLite,
// which are neither encoded nor compressed, in group commits.
func BenchmarkJournal(b *testing.B) {
	list := completions(2000)
	b.Run("journal", func(b *testing.B) {
		j, err := journal.Open(filepath.Join(b.TempDir(), "runs.db"), journal.Options{})
		require.NoError(b, err)
		defer j.Close()
		r, err := j.Begin(b.Context(), journal.Info{Run: "bench"})
		require.NoError(b, err)
		perSecond(b, func(i int) error {
			return appendEntries(r, list[i%len(list)]...)
		})
	})
	b.Run("floor", func(b *testing.B) {
		f := newFloor(b)
		rows := packed(b, list)
		perSecond(b, func(i int) error {
			return f.insert(rows[i%len(rows)])
		})
	})
}

// perSecond reports how many times a second do succeeds, at 16 parallel.
func perSecond(b *testing.B, do func(i int) error) {
	var all sync.WaitGroup
	next := make(chan int)
	began := time.Now()
	for range parallel {
		all.Go(func() {
			for i := range next {
				if err := do(i); err != nil {
					b.Error(err)
				}
			}
		})
	}
	n := 0
	for b.Loop() {
		next <- n
		n++
	}
	close(next)
	all.Wait()
	b.ReportMetric(float64(n)/time.Since(began).Seconds(), "tasks/s")
}

// packed returns the bytes of completions: their JSON, compressed.
func packed(b *testing.B, list []completion) [][]byte {
	out := make([][]byte, len(list))
	for i, entries := range list {
		text, err := json.Marshal(entries)
		require.NoError(b, err)
		out[i] = journal.Compress(text)
	}
	return out
}

// A floor is the least that a group commit of rows can cost.
type floor struct {
	db *sql.DB

	mu      sync.Mutex // guards the next ones
	waiting [][]byte
	done    []chan error
	busy    bool
}

func newFloor(b *testing.B) *floor {
	db, err := sql.Open("sqlite", "file:"+filepath.Join(b.TempDir(), "floor.db")+"?_txlock=immediate&_pragma=journal_mode(wal)&_pragma=synchronous(full)")
	require.NoError(b, err)
	db.SetMaxOpenConns(1)
	b.Cleanup(func() { _ = db.Close() })
	_, err = db.ExecContext(b.Context(), "create table rows (n integer primary key, row blob)")
	require.NoError(b, err)
	return &floor{db: db}
}

// insert returns when a row is durable. The first caller commits for all who come
// while the disk is busy.
func (f *floor) insert(row []byte) error {
	done := make(chan error, 1)
	f.mu.Lock()
	f.waiting, f.done = append(f.waiting, row), append(f.done, done)
	first := !f.busy
	f.busy = true
	f.mu.Unlock()
	if first {
		go f.commit()
	}
	return <-done
}

func (f *floor) commit() {
	for {
		f.mu.Lock()
		rows, done := f.waiting, f.done
		f.waiting, f.done = nil, nil
		f.busy = len(rows) > 0
		f.mu.Unlock()
		if len(rows) == 0 {
			return
		}
		err := f.write(rows)
		for _, d := range done {
			d <- err
		}
	}
}

func (f *floor) write(rows [][]byte) error {
	tx, err := f.db.BeginTx(context.Background(), nil)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if _, err := tx.Exec("insert into rows (row) values (?)", row); err != nil {
			return fmt.Errorf("%w, %w", err, tx.Rollback())
		}
	}
	return tx.Commit()
}
