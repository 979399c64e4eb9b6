package journal_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/slowtest"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
)

// A disk that gets full while a journal is open leaves no room to remove runs,
// until the removal gives the reserve back.
func TestRemovalUsesTheReserveOfADiskThatGotFull(t *testing.T) {
	t.Parallel()
	folder := mounted(t, "6m")
	path := filepath.Join(folder, "runs.db")
	filled(t, path, 6, 30)
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	fill(t, folder, 0)
	gone, bytes, err := j.Remove(t.Context(), noon.Add(5*time.Minute))
	require.NoError(t, err)
	require.Len(t, gone, 5)
	require.Positive(t, bytes)
	require.NoError(t, j.Close())
}

// A journal of the form without an index can be emptied on a full disk, also if
// the index is larger than the reserve.
func TestOldRunsAreRemovedWhereTheIndexHasNoRoom(t *testing.T) {
	t.Parallel()
	slowtest.Only(t)
	folder := mounted(t, "8m")
	path := filepath.Join(folder, "runs.db")
	filled(t, path, 2, 30)
	edit(t, path, "drop index answers_of", "pragma user_version = 1",
		"with recursive some(i) as (select 1 union all select i + 1 from some where i < 20000) insert into answers select randomblob(32), min(n), 1 from some, batches where run = 1 group by i")
	fill(t, folder, 0)
	j, err := journal.Open(path, journal.Options{UseReserve: true})
	require.NoError(t, err)
	gone, _, err := j.Remove(t.Context(), noon.Add(30*time.Second))
	require.NoError(t, err)
	require.Equal(t, []string{"r0"}, gone)
	require.NoError(t, j.Close())
	j, err = journal.Open(path, journal.Options{})
	require.NoError(t, err, "there is room for the index")
	require.NoError(t, j.Close())
}
