package cli

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/view"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// A run that ends while it is read has either not ended or has its answer.
func TestARunThatEndsWhileItIsRead(t *testing.T) {
	t.Parallel()
	j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
	require.NoError(t, err)
	defer j.Close() //nolint:errcheck // it ends with the test
	run, err := j.Begin(t.Context(), journal.Info{Run: "r", Command: "run"})
	require.NoError(t, err)
	store := func(e record.Entry) {
		stored := make(chan error, 1)
		run.Append([]record.Entry{e}, func(err error) { stored <- err })
		require.NoError(t, <-stored)
	}
	store(record.Entry{Begin: &record.RunStart{Run: "r", Time: time.Now(), Label: new(label.Internal)}})
	con, _, _ := clitest.Console(t)
	con.Now = func() time.Time { // is called once its rows are read
		store(record.Entry{End: &record.RunEnd{Time: time.Now(), Status: "ok", Answer: "42"}})
		_, err := run.End(t.Context())
		require.NoError(t, err)
		return time.Now()
	}
	follower, err := j.Follow(t.Context(), "r")
	require.NoError(t, err)
	k, err := journals.LoadNow(t.Context(), con, j, follower)
	require.NoError(t, err)
	if of := view.Of(k); !of.Ended.IsZero() {
		require.Equal(t, "42", of.Output)
	}
	con.Now = time.Now
	k, err = journals.LoadNow(t.Context(), con, j, follower)
	require.NoError(t, err)
	require.Equal(t, "42", view.Of(k).Output)
	require.False(t, view.Of(k).Ended.IsZero())
}
