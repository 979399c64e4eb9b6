package specfile_test

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/internal/specfile"
)

// The tools of a spec work on a system that cannot confine commands, and a warning says what it lacks.
// The test runs itself where no namespaces can be made.
func TestPresetWithoutConfinement(t *testing.T) {
	t.Parallel()
	const variable, most = "SPECFILE_TEST_UNCONFINED", "/proc/sys/user/max_user_namespaces"
	if os.Getenv(variable) == "" {
		if missing := process.Missing(); missing != "" {
			t.Skip("this system cannot confine programs: it lacks " + missing)
		}
		cmd := exec.Command(os.Args[0], "-test.run=^TestPresetWithoutConfinement$", "-test.v")
		cmd.Env = append(os.Environ(), variable+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		require.Contains(t, string(out), "--- PASS", "%s", out)
		return
	}
	require.NoError(t, os.WriteFile(most, []byte("0"), 0))
	require.Contains(t, process.Missing(), "user namespaces")
	f, err := check(specfile.Options{Path: "-", Stdin: strings.NewReader("model: m\nagents:\n  - {name: a, toolPreset: full}\ntasks: [{title: T, assignee: a, description: d}]\n")})
	require.NoError(t, err)
	require.Contains(t, toolNames(f, 0), "file_edit bash")
	require.Contains(t, strings.Join(warnings(f), "\n"), "3:27: bash: its commands are not confined, since this system lacks user namespaces")
}
