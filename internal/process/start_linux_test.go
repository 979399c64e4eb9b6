package process_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/process"
)

// BenchmarkStart measures the start and the end of a program that does nothing. An unconfined one is
// the floor.
func BenchmarkStart(b *testing.B) {
	for _, bb := range []struct {
		name    string
		confine bool
	}{{"unconfined", false}, {"confined", true}} {
		b.Run(bb.name, func(b *testing.B) {
			skipUnlessConfines(b, bb.confine)
			command := process.Command{Path: "/bin/true", Dir: b.TempDir(), Confine: bb.confine}
			for b.Loop() {
				_, err := process.Run(b.Context(), &command, nil, 1000)
				require.NoError(b, err)
			}
		})
	}
}
