package examples_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/flowtest"
)

// TestNoCanaryLeavesItsWay plants in every input and every result of every
// example, with agents that repeat whatever they read, and looks for each
// canary wherever anything is written.
func TestNoCanaryLeavesItsWay(t *testing.T) {
	t.Parallel()
	specs, err := filepath.Glob("*/team.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, specs)
	for _, spec := range specs {
		for _, careless := range []bool{false, true} {
			name := filepath.Dir(spec)
			if careless {
				name += ", careless"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				f := flowtest.Load(t, spec)
				if careless {
					f.Careless()
				}
				f.PlantEverywhere()
				f.Run(t)
			})
		}
	}
}
