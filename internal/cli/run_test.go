package cli

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/stretchr/testify/require"
)

var interrupt = os.Interrupt

const harvest = "testdata"

func harvestPath(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs(harvest)
	require.NoError(t, err)
	return path
}

// The scripted endpoint is on this machine, which may receive secrets. The
// endpoint that it replaces may not receive them, and its clearance applies.
//
// Requirement: G51.
func TestOfflineKeepsTheClearanceOfTheEndpoint(t *testing.T) {
	t.Parallel()
	local := strings.Replace(one, "{name: solo,", "{name: solo, accepts: secret,", 1)
	local = strings.Replace(local, "tasks: [", "baseURL: http://127.0.0.1:1/v1\ntasks: [{title: Closed, assignee: solo, classification: secret, description: Say.}, ", 1)
	got := call{args: []string{"run", "-", "--offline"}, stdin: local}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	got = call{args: []string{"run", "-", "--offline"}, stdin: strings.Replace(local, "baseURL: http://127.0.0.1:1/v1\n", "", 1)}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, "Closed")
}

// failing is a spec with one failing branch.
const failing = `
name: branches
model: m
agents: [{name: solo}]
tasks:
  - {title: Left, assignee: solo, description: Go left.}
  - {title: Further left, assignee: solo, dependsOn: [Left], description: Go on.}
  - {title: Right, assignee: solo, description: Go right.}
  - {title: Broken, assignee: solo, dependsOn: [Right], description: Fail.}
  - {title: Never, assignee: solo, dependsOn: [Broken], description: Not reached.}
`

func TestSignals(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/bin/sh"); err != nil {
		t.Skip("signals are sent on Unix only")
	}
	tests := []struct {
		name   string
		signal syscall.Signal
		status int
	}{
		{"SIGINT", syscall.SIGINT, exit.StatusSIGINT},
		{"SIGTERM", syscall.SIGTERM, exit.StatusSIGTERM},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			stuck := make(chan struct{}, 1)
			server := serveModel(t, func(w http.ResponseWriter, r *http.Request, n int) {
				if n == 1 {
					reply(w, "the first is done")
					return
				}
				stuck <- struct{}{}
				<-r.Context().Done()
			})
			spec := strings.Replace(failing, "{title: Right, ", "{title: Right, dependsOn: [Left], ", 1)
			cmd := call{args: []string{"run", "-", "--max-concurrency", "1"}, stdin: spec, env: server.env()}.command(t)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			require.NoError(t, cmd.Start())
			<-stuck
			require.NoError(t, cmd.Process.Signal(tt.signal))
			require.Equal(t, tt.status, statusAfter(t, cmd.Wait()), "%s", stderr.String())
			require.Equal(t, "# Left\n\nthe first is done\n", stdout.String())
			require.Contains(t, stderr.String(), "1 of 5 tasks completed, 1 cancelled, 3 skipped")
			require.Contains(t, stderr.String(), "ending running tasks")
			require.Regexp(t, `skipped   Further left \(solo\): (interrupted|terminated)\n`, stderr.String())
		})
	}
}

// If stdout is a closed pipe, the status is that of the command, as its reader has what it wants.
func TestStdoutThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	full := func(t *testing.T) io.WriteCloser {
		f, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
		if err != nil {
			t.Skip("there is no /dev/full")
		}
		return f
	}
	closed := func(t *testing.T) io.WriteCloser {
		r, w, err := os.Pipe()
		require.NoError(t, err)
		require.NoError(t, r.Close())
		return w
	}
	claimsTrace, err := filepath.Abs(claims)
	require.NoError(t, err)
	for name, open := range map[string]func(*testing.T) io.WriteCloser{"full": full, "broken pipe": closed} {
		for _, args := range [][]string{
			{"run", harvestPath(t), "--offline"}, {"run", harvestPath(t), "--offline", "-o", "json"}, {"run", harvestPath(t), "--offline", "-o", "json", "--pretty"},
			{"check", harvestPath(t)}, {"plan", harvestPath(t)}, {"plan", harvestPath(t), "-o", "json"}, {"version"}, {"init"}, {"schema"}, {"explain", claimsTrace}, {"explain", claimsTrace, "-o", "json"}, {"audit", "verify", claimsTrace}, {"plan", harvestPath(t), "-o", "dot"}, {"plan", harvestPath(t), "--offline", "--goal", "x"}, {"mock", filepath.Join(harvestPath(t), "script.yaml")},
			{"completion", "bash"}, {"completion", "fish", "--no-descriptions"}, {"completion", "zsh"}, {"completion", "powershell"},
		} {
			if name == "broken pipe" && args[0] == "mock" {
				continue // it goes on to serve
			}
			t.Run(name+" "+strings.ReplaceAll(strings.Join(args, " "), harvestPath(t), harvest), func(t *testing.T) {
				t.Parallel()
				out := open(t)
				defer out.Close()
				got := call{args: args}.runTo(t, out)
				if args[0] == "plan" { // a process also has a signal for a broken pipe
					var stderr bytes.Buffer
					cmd := call{args: args}.command(t)
					cmd.Stdout, cmd.Stderr = out, &stderr
					got = outcome{status: statusAfter(t, cmd.Run()), stderr: stderr.String()}
				}
				require.NotContains(t, got.stderr, "goroutine")
				if name == "broken pipe" {
					require.Equal(t, exit.StatusOK, got.status, "a reader may stop early: %s", got.stderr)
					require.NotContains(t, got.stderr, "standard output")
					return
				}
				require.Equal(t, exit.StatusFailed, got.status, "%s", got.stderr)
				require.Contains(t, got.stderr, "standard output")
			})
		}
	}
}

func TestStdinMayBeClosed(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	cmd := exec.Command(shell, "-c", `"$0" run "$1" --offline --progress none <&-`, binary, harvestPath(t))
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "Dear owner")
}
