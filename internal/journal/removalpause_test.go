package journal_test

import (
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
)

// A slowClock takes 25 ms to return the time, which a transaction does at most
// twice while another process has a run. It counts what it took.
type slowClock struct {
	mu      sync.Mutex // guards the rest
	took    time.Duration
	row     int // calls in a row without a rest between them
	longest int
	last    time.Time
}

func (c *slowClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Now().After(c.last) {
		c.row = 0
	}
	time.Sleep(25 * time.Millisecond)
	c.took += 25 * time.Millisecond
	c.row++
	c.longest = max(c.longest, c.row)
	c.last = time.Now()
	return noon.Add(time.Hour)
}

// TestRemovalPausesForOtherProcesses removes runs with a clock that takes time, so
// that transactions do. Beside another process, the removal ends a transaction
// after some ms and then leaves the file free for six times as long. Alone, it
// takes longer transactions and hardly rests.
func TestRemovalPausesForOtherProcesses(t *testing.T) {
	t.Parallel()
	made := filepath.Join(t.TempDir(), "runs.db") // outside of synctest, where the clock is the real one
	filled(t, made, 3, 260)                       // more rows each than one statement removes
	for name, beside := range map[string]bool{"beside another process": true, "alone": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			for name, text := range files(t, filepath.Dir(made)) {
				put(t, filepath.Join(folder, name), text)
			}
			path := filepath.Join(folder, "runs.db")
			synctest.Test(t, func(t *testing.T) {
				other, err := journal.Open(path, journal.Options{Now: func() time.Time { return noon.Add(time.Hour) }})
				require.NoError(t, err)
				defer other.Close() //nolint:errcheck // its run has nothing
				if beside {
					_, err := other.Begin(t.Context(), journal.Info{Run: "open", Time: noon.Add(time.Hour)})
					require.NoError(t, err)
				}
				var clock slowClock
				gc, err := journal.Open(path, journal.Options{Now: clock.now})
				require.NoError(t, err)
				began := time.Now()
				gone, _, err := gc.Remove(t.Context(), noon.Add(30*time.Minute))
				took := time.Since(began)
				require.NoError(t, err)
				require.Len(t, gone, 3)
				require.NoError(t, gc.Close())
				if beside {
					require.LessOrEqual(t, clock.longest, 3, "calls in one transaction")
					require.GreaterOrEqual(t, took, 6*clock.took)
				} else {
					require.Greater(t, clock.longest, 3)
					require.LessOrEqual(t, took, clock.took*5/4)
				}
			})
		})
	}
}
