package cli

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

// The first signal ends a command that checks a large goal with slow patterns. The
// check alone takes more than ten seconds.
//
// Requirement: G29.
func TestSlowPatternEndsWithTheSignal(t *testing.T) {
	t.Parallel()
	var spec strings.Builder
	spec.WriteString("agents: [{name: writer}]\ncoordinator: {model: planner}\npolicy:\n  redact:\n    patterns:\n")
	for _, name := range []string{"a", "b", "c", "d"} {
		spec.WriteString("      - {name: " + name + ", regexp: '(?:[a-z0-9]{1,10}x){1,40}9z'}\n")
	}
	spec.WriteString("goal: " + strings.Repeat("0x1x2x", 40_000) + "\n")
	dir := clitest.Folder(t, map[string]string{"team.yaml": spec.String()})
	for _, args := range [][]string{{"check", dir}, {"plan", dir, "--offline"}, {"run", dir, "--offline", "--no-journal"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			con, stdout, stderr := clitest.Console(t, args...)
			signals := make(chan os.Signal, 1)
			con.Signals = signals
			time.AfterFunc(500*time.Millisecond, func() { signals <- syscall.SIGTERM })
			start := time.Now()
			require.Equal(t, exit.StatusSIGTERM, runCommandLine(con), "%s", stderr)
			require.Less(t, time.Since(start), 8*time.Second)
			require.Empty(t, stdout.String())
		})
	}
}
