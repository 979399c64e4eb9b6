package journal_test

import (
	"bytes"
	"database/sql"
	"encoding/binary"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/audit"
	"github.com/runteam/runteam/internal/journal"
)

// One task of a run is read from a file that was written before rows had marks,
// read-only and after its migration, and from one with rows of both kinds.
func TestOneTaskIsReadFromUnmarkedRows(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	story := newFakeRun("r1", 7)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r1", Time: noon})
	require.NoError(t, err)
	require.NoError(t, appendEntries(r, story.beginning(6)))
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
			requireTraceOf(t, j, "r1", story.Task(n).ID, whole)
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

// Marks are not in the chain. If they are altered so that reading one task alone leaves
// a decision about it out, or says that a task completed, verification finds it.
//
// Requirement: G45.
func TestAlteredMarksAreFound(t *testing.T) {
	t.Parallel()
	for name, alter := range map[string]func(marks []byte) []byte{
		"no marks left":          func([]byte) []byte { return nil },
		"marks of another task":  func(marks []byte) []byte { return bytes.Repeat([]byte{2}, len(marks)) },
		"not completed":          notCompleted,
		"another task completed": func(marks []byte) []byte { return append(slices.Clone(marks), 9, 9, 9, 9, 9, 9, 9, 9) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "runs.db")
			j, err := journal.Open(path, journal.Options{Key: oneKey})
			require.NoError(t, err)
			story := newFakeRun("r1", 7)
			r, err := j.Begin(t.Context(), journal.Info{Run: "r1", Time: noon})
			require.NoError(t, err)
			add(t, r, story, 0, 3)
			require.NoError(t, j.Close())
			verify := func() audit.Report {
				j, err := journal.Open(path, journal.Options{ReadOnly: true, Key: oneKey})
				require.NoError(t, err)
				defer j.Close()
				report, err := j.Verify(t.Context(), "r1", audit.VerifyOptions{})
				require.NoError(t, err)
				return report
			}
			require.NotEqual(t, audit.Broken, verify().Status)
			alterMarks(t, path, alter)
			report := verify()
			require.Equal(t, audit.Broken, report.Status)
			require.Contains(t, report.Why, "the marks of the row that begins here were altered")
		})
	}
}

// notCompleted clears the bits of marks that say that a task completed.
func notCompleted(marks []byte) []byte {
	marks = slices.Clone(marks)
	for i := 7; i < len(marks); i += 8 {
		marks[i] &^= 1
	}
	return marks
}

// alterMarks changes the marks of the last row of a journal.
func alterMarks(t *testing.T, path string, alter func(marks []byte) []byte) {
	db, err := sql.Open("sqlite", path)
	require.NoError(t, err)
	defer db.Close()
	var n int64
	var stored []byte
	require.NoError(t, db.QueryRowContext(t.Context(), "select n, parts from batches order by n desc limit 1").Scan(&n, &stored))
	parts, err := journal.WithoutMarks(stored)
	require.NoError(t, err)
	count, width := binary.Uvarint(stored[2:])
	marks := stored[2+width : 2+width+8*int(count)]
	require.NotEmpty(t, marks)
	changed := alter(marks)
	altered := append(binary.AppendUvarint([]byte{0, 0}, uint64(len(changed)/8)), changed...)
	_, err = db.ExecContext(t.Context(), "update batches set parts = ? where n = ?", append(altered, parts...), n)
	require.NoError(t, err)
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
