package cli

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/journaltest"
	"github.com/runteam/runteam/internal/workdir"
	"github.com/stretchr/testify/require"
)

// killAfter runs a spec until so many tasks have completed and another one is called, and kills
// the command. The server then answers all tasks.
func killAfter(t *testing.T, server *countingServer, c call, done int) {
	t.Helper()
	killAfterIn(t, server, c, c.dir, done)
}

// killAfterIn is killAfter for a journal in another folder than that of the command.
func killAfterIn(t *testing.T, server *countingServer, c call, dir string, done int) {
	t.Helper()
	cmd := server.startBlocked(t, c)
	require.Eventually(t, func() bool { return hasResults(t, dir, done) }, 30*time.Second, 5*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	server.takeCalls()
	server.unblock()
}

// startBlocked starts a command, and returns when it waits for the answer to a blocked task.
func (s *countingServer) startBlocked(t *testing.T, c call) *exec.Cmd {
	t.Helper()
	cmd := c.command(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = cmd.Process.Wait()
	}()
	select {
	case <-s.blockedCalls:
	case <-ended:
		t.Fatalf("%v ended: %s", c.args, stderr.String())
	}
	return cmd
}

// killedRelay runs the relay, and kills it during the call of its second task.
func killedRelay(t *testing.T, args ...string) (server *countingServer, dir string) {
	t.Helper()
	server, dir = startCounting(t, "Second"), relayFolder(t)
	killAfter(t, server, call{dir: dir, args: append([]string{"run"}, args...), env: server.env()}, 2)
	return server, dir
}

// edit replaces a text in a file.
func edit(t *testing.T, path, old, now string) {
	t.Helper()
	text := clitest.Contents(t, path)
	require.Contains(t, text, old)
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(text, old, now, 1)), 0o600))
}

func TestResumeRepeatsOnlyAffectedTasks(t *testing.T) {
	t.Parallel()
	rest := map[string]int{"Second": 1, "Third": 1}
	tests := []struct {
		name   string
		change func(t *testing.T, dir string)
		args   string
		want   map[string]int
		says   []string
		silent []string
	}{
		{name: "nothing changed", want: rest, silent: []string{"changed", "not there"}},
		{
			name: "the spec is gone", want: rest,
			change: func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "team.yaml"))) },
			says:   []string{"resume:  team.yaml no longer exists: the copy in the journal is used\n"}, silent: []string{"changed"},
		},
		{
			name: "an input is gone", want: rest,
			change: func(t *testing.T, dir string) { require.NoError(t, os.Remove(filepath.Join(dir, "note.md"))) },
			says:   []string{"resume:  note.md no longer exists: the copy in the journal is used\n"}, silent: []string{"changed"},
		},
		{
			name: "an input says something else", want: map[string]int{"First": 1, "Second": 1, "Third": 1},
			change: func(t *testing.T, dir string) { edit(t, filepath.Join(dir, "note.md"), "the note", "another note") },
			says:   []string{"resume:  input note has changed: tasks whose prompt changed run again\n"},
		},
		{
			name: "a task that was not done says something else", want: rest,
			change: func(t *testing.T, dir string) { edit(t, filepath.Join(dir, "team.yaml"), "Say two.", "Say 2.") },
			says:   []string{"resume:  the spec has changed: tasks whose prompt changed run again\n"},
		},
		{
			name: "a task that was done says something else", want: map[string]int{"Aside": 1, "Second": 1, "Third": 1},
			change: func(t *testing.T, dir string) { edit(t, filepath.Join(dir, "team.yaml"), "Say aside.", "Say it.") },
			says:   []string{"resume:  the spec has changed"},
		},
		{
			name: "a task that was done says the same elsewhere", want: rest,
			change: func(t *testing.T, dir string) {
				path := filepath.Join(dir, "team.yaml")
				const line = "  - {title: Aside, assignee: solo, description: Say aside.}\n"
				edit(t, path, line, "")
				edit(t, path, "tasks:\n", "# first\ntasks:\n"+line)
			},
		},
		{
			name: "a new task", want: map[string]int{"Second": 1, "Third": 1, "Fourth": 1},
			change: func(t *testing.T, dir string) {
				edit(t, filepath.Join(dir, "team.yaml"), "description: Say aside.}\n", "description: Say aside.}\n  - {title: Fourth, assignee: solo, dependsOn: [Aside], description: Say four.}\n")
			},
		},
		{name: "another model", args: "--model another", want: map[string]int{"First": 1, "Aside": 1, "Second": 1, "Third": 1}, says: []string{"the flags or the spec have changed"}},
		{name: "fresh", args: "--fresh aside", want: map[string]int{"Aside": 1, "Second": 1, "Third": 1}},
		{name: "one at a time", args: "--max-concurrency 1 --timeout 60s --max-token-budget 100000", want: rest},
		{name: "another file for an input", args: "--input note=other.md", want: map[string]int{"First": 1, "Second": 1, "Third": 1}, says: []string{"input note has changed"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server, dir := killedRelay(t)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "other.md"), []byte("the other note"), 0o600))
			if tt.change != nil {
				tt.change(t, dir)
			}
			got := call{dir: dir, args: append([]string{"resume", "-o", "json"}, strings.Fields(tt.args)...), env: server.env()}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.Equal(t, tt.want, server.takeCalls(), "%s", got.stderr)
			for _, want := range tt.says {
				require.Contains(t, got.stderr, want)
			}
			for _, not := range tt.silent {
				require.NotContains(t, got.stderr, not)
			}
			requireConsistent(t, dir)

			again := call{dir: dir, args: []string{"resume", "-o", "json"}, env: server.env()}.run(t)
			require.Equal(t, exit.StatusOK, again.status, "%+v", again)
			require.Empty(t, server.takeCalls(), "the edited run is the one that is resumed: %s", again.stderr)
			require.Equal(t, stableResult(t, got.stdout), stableResult(t, again.stdout))
			require.NotContains(t, again.stderr, "changed since")
		})
	}
}

