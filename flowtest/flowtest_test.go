package flowtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/flowtest"
)

func TestLoadReadsAFileOrItsFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "team.yaml"), []byte(chains), 0o600))
	for _, path := range []string{dir, filepath.Join(dir, "team.yaml")} {
		f := flowtest.Load(t, path)
		f.Reaches(f.PlantInput("rules"), "writer")
		f.Run(t)
		f.Run(t) // each is a run of its own
	}
	tb := &fake{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		flowtest.Load(tb, filepath.Join(dir, "tame.yaml"))
	}()
	<-done
	require.Len(t, tb.errors, 1)
	require.Contains(t, tb.errors[0], "tame.yaml")
}
