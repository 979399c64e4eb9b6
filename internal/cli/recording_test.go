package cli

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

	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
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

// sameRun takes out what tells two runs apart in JSON: the id of the run, when it was,
// and which calls answered.
func sameRun(text string) string {
	return regexp.MustCompile(`"((runId|audit)":"[^"]*"|(start|end|duration)Ms":\d+|call":\{[^}]*\})`).ReplaceAllString(text, "")
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
		"named.yaml": one + "inputs: {log: {file: log.md}}\n", "log.md": "09:12 stop",
		"other.json": `{"name":"other","agents":[{"name":"solo","model":"m"}]}`,
	})
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "link.yaml")))
	require.NoError(t, os.Symlink("team.yaml", filepath.Join(dir, "spec.yaml")))
	require.NoError(t, os.Link(filepath.Join(dir, "team.yaml"), filepath.Join(dir, "hard.yaml")))
	before := listing(t, dir)
	tests := []struct{ args, want string }{
		{"--record=", "--record is empty"},
		{"--record -", "name a file"},
		{"--record sub/", "name a file"},
		{"--record sub", "it is a folder"},
		{"--record none/f.yaml", "there is no folder none"},
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
	require.Equal(t, []string{".runteam", "real.yaml", "team.yaml"}, listing(t, dir))
}

func TestNewFileReplacesOnlyWhatItFound(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(t *testing.T, path string){
		"a link": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Symlink("mine.yaml", path))
		},
		"another file": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path+".tmp", []byte("old"), 0o600))
			require.NoError(t, os.Rename(path+".tmp", path))
		},
		"more in it": func(t *testing.T, path string) {
			require.NoError(t, os.WriteFile(path, []byte("old and more"), 0o600))
		},
		"a folder": func(t *testing.T, path string) {
			require.NoError(t, os.Remove(path))
			require.NoError(t, os.Mkdir(path, 0o700))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := folder(t, map[string]string{"mine.yaml": "mine", "f.yaml": "old"})
			f := newFile{flag: "record", path: filepath.Join(dir, "f.yaml"), force: true}
			require.NoError(t, f.check())
			meanwhile(t, f.path)
			before, err := os.Lstat(f.path)
			require.NoError(t, err)
			err = f.write([]byte("new"))
			require.ErrorContains(t, err, "not written: the file that stands there was changed or replaced while the command ran")
			after, statErr := os.Lstat(f.path)
			require.NoError(t, statErr)
			require.True(t, os.SameFile(before, after))
			require.Equal(t, "mine", contents(t, filepath.Join(dir, "mine.yaml")))
			requireKept(t, err, dir, "new")
			require.Len(t, listing(t, dir), 3, "no trial is left")
		})
	}
}

// A folder that is another one in the end gets nothing, and nothing is lost.
func TestNewFileStaysInItsFolder(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a/f.yaml": "old", "b/f.yaml": "mine"})
	require.NoError(t, os.Symlink("a", filepath.Join(dir, "to")))
	f := newFile{flag: "record", path: filepath.Join(dir, "to", "f.yaml"), force: true}
	require.NoError(t, f.check())
	require.NoError(t, os.Remove(filepath.Join(dir, "to")))
	require.NoError(t, os.Symlink("b", filepath.Join(dir, "to")))
	err := f.write([]byte("new"))
	require.ErrorContains(t, err, "its folder is another one than when the command began")
	kept := requireKept(t, err, os.TempDir(), "new")
	require.NoError(t, os.Remove(kept))
	require.Equal(t, "mine", contents(t, filepath.Join(dir, "b", "f.yaml")))
	require.Equal(t, "old", contents(t, filepath.Join(dir, "a", "f.yaml")))
}

// requireKept holds that an error says where in a folder a text is kept, for its owner alone.
func requireKept(t *testing.T, err error, dir, text string) (path string) {
	t.Helper()
	_, path, found := strings.Cut(err.Error(), "what was to be written is in ")
	require.True(t, found, "%v", err)
	require.Equal(t, filepath.Clean(dir), filepath.Dir(path))
	require.Equal(t, text, contents(t, path))
	at, err := os.Lstat(path)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), at.Mode())
	return path
}

func contents(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// Only a folder below the working directory is behind a link here, so that
// --force reaches nothing that the path does not name.
func TestRecordingReplacesNothingBehindAFolderThatLeadsOut(t *testing.T) {
	t.Parallel()
	away := folder(t, map[string]string{"f.yaml": "mine"})
	dir := folder(t, map[string]string{"team.yaml": one, "real/f.yaml": "old"})
	require.NoError(t, os.Symlink(away, filepath.Join(dir, "out")))
	require.NoError(t, os.Symlink("real", filepath.Join(dir, "in")))
	got := call{dir: dir, args: []string{"run", "--offline", "--record", "out/f.yaml", "--force"}}.run(t)
	require.Equal(t, statusUsage, got.status, "%+v", got)
	require.Regexp(t, `--record out/f\.yaml: a link on its way leads to .*f\.yaml: name that file`, got.stderr)
	require.Equal(t, "mine", contents(t, filepath.Join(away, "f.yaml")))
	got = call{dir: dir, args: []string{"run", "--offline", "--record", "in/f.yaml", "--force"}}.run(t)
	require.Equal(t, statusOK, got.status, "%+v", got)
	require.Contains(t, contents(t, filepath.Join(dir, "real", "f.yaml")), "OFFLINE")
}

// A saved plan keeps the mode of what it replaces; all else is for its owner.
func TestModesOfNewFiles(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ownMode   bool
		old, want os.FileMode // no old: a new file
	}{
		{true, 0, 0o600}, {true, 0o644, 0o644}, {true, 0o400, 0o400}, {true, 0o640, 0o640},
		{false, 0, 0o600}, {false, 0o644, 0o600},
	} {
		f := newFile{flag: "save", path: filepath.Join(t.TempDir(), "f"), force: true, ownMode: tt.ownMode}
		if tt.old != 0 {
			require.NoError(t, os.WriteFile(f.path, nil, 0o600))
			require.NoError(t, os.Chmod(f.path, tt.old))
		}
		require.NoError(t, f.check())
		require.NoError(t, f.write([]byte("new")))
		at, err := os.Stat(f.path)
		require.NoError(t, err)
		require.Equal(t, tt.want, at.Mode(), "%+v", tt)
	}
}

func TestNothingAnsweredIsNothingRecorded(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"f.yaml": "a good one"})
	f := &newFile{flag: "record", path: filepath.Join(dir, "f.yaml"), force: true}
	require.NoError(t, f.check())
	r := &recording{file: f, models: &scripted.Recorder{}}
	require.NoError(t, r.keep())
	require.Equal(t, "a good one", contents(t, f.path))
	require.Equal(t, "nothing was answered, so nothing was recorded", r.summary(&team.Result{}))
}

// What cannot be kept in the end takes nothing from the result.
func TestRecordingOnAFullDisk(t *testing.T) {
	t.Parallel()
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell")
	}
	dir := folder(t, map[string]string{"team.yaml": one, "script.yaml": "replies: [{text: '" + strings.Repeat("long ", 1<<10) + "'}]", "sub/x": ""})
	cmd := exec.Command(shell, "-c", `ulimit -f 1 || exit 99; exec "$0" run --offline --script script.yaml --record sub/f.yaml -o json --no-journal`, binary)
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
	err := f.write([]byte("ours"))
	require.ErrorContains(t, err, "not written: a file came to be there while the command ran, and is left as it is")
	require.NoError(t, os.Remove(requireKept(t, err, dir, "ours")))
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
