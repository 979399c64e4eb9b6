package journal_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journal/postgres"
	"github.com/runteam/runteam/internal/pgtest"
)

// BenchmarkClaim measures what it takes to claim one of so many queued runs, with a process that reads its inputs, and to
// give it back. The other callers and specs have as many.
func BenchmarkClaim(b *testing.B) {
	for store, open := range map[string]func() (*journal.Journal, error){
		"file": func() (*journal.Journal, error) {
			return journal.Open(filepath.Join(b.TempDir(), "runs.db"), journal.Options{Key: queueKey})
		},
		"postgres": func() (*journal.Journal, error) {
			return postgres.Open(b.Context(), pgtest.Start(b).Schema(b), journal.Options{Key: queueKey})
		},
	} {
		for _, queued := range []int{10, 10_000} {
			b.Run(fmt.Sprintf("%s/%d", store, queued), func(b *testing.B) {
				j, err := open()
				require.NoError(b, err)
				defer j.Close() //nolint:errcheck // it ends with the benchmark
				var all sync.WaitGroup
				for g := range 8 {
					all.Go(func() {
						for i := g; i < queued; i += 8 {
							s := submission(fmt.Sprint("r", i))
							s.By = fmt.Sprint("caller", i%10)
							if i%2 == 1 {
								s.Spec = "other"
							}
							if _, _, err := j.Submit(b.Context(), s); err != nil {
								b.Error(err)
							}
						}
					})
				}
				all.Wait()
				for b.Loop() {
					c, err := j.Claim(b.Context(), claims())
					require.NoError(b, err)
					_, err = c.Run.End(b.Context())
					require.NoError(b, err)
				}
			})
		}
	}
}
