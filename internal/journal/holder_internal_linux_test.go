package journal

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

const holdVariable = "RUNTEAM_TEST_HOLD"

// startHolder starts this test once more as a process that says who it is and
// then stays.
func startHolder(t *testing.T, flags uintptr) (*exec.Cmd, Holder) {
	t.Helper()
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	child.Env = append(os.Environ(), holdVariable+"=1")
	child.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags}
	_, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	if err := child.Start(); flags != 0 && err != nil {
		t.Skipf("no namespaces of our own here: %v", err)
	} else {
		require.NoError(t, err)
	}
	line, err := bufio.NewReader(out).ReadBytes('\n')
	require.NoError(t, err)
	var h Holder
	require.NoError(t, json.Unmarshal(line, &h))
	return child, h
}

// hold is what that process does.
func hold(t *testing.T) {
	t.Helper()
	line, err := json.Marshal(ThisHolder())
	require.NoError(t, err)
	_, err = os.Stdout.Write(append(line, '\n'))
	require.NoError(t, err)
	_, err = io.Copy(io.Discard, os.Stdin) // until the test ends or kills it
	require.NoError(t, err)
}

func TestLeaseOfAKilledProcessIsFreeAtOnce(t *testing.T) {
	t.Parallel()
	if os.Getenv(holdVariable) != "" {
		hold(t)
		return
	}
	child, h := startHolder(t, 0)
	me, now := ThisHolder(), time.Now()
	require.Equal(t, child.Process.Pid, h.PID)
	require.NotEmpty(t, h.Started)
	l := (*lease)(nil).next(h, now)
	w := watch{self: me, first: &l, at: now}
	rules := func() leaseVerdict {
		r, _ := w.rule(&l, me.liveness(h, findProcess), 0)
		return r
	}
	require.Equal(t, taken, rules())
	reused := h
	reused.Started += "0"
	require.Equal(t, dead, me.liveness(reused, findProcess), "the process of that id is another")

	require.NoError(t, child.Process.Kill())
	require.NoError(t, unix.Waitid(unix.P_PID, child.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil))
	require.Equal(t, process{gone: true, started: h.Started}, findProcess(h.PID), "its parent has not asked for it yet")
	require.Equal(t, free, rules())
	require.Error(t, child.Wait())
	require.Equal(t, free, rules())
	require.Equal(t, process{gone: true}, procfs(filepath.Join(t.TempDir(), "absent")).find(h.PID), "the kernel says so too")
}

// TestProcessInAnotherNamespaceIsUnknown starts the holder as a container
// would: it is process 1 there, on a host of the same name.
func TestProcessInAnotherNamespaceIsUnknown(t *testing.T) {
	t.Parallel()
	if os.Getenv(holdVariable) != "" {
		hold(t)
		return
	}
	child, h := startHolder(t, unix.CLONE_NEWPID)
	me := ThisHolder()
	require.Equal(t, 1, h.PID)
	require.Equal(t, me.Boot, h.Boot)
	require.Equal(t, me.Host, h.Host)
	require.NotEqual(t, me.Space, h.Space)
	require.Empty(t, h.Started, "the files of processes there are not its own")
	require.Equal(t, unknown, me.liveness(h, findProcess))
	require.Equal(t, unknown, h.liveness(me, findProcess))
	require.NoError(t, child.Process.Kill())
	require.Error(t, child.Wait())
	require.Equal(t, unknown, me.liveness(h, findProcess), "nobody outside can tell; its beats stop")
}

func TestHolderOnLinuxIsComplete(t *testing.T) {
	t.Parallel()
	h := ThisHolder()
	require.Len(t, h.Boot, 36)
	require.True(t, strings.HasPrefix(h.Space, "pid:["), h.Space)
	require.Regexp(t, `^[1-9][0-9]*$`, h.Started)
	require.Equal(t, process{started: h.Started}, findProcess(h.PID))
	require.Equal(t, alive, h.liveness(h, findProcess))
}
