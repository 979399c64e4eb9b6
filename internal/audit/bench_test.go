package audit_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/audit"
)

// unsynced is a file whose writes are left to the system.
type unsynced struct{ io.Writer }

// BenchmarkAppend writes decisions one by one and ten at a time, as a prompt
// with ten pieces of context has them. A figure is of one decision.
func BenchmarkAppend(b *testing.B) {
	for _, at := range []int{1, 10} {
		for _, to := range []string{"nothing", "discard", "file", "synced file"} {
			b.Run(fmt.Sprintf("%d to %s", at, to), func(b *testing.B) {
				file, err := os.Create(filepath.Join(b.TempDir(), "trace"))
				require.NoError(b, err)
				defer file.Close()
				w := map[string]io.Writer{"discard": io.Discard, "file": unsynced{file}, "synced file": file}[to]
				c, err := audit.New(w, audit.Options{})
				require.NoError(b, err)
				l := list(0, at)
				b.ReportAllocs()
				for b.Loop() {
					if err := c.Append(l...); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*at), "ns/decision")
			})
		}
	}
}
