package journal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
)

// TestProcessesUpdateLimits checks that no update of a text is lost, that each endpoint has a text of its own, and that the
// database has no URL.
func TestProcessesUpdateLimits(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		var wg sync.WaitGroup
		const processes, updates = 4, 25
		for range processes {
			j := openQueue(t, open, journal.Options{})
			wg.Go(func() {
				for range updates {
					for _, endpoint := range []string{"http://a/v1", "http://b/v1"} {
						err := j.UpdateLimits(t.Context(), endpoint, func(now time.Time, stored []byte) []byte {
							n, _ := strconv.Atoi(string(stored))
							return []byte(strconv.Itoa(n + 1))
						})
						if !errors.Is(err, context.Canceled) {
							require.NoError(t, err)
						}
					}
				}
			})
		}
		wg.Wait()
		j := openQueue(t, open, journal.Options{})
		for _, endpoint := range []string{"http://a/v1", "http://b/v1"} {
			require.NoError(t, j.UpdateLimits(t.Context(), endpoint, func(now time.Time, stored []byte) []byte {
				require.Equal(t, fmt.Sprint(processes*updates), string(stored))
				require.WithinDuration(t, time.Now(), now, time.Minute)
				return bytes.Clone(stored)
			}))
		}
	})
}

// TestLimitsNeedAJournalThatCanBeWritten checks that a journal that is read-only or closed shares no limits.
func TestLimitsNeedAJournalThatCanBeWritten(t *testing.T) {
	onBothStores(t, func(t *testing.T, open openFunc) {
		j := openQueue(t, open, journal.Options{})
		reader, err := open(journal.Options{ReadOnly: true})
		require.NoError(t, err)
		never := func(time.Time, []byte) []byte {
			t.Error("there is nothing to update")
			return nil
		}
		require.ErrorIs(t, reader.UpdateLimits(t.Context(), "http://a/v1", never), journal.ErrReadOnly)
		require.NoError(t, reader.Close())
		require.NoError(t, j.Close())
		require.ErrorIs(t, j.UpdateLimits(t.Context(), "http://a/v1", never), journal.ErrClosed)
	})
}
