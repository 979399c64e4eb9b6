package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/scripted"
	"github.com/runteam/runteam/team"
)

func TestRecordingGivesTheRunAgain(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request, n int) {
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
	dir := duo(t, "")
	for _, form := range []string{"text", "json"} {
		server.calls.Store(0)
		args := []string{"run", "--goal", "Say.", "-o", form}
		record := form + ".yaml"
		first := call{dir: dir, args: append(args, "--record", record), env: server.env()}.run(t)
		require.Equal(t, statusOK, first.status, "%+v", first)
		require.Contains(t, first.stderr, "recorded: 5 answers in "+record+"; to replay it: the same command without --record, with --offline --script "+record+"\n")
		info, err := os.Stat(filepath.Join(dir, record))
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
		again := call{dir: dir, args: append(args, "--offline", "--script", record, "--record", "again-"+record)}.run(t)
		require.Equal(t, statusOK, again.status, "%+v", again)
		require.Equal(t, sameRun(first.stdout), sameRun(again.stdout))
		one, err := os.ReadFile(filepath.Join(dir, record))
		require.NoError(t, err)
		two, err := os.ReadFile(filepath.Join(dir, "again-"+record))
		require.NoError(t, err)
		require.Equal(t, string(one), string(two), "a recording of a replay is the recording")
	}
}

// sameRun takes out what tells two runs apart in JSON: the id of the run, and when it was.
func sameRun(text string) string {
	return regexp.MustCompile(`"(runId":"[^"]*"|(start|end|duration)Ms":\d+)`).ReplaceAllString(text, "")
}

func TestRecordingOfTasksAndOfFailures(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request, n int) {
		if n == 1 {
			reply(w, "the first is done")
			return
		}
		refuseWith(w, 400, "", "no more")
	})
	dir := folder(t, map[string]string{"team.yaml": failing})
	args := []string{"run", "--max-concurrency", "1"}
	first := call{dir: dir, args: append(args, "--record", "failed.yaml"), env: server.env()}.run(t)
	require.Equal(t, statusFailed, first.status, "%+v", first)
	again := call{dir: dir, args: append(args, "--offline", "--script", "failed.yaml")}.run(t)
	require.Equal(t, statusFailed, again.status, "%+v", again)
	require.Equal(t, first.stdout, again.stdout)
	require.Contains(t, again.stderr, "no more")
	quiet := call{dir: dir, args: append(args, "--offline", "--script", "failed.yaml", "--record", "quiet.yaml", "--progress", "none")}.run(t)
	require.NotContains(t, quiet.stderr, "recorded")
	require.FileExists(t, filepath.Join(dir, "quiet.yaml"))
}

func TestRecordingsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int) { reply(w, "no") })
	dir := folder(t, map[string]string{
		"team.yaml": one, "sub/team.yaml": one, "script.yaml": "replies: [{text: hello}]", "there.yaml": "mine", "note.md": "x",
		"other.json": `{"name":"other","agents":[{"name":"solo","model":"m"}]}`,
	})
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "link.yaml")))
	require.NoError(t, os.Symlink("team.yaml", filepath.Join(dir, "spec.yaml")))
	before := listing(t, dir)
	tests := []struct{ args, want string }{
		{"--record=", "--record is empty"},
		{"--record -", "name a file"},
		{"--record sub/", "name a file"},
		{"--record sub", "it is a folder"},
		{"--record none/f.yaml", "there is no folder none"},
		{"--record note.md/f.yaml", "not a directory"},
		{"--record there.yaml", "it exists: add --force"},
		{"--record link.yaml --force", "it is a link: name the file itself\n"},
		{"--record team.yaml --force", "the command reads this file"},
		{"--record spec.yaml --force", "it is a link: name the file itself, "},
		{"--record script.yaml --force --offline --script script.yaml", "the command reads this file"},
		{"team.yaml --record other.json --force --team other.json", "the command reads this file"},
		{"--record /dev/null", "not a regular file"},
		{"--record /dev/null --force", "not a regular file"},
		{"--force", "--force needs --record"},
	}
	for _, tt := range tests {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			got := call{dir: dir, args: append([]string{"run"}, strings.Fields(tt.args)...), env: server.env()}.run(t)
			require.Equal(t, statusUsage, got.status, "%+v", got)
			require.Contains(t, got.stdout+got.stderr, tt.want)
		})
	}
	t.Cleanup(func() {
		require.Zero(t, server.calls.Load(), "nothing was asked for what cannot be kept")
		require.Equal(t, before, listing(t, dir), "nothing was written, and no trial is left")
	})
}

