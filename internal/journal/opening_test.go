package journal_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/workdir"
)

// A plan compares it with what commands may read.
//
// Requirement: G65.
func TestPathOfAJournalIsAbsolute(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	j, err := journal.Open("runs.db", journal.Options{Dir: workdir.Dir(dir)})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // nothing was written
	require.Equal(t, filepath.Join(dir, "runs.db"), j.Path())
}

// Processes that open a new journal at the same time all succeed: each waits while
// another one creates the tables or recovers the log.
func TestManyOpenANewJournalAtOnce(t *testing.T) {
	t.Parallel()
	for range 4 {
		path := filepath.Join(t.TempDir(), "runs.db")
		var all sync.WaitGroup
		errs := make([]error, 6)
		for i := range errs {
			all.Go(func() {
				j, err := journal.Open(path, journal.Options{})
				if err == nil {
					err = j.Close()
				}
				errs[i] = err
			})
		}
		all.Wait()
		for _, err := range errs {
			require.NoError(t, err)
		}
	}
}
