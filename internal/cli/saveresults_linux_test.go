package cli

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
)

// TestResultsOnAFullDisk checks that a run whose results cannot be saved prints them.
func TestResultsOnAFullDisk(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{
		"team.yaml":   strings.Replace(one, "model: test-model", "model: test-model\noffline: script.yaml", 1),
		"script.yaml": "replies: [{text: '{{ range 20000 }}0123456789{{ end }}'}]",
		"disk/keep":   "",
	})
	disk := filepath.Join(dir, "disk")
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=64k"); err != nil {
		t.Skipf("a disk cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { require.NoError(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	got := call{dir: dir, args: strings.Fields("run --offline --save disk")}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, got.stderr)
	require.Contains(t, got.stderr, "runteam: --save disk: 01-Answer.md: no space left on device; 0 files written")
	require.Contains(t, got.stdout, "0123456789")
	require.Empty(t, filesIn(t, disk), "no part of a file stays")
}
