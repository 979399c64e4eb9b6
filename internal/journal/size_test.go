package journal_test

import (
	"crypto/sha256"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
)

// A journal of 400 tasks that answer with 1,000 characters each, one after the
// other, takes 2 MB: twice the bytes of their prompts and results. Before it is closed, it takes 16 MB.
func TestJournalIsSmall(t *testing.T) {
	t.Parallel()
	tasks := 200
	if slowtest.Enabled() {
		tasks = 400
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "runs.db")
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	story, texts := newFakeRun("r1", 1), 0
	for n := range tasks {
		before, after := story.Complete(n, 1000)
		require.NoError(t, appendEntries(r, before...))
		require.NoError(t, appendEntries(r, after...))
		for _, e := range append(before, after...) {
			if e.Asked != nil {
				texts += e.Asked.Bytes
			} else if e.Exchange != nil {
				texts += len(e.Exchange.Result.Text)
			}
		}
	}
	_, err = r.Close(t.Context())
	require.NoError(t, err)
	open := taken(t, folder)
	require.NoError(t, j.Close())
	closed := taken(t, folder)
	t.Logf("%d bytes of prompts and results, %d on disk (%.2f times), %d before it was closed", texts, closed, float64(closed)/float64(texts), open)
	require.Greater(t, texts, tasks*2000)
	require.Less(t, closed, 5*texts/2)
	require.Less(t, open, tasks*50_000)
}

// Rows of files that are there can only be read with the dictionary that they were written with.
func TestDictionaryStaysAsItIs(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("dictionary.txt")
	require.NoError(t, err)
	require.Equal(t, "25a586a1a093e104db9f6e4f95a3e9dd97a9e7d64b4311fc098780cdc350020e", fmt.Sprintf("%x", sha256.Sum256(text)), "a changed dictionary needs an ID of its own, beside this one")
}

// taken returns how many bytes the files of a folder have.
func taken(t *testing.T, folder string) (n int) {
	list, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, e := range list {
		info, err := e.Info()
		require.NoError(t, err)
		n += int(info.Size())
	}
	return n
}

// BenchmarkLoad loads a run of 10,000 tasks, of which so many ran at the same
// time: one at a time makes as many rows as can be; all of it, and only its Info.
func BenchmarkLoad(b *testing.B) {
	for _, workers := range []int{1, parallel} {
		b.Run(strconv.Itoa(workers), func(b *testing.B) {
			j, err := journal.Open(filepath.Join(b.TempDir(), "runs.db"), journal.Options{})
			require.NoError(b, err)
			defer j.Close()
			r, err := j.Begin(b.Context(), journal.Info{Run: "r1", Time: time.Now()})
			require.NoError(b, err)
			var all sync.WaitGroup
			for w := range workers {
				all.Go(func() {
					story := newFakeRun("r1", uint64(w))
					for n := range 10_000 / workers {
						for _, entries := range steps(story.Complete(n*workers+w, 1000)) {
							if err := appendEntries(r, entries...); err != nil {
								b.Error(err)
							}
						}
					}
				})
			}
			all.Wait()
			b.Run("all", func(b *testing.B) {
				for b.Loop() {
					s, err := j.Load(b.Context(), "r1")
					require.NoError(b, err)
					require.Len(b, withoutChanges(s.History.Log), 20_000)
				}
			})
			b.Run("start", func(b *testing.B) {
				for b.Loop() {
					s, err := j.LoadStart(b.Context(), "r1")
					require.NoError(b, err)
					require.Equal(b, "r1", s.Info.Run)
				}
			})
		})
	}
}

func steps(before, after []record.Entry) [2][]record.Entry { return [2][]record.Entry{before, after} }

// BenchmarkRecall asks for 1,000 answers of another run.
func BenchmarkRecall(b *testing.B) {
	j, err := journal.Open(filepath.Join(b.TempDir(), "runs.db"), journal.Options{Now: func() time.Time { return noon.Add(time.Hour) }})
	require.NoError(b, err)
	defer j.Close()
	r, err := j.Begin(b.Context(), journal.Info{Run: "r1"})
	require.NoError(b, err)
	story := newFakeRun("r1", 1)
	for n := 0; n < 1000; n += 16 {
		var all []record.Entry
		for i := range 16 {
			before, after := story.Complete(n+i, 1000)
			all = append(append(all, before...), after...)
		}
		require.NoError(b, appendEntries(r, all...))
	}
	other, err := j.Begin(b.Context(), journal.Info{Run: "r2"})
	require.NoError(b, err)
	for b.Loop() {
		for n := range 1000 {
			list, err := cachedAnswers(b.Context(), other, answerKey(n))
			require.NoError(b, err)
			require.Len(b, list, 1)
		}
	}
}

// What was removed is not in the file any more, and its space is given back.
func TestRemovedRunIsGone(t *testing.T) {
	t.Parallel()
	path := written(t, 50)
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	var blob []byte
	require.NoError(t, db.QueryRow("select kept from batches where n = 20").Scan(&blob))
	require.NoError(t, db.Close())
	before := files(t, filepath.Dir(path))["runs.db"]
	require.True(t, strings.Contains(before, string(blob[100:200])))
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	_, bytes, err := j.Remove(t.Context(), time.Now().Add(time.Hour))
	require.NoError(t, err)
	require.NoError(t, j.Close())
	after := files(t, filepath.Dir(path))["runs.db"]
	require.False(t, strings.Contains(after, string(blob[100:200])))
	require.Less(t, len(after), len(before)/2)
	require.EqualValues(t, len(before)-len(after), bytes)
}

// Decisions count for the length of a row as other lines do, however many come
// at once.
func TestRowOfManyDecisionsIsCut(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	story := newFakeRun("r1", 1)
	asked := story.Ask(story.Task(1), label.Confidential)[0].Record
	decisions := &record.Prompt{}
	for len(decisions.Handoffs) < 500 {
		decisions.Handoffs = append(decisions.Handoffs, asked.Handoffs...)
	}
	goOn := make(chan struct{})
	r.Append(story.Events(story.Task(1), event.TaskReady), func(error) { <-goOn }) // all that follows waits for it
	for range 20 {
		r.Append([]record.Entry{{Record: decisions}}, nil)
	}
	close(goOn)
	_, err = r.Close(t.Context())
	require.NoError(t, err)
	require.NoError(t, j.Close())

	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.Query("select rest from batches")
	require.NoError(t, err)
	long, all := 0, 0
	for rows.Next() {
		var blob []byte
		require.NoError(t, rows.Scan(&blob))
		text, err := journal.Decompress(blob)
		require.NoError(t, err)
		long, all = max(long, len(text)), all+len(text)
	}
	require.NoError(t, rows.Err())
	require.Greater(t, all, 3<<20)
	require.Less(t, long, 2<<20, "of %d", all)
}
