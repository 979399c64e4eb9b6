package cli

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/stretchr/testify/require"
)

func TestRecordingReplaysTheRun(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		switch n {
		case 1:
			reply(w, twoTasks)
		case 2:
			hurry(w)
			refuseWith(w, 500, "", "not now")
		default:
			reply(w, fmt.Sprintf("answer %d: {{.Task}} \x1b[2J\u202e\ttab\n\n  two lines \n", n))
		}
	})
	dir := goalFolder(t, "")
	for _, form := range []string{"text", "json"} {
		server.calls.Store(0)
		args := []string{"run", "--goal", "Say.", "-o", form}
		record := form + ".yaml"
		first := call{dir: dir, args: append(args, "--record", record), env: server.env()}.run(t)
		require.Equal(t, exit.StatusOK, first.status, "%+v", first)
		require.Contains(t, first.stderr, "recorded: 5 answers in "+record+"; to replay it: the same command without --record, with --offline --script "+record+"\n")
		info, err := os.Stat(filepath.Join(dir, record))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		again := call{dir: dir, args: append(args, "--offline", "--script", record, "--record", "again-"+record)}.run(t)
		require.Equal(t, exit.StatusOK, again.status, "%+v", again)
		require.Equal(t, sameRun(first.stdout), sameRun(again.stdout))
		one, err := os.ReadFile(filepath.Join(dir, record))
		require.NoError(t, err)
		two, err := os.ReadFile(filepath.Join(dir, "again-"+record))
		require.NoError(t, err)
		require.Equal(t, string(one), string(two), "a recording of a replay is the recording")
	}
}

// sameRun removes the members that differ between two runs in JSON: the ID of the run, times,
// and the calls that answered.
func sameRun(text string) string {
	return regexp.MustCompile(`"((runId|audit)":"[^"]*"|(start|end|duration)Ms":\d+|call":\{[^}]*\})`).ReplaceAllString(text, "")
}

func TestEmptyRecordingIsNotWritten(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"f.yaml": "a good one"})
	f := &files.Output{Flag: "record", Path: filepath.Join(dir, "f.yaml"), Force: true}
	require.NoError(t, f.Check(""))
	r := &connect.Recording{File: f, Models: &scripted.Recorder{}}
	require.NoError(t, r.Save())
	require.Equal(t, "a good one", clitest.Contents(t, f.Path))
	require.Equal(t, "nothing was answered, so nothing was recorded", r.Summary(&engine.Result{}))
}

// The result is printed even if a file cannot be written in the end.
func TestRecordingOnAFullDisk(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "script.yaml": "replies: [{text: '" + strings.Repeat("long ", 1<<10) + "'}]", "sub/x": ""})
	cmd := exec.Command(shell, "-c", `ulimit -f 1 || exit 99; exec "$0" run --offline --script script.yaml --record sub/f.yaml -o json --no-journal`, binary)
	cmd.Dir = dir
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	status := statusAfter(t, cmd.Run())
	if status == 99 {
		t.Skip("the shell has no ulimit -f")
	}
	require.Equal(t, exit.StatusFailed, status, "%s", stderr.String())
	require.Equal(t, "ok", object(t, stdout.String())["status"])
	require.Contains(t, stderr.String(), "--record sub/f.yaml: not written: ")
	require.NotContains(t, stderr.String(), "recorded")
	require.Equal(t, []string{"x"}, clitest.Listing(t, filepath.Join(dir, "sub")), "no incomplete file is left")
}
