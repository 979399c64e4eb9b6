package journal

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

// A run cannot begin while its journal is being closed, and no process keeps its
// lease; the file is closed after that.
func TestRunThatBeginsWhileItsJournalIsClosed(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "runs.db")
	synctest.Test(t, func(t *testing.T) {
		var j *Journal
		closed := make(chan error, 1)
		closing := false
		now := func() time.Time {
			if !closing { // with the lease in sight
				closing = true
				go func() { closed <- j.Close() }()
				<-j.writer.end
			}
			return time.Now()
		}
		j, err := Open(path, Options{Now: now})
		require.NoError(t, err)
		r, err := j.Begin(t.Context(), Info{Run: "r1", Time: time.Now()})
		require.ErrorIs(t, err, ErrClosed)
		require.Nil(t, r)
		require.NoError(t, <-closed)
	})
	j, err := Open(path, Options{ReadOnly: true})
	require.NoError(t, err)
	list, err := j.store.runs(t.Context(), "", all, whole)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.Nil(t, list[0].held)
	require.NoError(t, j.Close())
}
