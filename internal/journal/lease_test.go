package journal_test

import (
	"context"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
)

// elsewhere is a process that cannot be seen from here.
var elsewhere = journal.Holder{Host: "elsewhere", Boot: "b", PID: 7, Started: "1"}

// A run that lives elsewhere is watched until its lease is renewed; one that
// died there is had after 15 s.
func TestRunOfAnotherHost(t *testing.T) {
	t.Parallel()
	folder := t.TempDir() // outside, where the clock is the real one
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(folder, "runs.db")
		there, err := journal.Open(path, journal.Options{Holder: &elsewhere})
		require.NoError(t, err)
		r, err := there.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		here, err := journal.Open(path, journal.Options{})
		require.NoError(t, err)
		began := time.Now()
		_, _, err = here.Resume(t.Context(), "r1")
		var taken *journal.LeaseError
		require.ErrorAs(t, err, &taken)
		require.Equal(t, elsewhere, taken.Holder)
		require.LessOrEqual(t, time.Since(began), 6*time.Second, "until its next beat")

		waiting, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, _, err = here.Resume(waiting, "r1")
		require.ErrorIs(t, err, context.DeadlineExceeded)

		story := newFakeRun("r1", 1)
		time.Sleep(time.Minute) // it renews
		require.NoError(t, appendEntries(r, story.Events(story.Task(1), event.TaskReady)...))
		require.NoError(t, there.Close())
		r, _, err = here.Resume(t.Context(), "r1")
		require.NoError(t, err)
		_, err = r.Close(t.Context())
		require.NoError(t, err)
		require.NoError(t, here.Close())
	})
}

func TestRunOfAHostThatIsGone(t *testing.T) {
	t.Parallel()
	folder, copied := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		there, err := journal.Open(filepath.Join(folder, "runs.db"), journal.Options{Holder: &elsewhere})
		require.NoError(t, err)
		_, err = there.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		for name, text := range files(t, folder) {
			if name != "runs.db-shm" {
				put(t, filepath.Join(copied, name), text)
			}
		}
		require.NoError(t, there.Close())

		here, err := journal.Open(filepath.Join(copied, "runs.db"), journal.Options{})
		require.NoError(t, err)
		began := time.Now()
		_, _, err = here.Resume(t.Context(), "r1")
		require.NoError(t, err)
		require.Equal(t, 15*time.Second, time.Since(began))
		require.NoError(t, here.Close())
	})
}

// A dead process of this host loses its lease at once.
func TestRunOfADeadProcess(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, path string) {
		dead := journal.ThisHolder()
		dead.Started += "0" // its id was given to this one since
		there, err := openAt(path, journal.Options{Holder: &dead})
		require.NoError(t, err)
		_, err = there.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		here, err := openAt(path, journal.Options{})
		require.NoError(t, err)
		_, _, err = here.Resume(t.Context(), "r1")
		require.NoError(t, err)
		require.NoError(t, here.Close())
		require.NoError(t, there.Close())
	})
}

// A process that finds its run claimed by another one writes nothing more of it,
// and leaves the other's lease alone.
func TestRunClaimedByAnotherProcessIsLost(t *testing.T) {
	t.Parallel()
	inStores(t, func(t *testing.T, path string) {
		dead := journal.ThisHolder()
		dead.Started += "0"
		there, err := openAt(path, journal.Options{Holder: &dead})
		require.NoError(t, err)
		lost, err := there.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		kept, err := there.Begin(t.Context(), journal.Info{Run: "r2"})
		require.NoError(t, err)
		here, err := openAt(path, journal.Options{})
		require.NoError(t, err)
		r, _, err := here.Resume(t.Context(), "r1")
		require.NoError(t, err)

		story := newFakeRun("r1", 1)
		entries := story.Events(story.Task(1), event.TaskReady)
		first := appendEntries(lost, entries...)
		require.ErrorIs(t, first, journal.ErrLost)
		require.Equal(t, first, appendEntries(lost, entries...))
		require.NoError(t, appendEntries(kept, entries...), "another run is not touched")
		require.NoError(t, there.Close())
		require.NoError(t, appendEntries(r, entries...))
		require.NoError(t, here.Close())
	})
}

// A clock that is a little behind is waited for.
func TestClockThatIsALittleBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ahead := time.Second
		j := journal.InMemory(journal.Options{Now: func() time.Time { return time.Now().Add(ahead) }})
		r, err := j.Begin(t.Context(), journal.Info{Run: "r1"})
		require.NoError(t, err)
		_, err = r.Close(t.Context())
		require.NoError(t, err)
		ahead = -500 * time.Millisecond
		began := time.Now()
		_, _, err = j.Resume(t.Context(), "r1")
		require.NoError(t, err)
		require.Equal(t, 1500*time.Millisecond, time.Since(began))
		require.NoError(t, j.Close())
	})
}

// A clock that was set back is refused.
func TestClockThatWasSetBack(t *testing.T) {
	t.Parallel()
	clock := &testClock{now: noon.Add(time.Hour)}
	j := journal.InMemory(journal.Options{Now: clock.time})
	defer j.Close() //nolint:errcheck // it is in memory
	r := beginRun(t, j, "r1")
	require.NoError(t, appendEntries(r, newFakeRun("r1", 1).beginning(1)))
	endRun(t, r)
	clock.set(noon.Add(time.Hour - 3*time.Second))
	_, _, err := j.Resume(t.Context(), "r1")
	require.ErrorIs(t, err, journal.ErrClock)
	clock.set(noon.Add(time.Hour))
	r, _, err = j.Resume(t.Context(), "r1")
	require.NoError(t, err, "who is refused has not kept the lease")
	endRun(t, r)
}
