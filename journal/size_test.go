package journal_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/journal/journaltest"
)

// A journal of 400 tasks that answer with 1,000 characters each, one after the
// other, takes at most three times the bytes of their prompts and results.
func TestJournalIsSmall(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	path := filepath.Join(folder, "runs.db")
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
	require.NoError(t, err)
	story, texts := journaltest.NewTeller("r1", 1), 0
	for n := range 400 {
		before, after := story.Complete(n, 1000)
		require.NoError(t, journaltest.Append(r, before...))
		require.NoError(t, journaltest.Append(r, after...))
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
	require.Greater(t, texts, 400*2000)
	require.Less(t, closed, 3*texts)
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

// BenchmarkLoad loads a run of 10,000 tasks.
func BenchmarkLoad(b *testing.B) {
	j, err := journal.Open(filepath.Join(b.TempDir(), "runs.db"), journal.Options{})
	require.NoError(b, err)
	defer j.Close()
	r, err := j.Begin(b.Context(), journal.Info{Run: "r1", Time: time.Now()})
	require.NoError(b, err)
	story := journaltest.NewTeller("r1", 1)
	for n := range 10_000 {
		before, after := story.Complete(n, 1000)
		require.NoError(b, journaltest.Append(r, before...))
		require.NoError(b, journaltest.Append(r, after...))
	}
	for b.Loop() {
		s, err := j.Load(b.Context(), "r1")
		require.NoError(b, err)
		require.Len(b, s.History.Log, 20_000)
	}
}
