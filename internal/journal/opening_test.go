package journal_test

import (
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
)

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
