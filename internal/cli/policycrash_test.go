package cli

import (
	"math/rand/v2"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/stretchr/testify/require"
)

// policyKills returns how often each test below kills a process.
func policyKills() int {
	if slowtest.Enabled() {
		return slowtest.Cases(4, 10)
	}
	return 2
}

// crashPolicies returns the folder of a run whose policy is replaced.
func crashPolicies(t *testing.T) string {
	t.Helper()
	own := "    - {from: writer, to: reader, block: [ssn]}\n"
	return clitest.Folder(t, map[string]string{"team.yaml": governedRelay, "narrow.yaml": "policy:\n  rules:\n    - {name: nothing, from: reader, to: writer, mode: minimal}\n" + own})
}

// runningPolicy starts a run, and returns its process, its short ID and a function that sends commands.
func runningPolicy(t *testing.T, server *countingServer, dir string) (running *exec.Cmd, id string, send func(args ...string) outcome) {
	t.Helper()
	running = server.startBlocked(t, call{dir: dir, args: []string{"run", "--progress", "none"}, env: server.env()})
	send = func(args ...string) outcome { return call{dir: dir, args: args}.run(t) }
	_, id, _ = strings.Cut(send("runs", "-o", "json").stdout, `"runId":"`)
	return running, id[:8], send
}

// requirePolicy checks a run that was killed: its policy is the narrow one if and only if the record has the
// command, and a resumed run obeys the policy that is stored.
func requirePolicy(t *testing.T, server *countingServer, id string, send func(args ...string) outcome, dir string) (narrow bool) {
	t.Helper()
	narrow = strings.Contains(send("policy", id).stdout, "reader→writer: minimal")
	require.Equal(t, narrow, strings.Contains(send("show", id).stdout, "replaced the policy"))
	server.mu.Lock()
	clear(server.blocked)
	server.mu.Unlock()
	got := call{dir: dir, args: []string{"resume", id, "--progress", "none"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	shown := send("explain", id, "Second", "-o", "json").stdout
	require.Equal(t, narrow, strings.Contains(shown, `"nothing"`), shown)
	require.Equal(t, narrow, strings.Contains(send("policy", id).stdout, "reader→writer: minimal"))
	got = send("audit", "verify")
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	return narrow
}

// The process of a run is killed while it takes a policy. What was stored holds after a resume.
func TestARunIsKilledWhileItsPolicyIsReplaced(t *testing.T) {
	t.Parallel()
	for range policyKills() {
		server, dir := startCounting(t, "Second"), crashPolicies(t)
		running, id, send := runningPolicy(t, server, dir)
		command := call{dir: dir, args: []string{"policy", id, "narrow.yaml"}}.command(t)
		require.NoError(t, command.Start())
		time.Sleep(time.Duration(rand.Int64N(int64(1500 * time.Millisecond)))) // it is taken within a second
		require.NoError(t, running.Process.Kill())
		_ = running.Wait()
		_ = command.Wait()
		narrow := requirePolicy(t, server, id, send, dir)
		require.False(t, command.ProcessState.Success() && !narrow, "the command reported a policy that is not stored")
	}
}

// The command is killed while it waits. The run has the old policy or the new one, and works on.
func TestACommandIsKilledWhileItReplacesAPolicy(t *testing.T) {
	t.Parallel()
	for range policyKills() {
		server, dir := startCounting(t, "Second"), crashPolicies(t)
		running, id, send := runningPolicy(t, server, dir)
		command := call{dir: dir, args: []string{"policy", id, "narrow.yaml"}}.command(t)
		require.NoError(t, command.Start())
		time.Sleep(time.Duration(rand.Int64N(int64(1500 * time.Millisecond))))
		_ = command.Process.Kill()
		_ = command.Wait()
		for _, next := range []string{"pause", "resume"} {
			got := send(next, id)
			require.Equal(t, exit.StatusOK, got.status, "the run takes the next command: %+v", got)
		}
		require.NoError(t, running.Process.Kill())
		_ = running.Wait()
		requirePolicy(t, server, id, send, dir)
	}
}
