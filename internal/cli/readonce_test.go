package cli

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
)

// chainFolder returns a folder with a stored run of tasks each of which depends on the one before.
func chainFolder(t *testing.T, tasks int) (dir string) {
	t.Helper()
	var spec strings.Builder
	spec.WriteString("name: chain\nmodel: m\nagents: [{name: solo}]\ntasks:\n")
	for i := range tasks {
		spec.WriteString(fmt.Sprintf("  - {title: Task %d, assignee: solo, description: Do your part., dependsOn: [", i))
		if i > 0 {
			spec.WriteString(fmt.Sprintf("Task %d", i-1))
		}
		spec.WriteString("]}\n")
	}
	dir = clitest.Folder(t, map[string]string{"team.yaml": spec.String()})
	got := offlineRun(t, call{dir: dir})
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	return dir
}

// TestDocumentsReadEachRowOnce checks that what the documents of a run are made from is one reading of its rows.
func TestDocumentsReadEachRowOnce(t *testing.T) {
	t.Parallel()
	driver, rows := journaltest.CountRows()
	j, err := journal.Open(filepath.Join(chainFolder(t, 30), journals.FolderName, journals.FileName), journal.Options{Driver: driver})
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	found, err := j.Find(t.Context(), "")
	require.NoError(t, err)
	tail, err := j.Tail(t.Context(), found.Run)
	require.NoError(t, err)
	rows()
	for state := journal.TailReads; state == journal.TailReads; {
		_, state, err = tail.Next(t.Context())
		require.NoError(t, err)
	}
	all := rows()
	require.Greater(t, all, 30)
	con, _, _ := clitest.Console(t)
	rows()
	_, err = journals.Load(t.Context(), con, j, found, "")
	require.NoError(t, err)
	require.LessOrEqual(t, rows(), all+10)
}

// TestServeReadsARunOnce checks that the documents of a run that ended are made from one reading of its rows, however
// often they are requested: they stay the same when the rows cannot be read any more.
func TestServeReadsARunOnce(t *testing.T) {
	t.Parallel()
	for _, accepts := range []string{"confidential", "internal"} {
		t.Run(accepts, func(t *testing.T) {
			t.Parallel()
			dir := chainFolder(t, 3)
			require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}).status)
			require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}).status)
			s := serveHere(t, call{dir: dir, args: []string{"--accepts", accepts}})
			runs := listRuns(t, call{dir: dir})
			require.Len(t, runs, 3)
			for _, run := range runs {
				s.get("/runs/" + run.Run)
			}
			of := "/runs/" + runs[2].Run // the one that was read first stays in memory too
			s.get("/runs/" + runs[0].Run)
			db, err := sql.Open("sqlite", filepath.Join(dir, journals.FolderName, journals.FileName))
			require.NoError(t, err)
			_, err = db.ExecContext(t.Context(), "update batches set kept = x'00', rest = x'00', parts = x'00'")
			require.NoError(t, err)
			require.NoError(t, db.Close())
			broken := call{dir: dir, args: []string{"show"}}.run(t)
			require.NotEqual(t, exit.StatusOK, broken.status, "%+v", broken)
			for _, path := range []string{"/runs", of, of + "/tasks/Task%202", of + "/usage", of + "/artifacts", of + "/receipts", of + "/receipts?task=Task%202", of + "/receipts?contains=answer", of + "/handoffs?task=Task%202"} {
				first := s.get(path)
				require.Equal(t, first, s.get(path), path)
			}
		})
	}
}
