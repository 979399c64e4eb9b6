package cli

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/stretchr/testify/require"
)

// nobody is the ID of a user without access to the folder, even if the tests run as root.
const nobody = 65534

func TestJournalInAReadOnlyFolder(t *testing.T) {
	t.Parallel()
	server := startCounting(t)
	for _, made := range []bool{false, true} {
		dir := relayFolder(t)
		closed := dir
		if made {
			closed = filepath.Join(dir, journals.FolderName)
			require.NoError(t, os.Mkdir(closed, 0o700))
		}
		cmd := call{bare: true, dir: dir, args: []string{"run"}, env: server.env()}.command(t)
		if os.Getuid() == 0 {
			require.NoError(t, os.Chmod(scratch, 0o711))
			for _, name := range []string{"team.yaml", "note.md"} {
				require.NoError(t, os.Chmod(filepath.Join(dir, name), 0o644))
			}
			require.NoError(t, os.Chmod(filepath.Dir(dir), 0o755))
			require.NoError(t, os.Chown(closed, nobody, nobody))
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		require.NoError(t, os.Chmod(closed, 0o500))
		t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		require.Equal(t, exit.StatusNoRun, statusAfter(t, cmd.Run()), "%s", stderr.String())
		require.Contains(t, stderr.String(), "permission denied")
		require.Contains(t, stderr.String(), "nothing was run; use --journal FILE for another file, or --no-journal to store nothing")
		require.Empty(t, stdout.String())
		require.Empty(t, server.takeCalls())
	}
}
