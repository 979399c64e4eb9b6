package journal_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journal/postgres"
	"github.com/runteam/runteam/internal/pgtest"
)

// A copy that is refused or interrupted leaves no run in the target, which takes the next copy.
func TestCopyIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	for name, place := range map[string]func(t *testing.T) (open func(journal.Options) (*journal.Journal, error), target func(journal.Options) journal.CopyTarget){
		"file": func(t *testing.T) (func(journal.Options) (*journal.Journal, error), func(journal.Options) journal.CopyTarget) {
			path := filepath.Join(t.TempDir(), "runs.db")
			return func(o journal.Options) (*journal.Journal, error) { return journal.Open(path, o) },
				func(o journal.Options) journal.CopyTarget { return journal.InFile(path, o) }
		},
		"database": func(t *testing.T) (func(journal.Options) (*journal.Journal, error), func(journal.Options) journal.CopyTarget) {
			address := pgtest.Address(t)
			return func(o journal.Options) (*journal.Journal, error) { return postgres.Open(t.Context(), address, o) },
				func(o journal.Options) journal.CopyTarget {
					to, err := postgres.InDatabase(address, o)
					require.NoError(t, err)
					return to
				}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := journal.Options{Key: make([]byte, journal.KeyBytes)}
			openFrom, _ := place(t)
			openTo, target := place(t)
			from, err := openFrom(o)
			require.NoError(t, err)
			defer from.Close()
			begin := func(id string) *journal.Run {
				r, err := from.Begin(t.Context(), journal.Info{Run: id, Name: "n"})
				require.NoError(t, err)
				return r
			}
			for _, id := range []string{"one", "two"} {
				_, err = begin(id).End(t.Context())
				require.NoError(t, err)
			}
			requireEmpty := func(err, want error) {
				t.Helper()
				require.ErrorIs(t, err, want)
				empty := o
				empty.ReadOnly = true
				to, err := openTo(empty)
				if err != nil {
					require.ErrorContains(t, err, "there is no journal")
					return
				}
				list, err := to.Runs(t.Context())
				require.NoError(t, err)
				require.Empty(t, list)
				require.NoError(t, to.Close())
			}

			live := begin("live")
			_, err = from.CopyTo(t.Context(), target(o), func(int64, int64) {})
			requireEmpty(err, journal.ErrBusy)
			require.ErrorContains(t, err, "works on run live")
			_, err = live.End(t.Context())
			require.NoError(t, err)

			ctx, cancel := context.WithCancel(t.Context())
			_, err = from.CopyTo(ctx, target(o), func(int64, int64) { cancel() })
			requireEmpty(err, context.Canceled)

			late := ""
			_, err = from.CopyTo(t.Context(), target(o), func(int64, int64) {
				if late == "" {
					late = "late"
					_, err := begin(late).End(t.Context())
					require.NoError(t, err)
				}
			})
			requireEmpty(err, journal.ErrBusy)
			require.ErrorContains(t, err, "it has changed since the copy began")

			done, err := from.CopyTo(t.Context(), target(o), func(int64, int64) {})
			require.NoError(t, err)
			require.Equal(t, int64(4), done.Runs)
			_, err = from.CopyTo(t.Context(), target(o), func(int64, int64) {})
			require.ErrorIs(t, err, journal.ErrNotEmpty)
			to, err := openTo(o)
			require.NoError(t, err)
			defer to.Close()
			want, err := from.Runs(t.Context())
			require.NoError(t, err)
			got, err := to.Runs(t.Context())
			require.NoError(t, err)
			require.Equal(t, want, got)
		})
	}
}