func listing(t *testing.T, dir string) (all []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestRecordingReplacesWhenForced(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"team.yaml": one, "real.yaml": "old"})
	got := call{dir: dir, args: []string{"run", "--offline", "--record", "real.yaml", "--force"}}.run(t)
	require.Equal(t, statusOK, got.status, "%+v", got)
	text, err := os.ReadFile(filepath.Join(dir, "real.yaml"))
	require.NoError(t, err)
	require.Contains(t, string(text), "OFFLINE")
	require.Contains(t, got.stderr, "the same command without --record and --force, with --offline --script real.yaml\n")
	require.Equal(t, []string{"real.yaml", "team.yaml"}, listing(t, dir))
}

// A link that takes the place of the file while the run goes on is replaced
// itself, and not what it leads to.
func TestRecordingFollowsNoLinkAtTheEnd(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"team.yaml": "mine", "f.yaml": "old"})
	f := newFile{flag: "record", path: filepath.Join(dir, "f.yaml"), force: true}
	require.NoError(t, f.check())
	require.NoError(t, os.Remove(f.path))
	require.NoError(t, os.Symlink("team.yaml", f.path))
	require.NoError(t, f.write([]byte("new")))
	kept, err := os.ReadFile(filepath.Join(dir, "team.yaml"))
	require.NoError(t, err)
	require.Equal(t, "mine", string(kept))
	at, err := os.Lstat(f.path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), at.Mode())
}

func TestNothingAnsweredIsNothingRecorded(t *testing.T) {
	t.Parallel()
	f := &newFile{flag: "record", path: filepath.Join(t.TempDir(), "f.yaml")}
	r := &recording{file: f, models: &scripted.Recorder{}}
	require.NoError(t, r.keep())
	require.NoFileExists(t, f.path)
	require.Equal(t, "nothing: no model answered", r.summary(&team.Result{}))
}

// What cannot be kept in the end takes nothing from the result.
func TestRecordingOnAFullDisk(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	dir := folder(t, map[string]string{"team.yaml": one, "script.yaml": "replies: [{text: '" + strings.Repeat("long ", 1<<10) + "'}]", "sub/x": ""})
	cmd := exec.Command(shell, "-c", `ulimit -f 1 || exit 99; exec "$0" run --offline --script script.yaml --record sub/f.yaml -o json`, binary)
	cmd.Dir = dir
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	status := statusAfter(t, cmd.Run())
	if status == 99 {
		t.Skip("the shell has no ulimit -f")
	}
	require.Equal(t, statusFailed, status, "%s", stderr.String())
	require.Equal(t, "ok", object(t, stdout.String())["status"])
	require.Contains(t, stderr.String(), "--record sub/f.yaml: not written: ")
	require.NotContains(t, stderr.String(), "recorded")
	require.Equal(t, []string{"x"}, listing(t, filepath.Join(dir, "sub")), "nothing is left half-way")
}

func TestRecordingTooLargeForAScript(t *testing.T) {
	t.Parallel()
	r := &recording{file: &newFile{flag: "record", path: filepath.Join(t.TempDir(), "f.yaml")}, models: &scripted.Recorder{}}
	long := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: strings.Repeat("long ", scripted.MaxFile/20)}, nil
	})
	for range 5 {
		_, err := r.of(long).Call(t.Context(), llm.Request{}, nil)
		require.NoError(t, err)
	}
	require.NoError(t, r.keep())
	require.Contains(t, r.summary(&team.Result{}), "5 answers in ")
	require.Contains(t, r.summary(&team.Result{}), "too large to be read as one script")
	require.FileExists(t, r.file.path)
}

// A file that came to be while the command ran is not replaced either.
func TestNewFileNeverReplacesUnasked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f := newFile{flag: "save", path: filepath.Join(dir, "f")}
	require.NoError(t, f.check())
	require.NoError(t, os.WriteFile(f.path, []byte("theirs"), 0o600))
	require.ErrorContains(t, f.write([]byte("ours")), "not written: file exists")
	text, err := os.ReadFile(f.path)
	require.NoError(t, err)
	require.Equal(t, "theirs", string(text))
	require.Equal(t, []string{"f"}, listing(t, dir))
	require.NoError(t, os.Remove(f.path))
	require.NoError(t, f.write([]byte("ours")))
	f.force = true
	require.NoError(t, f.check())
	require.NoError(t, f.write([]byte("ours again")))
	text, err = os.ReadFile(f.path)
	require.NoError(t, err)
	require.Equal(t, "ours again", string(text))
	require.Equal(t, []string{"f"}, listing(t, dir))
}
