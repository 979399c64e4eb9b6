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

func TestRecordingOfTasksAndOfFailures(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 1 {
			reply(w, "the first is done")
			return
		}
		refuseWith(w, 400, "", "no more")
	})
	dir := clitest.Folder(t, map[string]string{"team.yaml": failing})
	args := []string{"run", "--max-concurrency", "1"}
	first := call{dir: dir, args: append(args, "--record", "failed.yaml"), env: server.env()}.run(t)
	require.Equal(t, exit.StatusFailed, first.status, "%+v", first)
	again := call{dir: dir, args: append(args, "--offline", "--script", "failed.yaml")}.run(t)
	require.Equal(t, exit.StatusFailed, again.status, "%+v", again)
	require.Equal(t, first.stdout, again.stdout)
	require.Contains(t, again.stderr, "no more")
	quiet := call{dir: dir, args: append(args, "--offline", "--script", "failed.yaml", "--record", "quiet.yaml", "--progress", "none")}.run(t)
	require.NotContains(t, quiet.stderr, "recorded")
	require.FileExists(t, filepath.Join(dir, "quiet.yaml"))
}

func TestRecordingsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	server := serveModel(t, func(w http.ResponseWriter, _ *http.Request, _ int) { reply(w, "no") })
	dir := clitest.Folder(t, map[string]string{
		"team.yaml": one, "sub/team.yaml": one, "script.yaml": "replies: [{text: hello}]", "there.yaml": "mine", "note.md": "x",
		"named.yaml": one + "inputs: {log: {file: log.md}}\n", "log.md": "09:12 stop",
		"other.json": `{"name":"other","agents":[{"name":"solo","model":"m"}]}`,
	})
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "link.yaml")))
	require.NoError(t, os.Symlink("team.yaml", filepath.Join(dir, "spec.yaml")))
	require.NoError(t, os.Link(filepath.Join(dir, "team.yaml"), filepath.Join(dir, "hard.yaml")))
	before := clitest.Listing(t, dir)
	tests := []struct{ args, want string }{
		{"--record=", "--record is empty"},
		{"--record -", "name a file"},
		{"--record sub/", "name a file"},
		{"--record sub", "it is a folder"},
		{"--record none/f.yaml", "the folder none does not exist"},
		{"--record note.md/f.yaml", "not a directory"},
		{"--record there.yaml", "it exists: add --force"},
		{"--record link.yaml --force", "it is a link that leads nowhere: name another file\n"},
		{"--record team.yaml --force", "the command reads this file"},
		{"named.yaml --record log.md --force", "the command reads this file"},
		{"--record spec.yaml --force", "it is a link to team.yaml: name that file\n"},
		{"--record hard.yaml --force", "the command reads this file"},
		{"--record script.yaml --force --offline --script script.yaml", "the command reads this file"},
		{"team.yaml --record other.json --force --team other.json", "the command reads this file"},
		{"--record /dev/null", "not a regular file"},
		{"--record /dev/null --force", "not a regular file"},
		{"--force", "--force needs --record"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			got := call{bare: true, dir: dir, args: append([]string{"run"}, strings.Fields(tt.args)...), env: server.env()}.run(t)
			require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
			require.Contains(t, got.stdout+got.stderr, tt.want)
		})
	}
	t.Cleanup(func() {
		require.Zero(t, server.calls.Load(), "no model was called for a recording that cannot be written")
		require.Equal(t, before, clitest.Listing(t, dir), "nothing was written, and no temporary file is left")
	})
}

func TestRecordingReplacesWhenForced(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "real.yaml": "old"})
	got := call{dir: dir, args: []string{"run", "--offline", "--record", "real.yaml", "--force"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	text, err := os.ReadFile(filepath.Join(dir, "real.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "OFFLINE")
	require.Contains(t, got.stderr, "the same command without --record and --force, with --offline --script real.yaml\n")
	require.Equal(t, []string{".runteam", "real.yaml", "team.yaml"}, clitest.Listing(t, dir))
}

// A folder below the working directory may be a link that leads out of it. --force replaces nothing
// behind it, since the path does not name that place.
func TestRecordingReplacesNothingBehindAFolderThatLeadsOut(t *testing.T) {
	t.Parallel()
	away := clitest.Folder(t, map[string]string{"f.yaml": "mine"})
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "real/f.yaml": "old"})
	require.NoError(t, os.Symlink(away, filepath.Join(dir, "out")))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "in")))
	got := call{dir: dir, args: []string{"run", "--offline", "--record", "out/f.yaml", "--force"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Regexp(t, `--record out/f\.yaml: a link on its way leads to .*f\.yaml: name that file`, got.stderr)
	require.Equal(t, "mine", clitest.Contents(t, filepath.Join(away, "f.yaml")))
	got = call{dir: dir, args: []string{"run", "--offline", "--record", "in/f.yaml", "--force"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, clitest.Contents(t, filepath.Join(dir, "real", "f.yaml")), "OFFLINE")
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
