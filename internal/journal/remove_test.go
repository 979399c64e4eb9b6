package journal_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
)

// A run that is claimed after the runs were listed is not removed from the process
// that claimed it.
func TestRunIsClaimedWhileOldOnesAreRemoved(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, path string) {
		dead := journal.ThisHolder()
		dead.Started += "0"
		there, err := openAt(path, journal.Options{Holder: &dead, Now: func() time.Time { return noon }})
		require.NoError(t, err)
		for _, id := range []string{"r1", "r2"} {
			_, err = there.Begin(t.Context(), journal.Info{Run: id, Time: noon})
			require.NoError(t, err)
		}
		later := noon.Add(time.Hour)
		worker, err := openAt(path, journal.Options{Now: func() time.Time { return later }})
		require.NoError(t, err)
		var r *journal.Run
		gc, err := openAt(path, journal.Options{Now: func() time.Time {
			if r == nil { // by now the leases of both were found to be over
				r, _, err = worker.Resume(t.Context(), "r1")
				require.NoError(t, err)
			}
			return later
		}})
		require.NoError(t, err)
		gone, _, err := gc.Remove(t.Context(), later)
		require.NoError(t, err)
		require.Equal(t, []string{"r2"}, gone)
		require.NotNil(t, r)
		story := newFakeRun("r1", 1)
		require.NoError(t, appendEntries(r, story.Events(story.Task(1), event.TaskReady)...))
		require.NoError(t, errors.Join(worker.Close(), gc.Close(), there.Close()))
	})
}

// The runs that were removed before an error are returned with it.
func TestInterruptedRemovalIsFinished(t *testing.T) {
	t.Parallel()
	path := written(t, 1)
	edit(t, path, `create trigger stop before delete on answers when old.run = 1 begin select raise(abort, 'no'); end`)
	j, err := journal.Open(path, journal.Options{})
	require.NoError(t, err)
	r, err := j.Begin(t.Context(), journal.Info{Run: "r2"})
	require.NoError(t, err)
	_, err = r.Close(t.Context())
	require.NoError(t, err)
	gone, bytes, err := j.Remove(t.Context(), time.Now().Add(time.Hour))
	require.ErrorContains(t, err, "no")
	require.Equal(t, []string{"r2"}, gone)
	require.Zero(t, bytes)
	_, err = j.Find(t.Context(), "r1")
	require.NoError(t, err)
	require.NoError(t, j.Close())
}

// A run that was partly removed when the process ended is no longer found, and the
// next removal removes the rest.
func TestRemovalAfterAKill(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, path string) {
		filled(t, path, 3, 20)
		allow := refuseRemoval(t, path, "old.run = 3")
		dead := journal.ThisHolder()
		dead.Started += "0"
		killed, err := openAt(path, journal.Options{Holder: &dead, Now: func() time.Time { return noon.Add(time.Hour) }})
		require.NoError(t, err)
		_, _, err = killed.Remove(t.Context(), noon.Add(time.Hour))
		require.ErrorContains(t, err, "no")
		require.NoError(t, killed.Close())
		allow()

		j, err := openAt(path, journal.Options{})
		require.NoError(t, err)
		_, err = j.Find(t.Context(), "r2")
		require.ErrorIs(t, err, journal.ErrUnknownRun)
		_, _, err = j.Resume(t.Context(), "r2")
		require.ErrorIs(t, err, journal.ErrUnknownRun)
		r, err := j.Begin(t.Context(), journal.Info{Run: "next", Time: noon.Add(time.Hour)})
		require.NoError(t, err)
		write(t, r, 1)
		head, err := r.End(t.Context())
		require.NoError(t, err)
		require.EqualValues(t, "verified", requireVerified(t, j, "next", nil, head).Status)
		gone, bytes, err := j.Remove(t.Context(), noon)
		require.NoError(t, err)
		require.Empty(t, gone, "none began before that")
		require.Positive(t, bytes)
		require.NoError(t, j.Close())
		for _, table := range []string{"answers", "batches", "turns", "leases"} {
			var n int
			require.NoError(t, tables(t, path).QueryRow("select count(*) from "+table+" where run = 3").Scan(&n))
			require.Zero(t, n, table)
		}
	})
}
