package journal_test

import (
	"database/sql"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/journal/journaltest"
	"github.com/runteam/runteam/trace"
)

// One task of a run is read from a file that was written before rows had marks,
// to be read only and after its migration, and from one with rows of both kinds.
func TestOneTaskIsReadFromRowsWithoutMarks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	story := journaltest.NewTeller("r1", 7)
	info := journal.Info{Run: "r1", Time: journaltest.Noon}
	for n := range 6 {
		of := story.Task(n)
		info.Tasks = append(info.Tasks, trace.Task{ID: of.ID, Title: of.Title, Assignee: of.Assignee})
	}
	r, err := j.Begin(t.Context(), info)
	require.NoError(t, err)
	add(t, r, story, 0, 3)
	require.NoError(t, j.Close())
	dropMarks(t, path)
	execute(t, path, "pragma user_version = 2")
	all := func(tasks int, o journal.Options) {
		j, err := journal.Open(path, o)
		require.NoError(t, err)
		defer j.Close()
		whole, err := j.Trace(t.Context(), "r1")
		require.NoError(t, err)
		for n := range tasks {
			journaltest.RequireTraceOf(t, j, "r1", story.Task(n).ID, whole)
		}
	}
	all(3, journal.Options{ReadOnly: true})
	all(3, journal.Options{})
	j, err = journal.Open(path, journal.Options{})
	require.NoError(t, err)
	r, _, err = j.Resume(t.Context(), "r1")
	require.NoError(t, err)
	add(t, r, story, 3, 6)
	require.NoError(t, j.Close())
	all(6, journal.Options{ReadOnly: true})
}

// dropMarks changes the rows of a journal to what they were before they had marks.
func dropMarks(t *testing.T, path string) {
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	rows, err := db.QueryContext(t.Context(), "select n, parts from batches")
	require.NoError(t, err)
	old := map[int64][]byte{}
	for rows.Next() {
		var n int64
		var stored []byte
		require.NoError(t, rows.Scan(&n, &stored))
		old[n], err = journal.WithoutMarks(stored)
		require.NoError(t, err)
		require.Less(t, len(old[n]), len(stored))
	}
	require.NoError(t, rows.Err())
	require.NotEmpty(t, old)
	for n, parts := range old {
		_, err := db.ExecContext(t.Context(), "update batches set parts = ? where n = ?", parts, n)
		require.NoError(t, err)
	}
}
