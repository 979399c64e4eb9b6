//go:build unix

package journal_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/steer"
)

// TestAFileThatIsRemovedWhileOpen stores nothing more and is not read any more, since other processes would not find
// it. A run that worked fails, and one that begins once the file is back is stored.
func TestAFileThatIsRemovedWhileOpen(t *testing.T) {
	t.Parallel()
	for name, takeAway := range map[string]func(t *testing.T, path string){
		"removed":  func(*testing.T, string) {},
		"replaced": func(t *testing.T, path string) { require.NoError(t, os.Rename(written(t, 1), path)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := written(t, 1)
			j, err := journal.Open(path, journal.Options{})
			require.NoError(t, err)
			defer j.Close() //nolint:errcheck // its run has failed
			r := beginRun(t, j, "r2")
			tail, err := j.Tail(t.Context(), "r2")
			require.NoError(t, err)
			require.NoError(t, os.Rename(path, path+".kept"))
			takeAway(t, path)

			_, err = j.Find(t.Context(), "r2")
			require.ErrorIs(t, err, journal.ErrGone)
			require.ErrorContains(t, err, path)
			_, err = j.Newest(t.Context(), "", 1)
			require.ErrorIs(t, err, journal.ErrGone)
			_, _, err = tail.Next(t.Context())
			require.ErrorIs(t, err, journal.ErrGone)
			require.ErrorIs(t, j.Steer(t.Context(), "r2", steer.Command{Kind: steer.Pause, By: "ann"}), journal.ErrGone)
			_, err = j.Begin(t.Context(), journal.Info{Run: "r3", Name: "claims", Command: "run", Time: noon})
			require.ErrorIs(t, err, journal.ErrGone)
			require.ErrorIs(t, appendEntries(r, record.Entry{Command: &record.Command{Kind: steer.Pause, By: "ann"}}), journal.ErrGone)

			require.NoError(t, os.Rename(path+".kept", path))
			endRun(t, beginRun(t, j, "r4"))
			_, err = j.Find(t.Context(), "r4")
			require.NoError(t, err)
		})
	}
}