func TestResumeOfStandardInput(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t, "Second"), clitest.Folder(t, map[string]string{"note.md": "the note"})
	killAfter(t, server, call{dir: dir, args: []string{"run", "-"}, stdin: relay, env: server.env()}, 2)
	got := call{dir: dir, args: []string{"resume"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stderr, "resume:  standard input no longer exists: the copy in the journal is used\n")
	require.Equal(t, map[string]int{"Second": 1, "Third": 1}, server.takeCalls())

	server, dir = startCounting(t, "Second"), relayFolder(t)
	killAfter(t, server, call{dir: dir, args: []string{"run", "--input", "note=-"}, stdin: "said in passing", env: server.env()}, 2)
	got = call{dir: dir, args: []string{"resume"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stderr, "standard input no longer exists")
	require.Equal(t, map[string]int{"Second": 1, "Third": 1}, server.takeCalls())

	got = call{dir: dir, args: []string{"resume", "--input", "note=-"}, stdin: "said again", env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.NotContains(t, got.stderr, "standard input no longer exists")
	require.Equal(t, map[string]int{"First": 1}, server.takeCalls(), "its answer is the same, so its dependents are not repeated")
}

func TestResumeFromElsewhere(t *testing.T) {
	t.Parallel()
	for _, gone := range []bool{false, true} {
		server, dir := startCounting(t, "Second"), t.TempDir()
		work := filepath.Join(dir, "work")
		require.NoError(t, os.MkdirAll(filepath.Join(work, "sub"), 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(work, "sub", "note.md"), []byte("the note"), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(work, "sub", "team.yaml"), []byte(strings.ReplaceAll(relay, "Say three.", "'Say ${params.n}.'")+"params: {n: '4'}\n"), 0o600))
		require.NoError(t, journals.MakeFolder(filepath.Join(dir, journals.FolderName)))
		require.NoError(t, os.Mkdir(filepath.Join(dir, ".git"), 0o755))
		killAfterIn(t, server, call{bare: true, dir: work, args: []string{"run", "sub", "--param", "n=3"}, env: server.env()}, dir, 2)

		other := filepath.Join(dir, "other", "sub")
		require.NoError(t, os.MkdirAll(other, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(other, "team.yaml"), []byte(one), 0o600), "another spec")
		if gone {
			require.NoError(t, os.RemoveAll(work))
		}
		got := call{bare: true, dir: filepath.Dir(other), args: []string{"resume", "--trace", "t.jsonl"}, env: server.env()}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Equal(t, map[string]int{"Second": 1, "Third": 1}, server.takeCalls())
		require.Contains(t, got.stdout, "Say 3.")
		require.Equal(t, gone, strings.Contains(got.stderr, "sub/team.yaml no longer exists"), "%s", got.stderr)
		require.Contains(t, clitest.Contents(t, filepath.Join(dir, "other", "t.jsonl")), "Say two.")
	}
}

func TestRunsThatCannotBeResumed(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one})
	var ids []string
	for range 20 { // of 20 ids, two begin with the same digit
		got := call{dir: dir, args: []string{"run", "--offline", "-o", "json", "--progress", "none"}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		ids = append(ids, object(t, got.stdout)["runId"].(string))
	}
	twice, seen := "", map[string]bool{}
	for _, id := range ids {
		if seen[id[:1]] {
			twice = id[:1]
		}
		seen[id[:1]] = true
	}
	tests := []struct {
		name, arg string
		want      []string
	}{
		{"unknown", "nothing", []string{`unknown run "nothing"`, ids[19]}},
		{"ambiguous", twice, []string{`ambiguous run "` + twice + `"`, "give more of the ID"}},
		{"empty", "", []string{"RUN is empty"}},
	}
	for _, tt := range tests {
		got := call{dir: dir, args: []string{"resume", tt.arg}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		for _, want := range tt.want {
			require.Contains(t, got.stderr, want)
		}
	}
	got := call{dir: dir, args: []string{"resume", ids[3][:12]}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Contains(t, got.stderr, "Run "+ids[3][:8])

	edit(t, filepath.Join(dir, "team.yaml"), "assignee: solo", "assignee: nobody")
	got = call{dir: dir, args: []string{"resume", "-o", "json"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	runs, err := stored(t, dir).Runs(t.Context())
	require.NoError(t, err)
	require.Equal(t, "ok", runs[0].Status, "an invalid spec leaves the run unchanged")

	got = call{dir: t.TempDir(), args: []string{"resume"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, `there is no journal here or in a folder above; "runteam run" creates one`)
	got = call{dir: dir, args: []string{"resume", "--journal", "none.db"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, `"runteam run --journal FILE" creates a journal`)
	require.NoFileExists(t, filepath.Join(dir, "none.db"))
}

func TestTwoResumesAtOnce(t *testing.T) {
	t.Parallel()
	server, dir := startCounting(t, "Second"), relayFolder(t)
	running := server.startBlocked(t, call{dir: dir, args: []string{"run"}, env: server.env()})
	got := call{dir: dir, args: []string{"resume"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Regexp(t, `run [0-9a-f]{8} is running \(process \d+ on host .*\) and not paused: there is nothing to resume\n`, got.stderr)
	require.NoError(t, running.Process.Kill())
	_ = running.Wait()

	resumed := server.startBlocked(t, call{dir: dir, args: []string{"resume"}, env: server.env()})
	got = call{dir: dir, args: []string{"resume", "-o", "json"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, object(t, got.stdout)["error"].(map[string]any)["message"], "and not paused")
	require.NoError(t, resumed.Process.Kill())
	_ = resumed.Wait()
	server.takeCalls()
	server.unblock()
	got = call{dir: dir, args: []string{"resume"}, env: server.env()}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	require.Equal(t, map[string]int{"Second": 1, "Third": 1}, server.takeCalls())
	require.Contains(t, got.stderr, "2 attempts had been interrupted")
}

func TestSecretsInAJournal(t *testing.T) {
	t.Parallel()
	const key, other = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "abcdef0123456789abcdef0123456789abcdef0123456789abcdef0123456789"
	spec := strings.Replace(secretive, "  - {title: Closed", "  - {title: Last, assignee: solo, dependsOn: [Closed], description: Say the last.}\n  - {title: Closed", 1)
	spec = strings.Replace(spec, "baseURL: http://127.0.0.1:1/v1\n", "policy: {rules: [{from: solo, to: solo, mode: full}]}\n", 1)
	start := func(t *testing.T, env map[string]string) (server *countingServer, dir string) {
		server, dir = startCounting(t, "Last"), clitest.Folder(t, map[string]string{"team.yaml": spec, "key": key + "\n", "other": other})
		all := server.env()
		maps.Copy(all, env)
		killAfter(t, server, call{dir: dir, args: []string{"run"}, env: all}, 2)
		return server, dir
	}
	t.Run("without a key", func(t *testing.T) {
		t.Parallel()
		server, dir := start(t, nil)
		got := call{dir: dir, args: []string{"resume"}, env: server.env()}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Equal(t, map[string]int{"Closed": 1, "Last": 1}, server.takeCalls())
		require.Contains(t, got.stderr, "resume:  the result of Closed cannot be read, so it runs again: it is above confidential")
		require.Equal(t, 1, strings.Count(got.stderr, "give --journal-key FILE or RUNTEAM_JOURNAL_KEY"), "%s", got.stderr)
		require.Less(t, strings.Index(got.stderr, "give --journal-key FILE or"), strings.Index(got.stderr, "start "), "before anything is run: %s", got.stderr)
	})
	t.Run("with a key", func(t *testing.T) {
		t.Parallel()
		server, dir := start(t, map[string]string{journals.EnvJournalKey: key})
		for _, args := range []string{"resume", "resume --journal-key other"} {
			got := call{dir: dir, args: strings.Fields(args), env: server.env()}.run(t)
			require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
			require.Contains(t, got.stderr, "the results of Closed are encrypted under the key ")
			require.Contains(t, got.stderr, "--fresh TASK runs one again instead")
			require.Empty(t, server.takeCalls())
		}
		got := call{dir: dir, args: []string{"resume", "--journal-key", "key"}, env: server.env()}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Equal(t, map[string]int{"Last": 1}, server.takeCalls())
		require.NotContains(t, got.stderr, "warning")

		got = call{dir: dir, args: []string{"resume", "--fresh", "Closed", "--fresh", "Last"}, env: server.env()}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Equal(t, map[string]int{"Closed": 1, "Last": 1}, server.takeCalls())
	})
	t.Run("from standard input", func(t *testing.T) {
		t.Parallel()
		dir := clitest.Folder(t, map[string]string{"team.yaml": "model: m\nbaseURL: http://127.0.0.1:1/v1\ninputs: {note: {classification: secret}}\nagents: [{name: solo, accepts: secret}]\n" +
			"policy: {rules: [{from: user, to: solo, mode: full}]}\n" +
			"tasks: [{title: Closed, assignee: solo, uses: [note], description: Say.}, {title: Open, assignee: solo, description: Say.}]\n"})
		got := call{dir: dir, args: []string{"run", "--offline", "--input", "note=-"}, stdin: "a secret note"}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Equal(t, 1, strings.Count(got.stderr, "give --journal-key FILE or"), "%s", got.stderr)
		require.Less(t, strings.Index(got.stderr, "give --journal-key FILE or"), strings.Index(got.stderr, "start "), "before anything is run: %s", got.stderr)
		got = call{dir: dir, args: []string{"resume"}, stdin: "a secret note"}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		require.Contains(t, got.stderr, "resumed: 1 task completed before")
		require.NotContains(t, got.stderr, "changed since")
		got = call{dir: dir, args: []string{"resume"}}.run(t)
		require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
		require.Contains(t, got.stderr, "resume:  the copy of standard input in the journal cannot be read: it is above confidential")
	})
	t.Run("nothing is above", func(t *testing.T) {
		t.Parallel()
		got := call{dir: clitest.Folder(t, map[string]string{"team.yaml": one}), args: []string{"run", "--offline"}}.run(t)
		require.NotContains(t, got.stderr, "journal-key")
	})
	t.Run("what is in the files", func(t *testing.T) {
		t.Parallel()
		const canary = "c4n4ry-of-a-secret"
		text := "name: x\nmodel: m\nbaseURL: http://127.0.0.1:1/v1\ninputs: {own: {text: own " + canary + ", classification: secret}, file: {file: f.md, classification: secret}, flag: {file: f.md, classification: secret}}\n" +
			"agents: [{name: solo, accepts: secret}]\npolicy: {rules: [{from: user, to: solo, mode: full}]}\ntasks: [{title: Closed, assignee: solo, uses: [own, file, flag], description: Say.}, {title: Open, assignee: solo, description: Say.}]\n"
		for _, env := range []map[string]string{nil, {journals.EnvJournalKey: key}} {
			dir := clitest.Folder(t, map[string]string{"team.yaml": text, "f.md": "file " + canary, "g.md": "flag " + canary})
			got := call{dir: dir, args: []string{"run", "--offline", "--input", "flag=g.md"}, env: env}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			for _, name := range clitest.Listing(t, filepath.Join(dir, ".runteam")) {
				require.NotContains(t, clitest.Contents(t, filepath.Join(dir, ".runteam", name)), canary, name)
			}
			all, err := journaltest.Text(stored(t, dir).Lines(t.Context(), ""))
			require.NoError(t, err)
			require.NotContains(t, all, canary)
			require.Contains(t, all, `"fingerprint":"hmac-`, "it is a digest of all of it, which only the key of the journal makes")
			for _, path := range []string{"team.yaml", "f.md", "g.md"} {
				require.NoError(t, os.Remove(filepath.Join(dir, path)))
			}
			got = call{dir: dir, args: []string{"resume"}, env: env}.run(t)
			if env == nil {
				require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
				require.Contains(t, got.stderr, "resume:  the copy of team.yaml in the journal cannot be read: it is above confidential")
				continue
			}
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.Contains(t, got.stderr, "resume:  g.md no longer exists")
			require.NotContains(t, got.stderr, "changed")
		}
	})
}

func TestResumeNeedsTheSameAuditKey(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": one, "key": auditTestKey})
	got := call{dir: dir, args: []string{"run", "--offline", "--audit-key", "key"}}.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	got = call{dir: dir, args: []string{"resume"}}.run(t)
	require.Equal(t, exit.StatusNoRun, got.status, "%+v", got)
	require.Contains(t, got.stderr, "resume the run with the key with which it began: --audit-key FILE or RUNTEAM_AUDIT_KEY")
	for _, c := range []call{
		{dir: dir, args: []string{"resume", "--audit-key", "key"}},
		{dir: dir, args: []string{"resume"}, env: map[string]string{journals.EnvAuditKey: auditTestKey}},
		{dir: dir, args: []string{"audit", "verify", "--key-file", "key"}},
	} {
		got = c.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	}
	require.Contains(t, got.stdout, "consistent")
}

func TestResumeAfterTheClockWasSetBack(t *testing.T) {
	t.Parallel()
	dir := clitest.JournalFolder(t)
	path := filepath.Join(clitest.Folder(t, map[string]string{"team.yaml": one}), "team.yaml")
	for _, tt := range []struct {
		args   []string
		ago    time.Duration
		status int
	}{{[]string{"run", path, "--offline"}, 0, exit.StatusOK}, {[]string{"resume"}, time.Hour, exit.StatusNoRun}, {[]string{"resume"}, 0, exit.StatusOK}} {
		con, stdout, stderr := clitest.Console(t, tt.args...)
		con.WorkDir, con.Now = workdir.Dir(dir), func() time.Time { return time.Now().Add(-tt.ago) }
		require.Equal(t, tt.status, runCommandLine(con), "%s", stderr.String())
		require.Equal(t, tt.ago > 0, strings.Contains(stderr.String(), "the clock was set back"), "%s", stderr.String())
		require.Equal(t, tt.ago == 0, stdout.Len() > 0)
	}
}

// A run that another program stored has no invocation.
func TestResumeOfARunOfAnotherProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, journals.MakeFolder(filepath.Join(dir, journals.FolderName)))
	j, err := journal.Open(filepath.Join(dir, journals.FolderName, journals.FileName), journal.Options{})
	require.NoError(t, err)
	_, err = j.Begin(t.Context(), journal.Info{Run: "mine"})
	require.NoError(t, err)
	require.NoError(t, j.Close())
	got := call{dir: dir, args: []string{"resume"}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "%+v", got)
	require.Contains(t, got.stderr, "run mine was not begun by this command")
}

// A run that had ended is resumed without a call, whether or not its tasks read messages or called tools.
func TestResumeOfAnEndedRunCallsNobody(t *testing.T) {
	t.Parallel()
	for _, example := range []string{"patterns/planned-handoffs", "coding-team", "patterns/chain"} {
		t.Run(example, func(t *testing.T) {
			t.Parallel()
			dir := runOf(t, example)
			got := call{dir: dir, args: []string{"resume", "--offline"}}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			require.Contains(t, got.stderr, "resumed: every task was completed before, and no agent was called\n")
		})
	}
}
