package cli

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/runteam/runteam/internal/promptview"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/replay"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// exampleSpecs returns the folders of the examples that have a spec to run.
func exampleSpecs(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("../../examples/*/team.yaml")
	require.NoError(t, err)
	require.Greater(t, len(found), 5)
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return slices.DeleteFunc(found, func(dir string) bool { return filepath.Base(dir) == "chat" }) // it has no tasks
}

// built has the errors of building the MCP servers of examples, by example.
var built sync.Map

// exampleServer returns the path of the MCP server of an example, which the first test that needs it builds.
func exampleServer(t *testing.T, example string) string {
	t.Helper()
	path := filepath.Join(scratch, filepath.Base(example)+".exe")
	once, _ := built.LoadOrStore(example, sync.OnceValue(func() error {
		out, err := exec.Command("go", "build", "-o", path, example+"/server").CombinedOutput()
		if err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		return nil
	}))
	require.NoError(t, once.(func() error)())
	return path
}

// copyOf copies an example into a new folder. Its MCP server, if it has one, is built there.
func copyOf(t *testing.T, example string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), filepath.Base(example))
	require.NoError(t, os.CopyFS(dir, os.DirFS(example)))
	if _, err := os.Stat(filepath.Join(dir, "server")); err == nil {
		program, err := os.ReadFile(exampleServer(t, example))
		require.NoError(t, err)
		syscall.ForkLock.RLock()                                             // a process that another test starts now would keep the file open for writing, so that it cannot run
		err = os.WriteFile(filepath.Join(dir, "server.exe"), program, 0o700) // a copy, which tests write over
		syscall.ForkLock.RUnlock()
		require.NoError(t, err)
		spec := filepath.Join(dir, "team.yaml")
		text := strings.Replace(clitest.Contents(t, spec), "command: go, args: [run, ./server]", "command: ./server.exe", 1)
		require.NoError(t, os.WriteFile(spec, []byte(text), 0o600))
	}
	return dir
}

// forbidCalls returns the environment of an endpoint that fails the test if anything connects to it.
func forbidCalls(t *testing.T) map[string]string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if c, err := l.Accept(); err == nil {
			t.Error("the endpoint was connected to")
			_ = c.Close()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	at := "http://" + l.Addr().String()
	return map[string]string{"OPENAI_BASE_URL": at + "/v1", "OPENAI_API_KEY": "none", "HTTP_PROXY": at, "HTTPS_PROXY": at, "NO_PROXY": ""}
}

// onlyInRun are the members that the result of a replay lacks: a replay writes no record, so it has
// no head.
var onlyInRun = []string{"audit"}

// A replay equals the run, even if the files of the spec have changed or no longer exist, and it calls
// no model.
func TestReplayOfEveryExampleEqualsTheRun(t *testing.T) {
	t.Parallel()
	for _, example := range exampleSpecs(t) {
		t.Run(filepath.Base(example), func(t *testing.T) {
			t.Parallel()
			dir := copyOf(t, example)
			c := call{dir: dir}
			run := offlineRun(t, c, "-o", "json")
			want := object(t, run.stdout)
			for _, name := range onlyInRun {
				require.Contains(t, want, name)
				delete(want, name)
			}
			replay := func(env map[string]string) {
				t.Helper()
				got := call{dir: dir, env: env, args: []string{"replay", "-o", "json"}}.run(t)
				require.Equal(t, exit.StatusOK, got.status, "%+v", got)
				require.Equal(t, want, object(t, got.stdout))
				require.Regexp(t, `^runteam: replayed (\d+) of (\d+) prompts?, equal to the byte\n`, got.stderr)
				require.Equal(t, run.status != exit.StatusOK, strings.Contains(got.stderr, "and so does its replay"), got.stderr)
			}
			if slowtest.Enabled() {
				replay(nil)
				replay(forbidCalls(t))
			}
			require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
				if err != nil || e.IsDir() || strings.Contains(path, journals.FolderName) {
					return err
				}
				return os.WriteFile(path, []byte("written since"), 0o600)
			}))
			replay(forbidCalls(t))
			names, err := os.ReadDir(dir)
			require.NoError(t, err)
			for _, e := range names {
				if e.Name() != journals.FolderName {
					require.NoError(t, os.RemoveAll(filepath.Join(dir, e.Name())))
				}
			}
			replay(nil)
			require.Len(t, listRuns(t, c), 1, "a replay is not stored")
		})
	}
}

// twoInTurn is a spec in which the second task depends on the first.
const twoInTurn = `
name: two
model: ${MODEL:-m}
apiKey: ${KEY}
agents: [{name: solo, systemPrompt: You answer.}]
inputs: {facts: {text: The sky is blue.}}
tasks:
  - {title: First, assignee: solo, description: Say one., uses: [facts]}
  - {title: Second, assignee: solo, description: Say two., dependsOn: [First]}
`

// A replay also says what the run reused and how it ended.
func TestReplayOfReusedAndCanceledRuns(t *testing.T) {
	t.Parallel()
	const spec = "name: ended\nmodel: m\nagents: [{name: solo}]\noffline: script.yaml\ntasks:\n  - {title: First, assignee: solo, description: Say one.}\n  - {title: Second, assignee: solo, description: Say two., dependsOn: [First]}\n"
	dir := clitest.Folder(t, map[string]string{"team.yaml": spec, "script.yaml": "replies: [{task: First, text: one}]", "slow.yaml": "replies: [{task: Second, delay: 1m, text: two}, {text: one}]"})
	c := call{dir: dir}
	replayed := func() map[string]any {
		t.Helper()
		got := call{dir: dir, args: []string{"replay", "-o", "json"}}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		return object(t, got.stdout)
	}
	require.Equal(t, exit.StatusOK, offlineRun(t, c).status)
	want := object(t, offlineRun(t, c, "--reuse", "-o", "json").stdout)
	require.Contains(t, want["taskResults"].(map[string]any)[string(task.NewID("First"))], "reused")
	delete(want, "audit")
	require.Equal(t, want, replayed())

	want = object(t, offlineRun(t, c, "--script", "slow.yaml", "--timeout", "300ms", "-o", "json").stdout)
	got := replayed()
	require.Equal(t, "timeout", want["status"])
	require.Equal(t, want["status"], got["status"])
	require.Equal(t, want["output"], got["output"])
	for i, tk := range want["tasks"].([]any) {
		again := got["tasks"].([]any)[i].(map[string]any)
		require.Equal(t, tk.(map[string]any)["status"], again["status"])
		if m, ok := again["metrics"].(map[string]any); ok {
			require.GreaterOrEqual(t, m["durationMs"], 0.0)
		}
	}
}

// storeEdited replaces a text in the stored spec of a run.
func storeEdited(t *testing.T, dir, old, anew string) {
	t.Helper()
	j := openTest(t, dir, journal.Options{})
	run, stored, err := j.Resume(t.Context(), "")
	require.NoError(t, err)
	info := stored.Info
	require.Contains(t, info.Files[0].Text, old)
	info.Files = slices.Clone(info.Files)
	info.Files[0].Text = strings.Replace(info.Files[0].Text, old, anew, 1)
	require.NoError(t, run.Update(t.Context(), info))
	_, err = run.Close(t.Context())
	require.NoError(t, err)
	require.NoError(t, j.Close())
}

func TestReplayShowsWhereAPromptDiffers(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, old, anew, want string }{
		{"a description", "Say one.", "Say 1.", `differs: First: its user message differs from byte \d+ on, in description: it was "one\.…?" and is "1\.…?"`},
		{"an input", "The sky is blue.", "The sky is grey.", `differs: First: its user message differs from byte \d+ on, in input facts: it was "blue\." and is "grey\."`},
		{"a system prompt", "You answer.", "You reply.", `differs: First: its system prompt differs from byte \d+ on, in systemPrompt: it was "answer\." and is "reply\."`},
		{"the second alone", "Say two.", "Say three.", `differs: Second: its user message differs from byte \d+ on, in description: it was "wo\." and is "hree\."`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"team.yaml": twoInTurn})
			run := offlineRun(t, call{dir: dir, env: map[string]string{"KEY": "k"}})
			require.Equal(t, exit.StatusOK, run.status, "%+v", run)
			storeEdited(t, dir, tt.old, tt.anew)
			got := call{dir: dir, args: []string{"replay"}, env: forbidCalls(t)}.run(t)
			require.Equal(t, exit.StatusFailed, got.status, "%+v", got)
			require.Regexp(t, `^runteam: replayed [01] of 2 prompts; the replay differs from the run\n`+tt.want+`\n$`, got.stderr)
		})
	}
}

// promptTexts returns the prompts of a run by the titles of their tasks.
func promptTexts(t *testing.T, c call, run string) map[string]string {
	t.Helper()
	c.args = []string{"explain", run, "-o", "json"}
	got := c.run(t)
	require.Equal(t, exit.StatusOK, got.status, "%+v", got)
	var x struct {
		Prompts []struct {
			Title        string
			System, Text []promptview.Piece
		}
	}
	require.NoError(t, json.Unmarshal([]byte(got.stdout), &x))
	out := map[string]string{}
	for _, p := range x.Prompts {
		var b strings.Builder
		for _, piece := range append(p.System, p.Text...) {
			b.WriteString(piece.Words)
		}
		out[p.Title] = b.String()
	}
	return out
}

// Omitted context changes a result only where it changed a prompt.
func TestReplayWithoutSaysWhetherItMattered(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		args []string
		left string
		want string
	}{
		{"a task", []string{"--without", "score the fraud risk"}, "Score the fraud risk", "Without task score the fraud risk, 4 of 10 prompts and 4 results changed, so it mattered for Decide the claim, Letter to the customer, Note for the file, Line for the statistics."},
		{"a task without readers", []string{"--without", "Note for the file"}, "Note for the file", "Without task Note for the file, no prompt changed, so it did not matter."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := copyOf(t, "../../examples/claims")
			c := call{dir: dir}
			require.Equal(t, exit.StatusOK, offlineRun(t, c).status)
			before := promptTexts(t, c, listRuns(t, c)[0].Run)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "team.yaml"), []byte("written since"), 0o600), "the stored spec is repeated, not the edited one")
			got := call{dir: dir, args: append([]string{"replay", "-o", "json"}, tt.args...)}.run(t)
			require.Equal(t, exit.StatusOK, got.status, "%+v", got)
			var d replay.ComparedRuns
			require.NoError(t, json.Unmarshal([]byte(got.stdout), &d))
			require.Equal(t, tt.want, d.Verdict)
			after := promptTexts(t, c, d.After.Run)
			for _, tk := range d.Tasks {
				switch {
				case tk.Omitted:
					require.Equal(t, tt.left, tk.Title)
					require.Nil(t, tk.After)
				case tk.Prompt == replay.Same:
					require.NotContains(t, after, tk.Title, "no agent was called")
					require.Equal(t, replay.Same, tk.Result)
					require.Equal(t, d.Before.Run, tk.After.Reused)
				default:
					require.Equal(t, replay.Changed, tk.Prompt)
					require.NotEqual(t, before[tk.Title], after[tk.Title], tk.Title)
				}
			}

			list := listRuns(t, c)
			require.Equal(t, d.After.Run, list[0].Run)
			require.Contains(t, call{dir: dir, args: []string{"show", d.After.Run}}.run(t).stdout, "\nexperiment of "+d.Before.Run+" without task "+tt.args[1]+"\n")
			again := call{dir: dir, args: []string{"replay", d.After.Run, "-o", "json"}}.run(t)
			require.Equal(t, exit.StatusOK, again.status, "a run without something is replayed without it: %+v", again)
			require.Contains(t, again.stderr, "equal to the byte")
			refused := call{dir: dir, args: []string{"resume", d.After.Run}}.run(t)
			require.Equal(t, exit.StatusUsage, refused.status, "%+v", refused)
			require.Contains(t, refused.stderr, "cannot be resumed")
		})
	}
}

// Commands show a stored run as its user may read it, with or without the key of the journal.
//
// Requirement: G47.
func TestStoredRunsShowNothingSecret(t *testing.T) {
	t.Parallel()
	const word = "CANARY-51f0"
	const spec = `
name: two
model: m
baseURL: http://127.0.0.1:1/v1
agents: [{name: solo, accepts: secret}]
output: Open
inputs: {key: {file: key.md, classification: secret}}
policy: {rules: [{from: user, to: solo, mode: full}, {from: solo, to: solo, mode: full}]}
tasks:
  - {title: Open, assignee: solo, description: Say what is open.}
  - {title: Closed, assignee: solo, uses: [key], description: Say what is secret.}
  - {title: After, assignee: solo, dependsOn: [Closed, Open], description: Say it again.}
  - {title: Breaks, assignee: solo, dependsOn: [Closed], outputSchema: {type: object}, description: Fail with it.}
`
	const script = `
replies:
  - {task: Open, text: "open"}
  - {task: Closed, text: 'It is {{ input "key" }}'}
  - {task: After, text: 'Again: {{ dependency "Closed" }}'}
  - {task: Breaks, text: 'no JSON: {{ dependency "Closed" }}'}
`
	keyed := map[string]string{journals.EnvJournalKey: journalTestKey}
	dir := clitest.Folder(t, map[string]string{"team.yaml": spec, "key.md": word, "script.yaml": script})
	for range 2 {
		run := offlineRun(t, call{dir: dir, env: keyed}, "--script", "script.yaml")
		require.NotContains(t, run.stdout+run.stderr, word)
		require.Equal(t, exit.StatusFailed, run.status, "%+v", run)
	}
	list := listRuns(t, call{dir: dir})
	commands := [][]string{
		{"runs"}, {"show"}, {"show", list[0].Run, "Closed"}, {"show", list[0].Run, "After"}, {"show", list[0].Run, "Breaks"}, {"show", "--usage"}, {"explain"}, {"explain", list[0].Run, "Closed"}, {"explain", "--contains", "It is"},
		{"replay"}, {"replay", "--diff", list[1].Run}, {"replay", list[0].Run, "--diff", list[1].Run}, {"audit", "verify"}, {"gc", "--older-than", "0s", "--dry-run"},
		{"replay", "--without", "Open"}, {"replay", "--without-input", "key"},
	}
	seen := 0
	for _, env := range []map[string]string{keyed, nil} {
		for _, command := range commands {
			for _, form := range []string{"text", "json"} {
				got := call{dir: dir, env: env, args: append(slices.Clone(command), "-o", form)}.run(t)
				require.NotContains(t, got.stdout, word, "%v", command)
				require.NotContains(t, got.stderr, word, "%v", command)
				seen += len(got.stdout)
			}
		}
	}
	require.Greater(t, seen, 10_000)
}

// No record of a run has the text that --reveal showed on a terminal, even with the key. Only a
// replay with --reveal on a terminal shows it again.
//
// Requirement: G47.
func TestRevealedTextIsNotRecorded(t *testing.T) {
	t.Parallel()
	const word = "CANARY-77aa"
	const spec = `
model: m
baseURL: http://127.0.0.1:1/v1
agents: [{name: solo, accepts: secret}]
inputs: {key: {file: key.md, classification: secret}}
offline: script.yaml
policy: {rules: [{from: user, to: solo, mode: full}, {from: solo, to: coordinator, mode: full}, {from: solo, to: solo, mode: full}]}
tasks:
  - {title: Closed, assignee: solo, uses: [key], description: Say what is secret.}
  - {title: Broken, assignee: solo, uses: [key], description: Fail.}
goal: Say it.
coordinator: {accepts: secret}
`
	dir := clitest.Folder(t, map[string]string{"team.yaml": spec, "key.md": word, "script.yaml": "replies: [{task: Broken, status: 400, body: 'no " + word + "'}, {task: Closed, text: 'It is {{ input \"key\" }}'}, {coordinator: synthesis, text: 'So it is " + word + "'}]", "key": journalTestKey})
	run := func(terminal, keyed bool, args ...string) (status int, out string) {
		args = append(args, "--journal", filepath.Join(dir, "runs.db"))
		if keyed {
			args = append(args, "--journal-key", filepath.Join(dir, "key"))
		}
		con, stdout, stderr := clitest.Console(t, args...)
		con.IsTerminal = func(any) bool { return terminal }
		return runCommandLine(con), stdout.String() + stderr.String()
	}
	status, out := run(true, true, "run", dir, "--offline", "--reveal", "--progress", "none", "--trace", filepath.Join(dir, "run.jsonl"))
	require.Equal(t, exit.StatusFailed, status, out)
	require.Contains(t, out, "So it is "+word)
	require.Contains(t, out, "no "+word, "the error of Broken")
	for _, command := range [][]string{{"show"}, {"show", "Closed"}, {"explain"}, {"explain", "--contains", word}, {"runs"}, {"replay"}} {
		for _, terminal := range []bool{false, true} {
			for _, form := range []string{"text", "json"} {
				_, out = run(terminal, true, append(command, "-o", form)...)
				require.NotContains(t, out, "is "+word, command)
				require.NotContains(t, out, "no "+word, command)
			}
		}
	}
	require.NotContains(t, string(bytesOf(filepath.Join(dir, "run.jsonl"))), word)
	status, out = run(false, true, "replay", "--reveal")
	require.Equal(t, exit.StatusUsage, status, out)
	require.NotContains(t, out, word)
	_, out = run(true, true, "replay", "--reveal", "-o", "json")
	require.Contains(t, out, "It is "+word)
}

func TestExplainAndVerifyARunOfTheJournal(t *testing.T) {
	t.Parallel()
	dir := copyOf(t, "../../examples/claims")
	run := offlineRun(t, call{dir: dir}, "--trace", "run.jsonl", "-o", "json")
	require.Equal(t, exit.StatusOK, run.status, "%+v", run)
	id := object(t, run.stdout)["runId"].(string)
	first := func(args ...string) string {
		got := call{dir: dir, args: args}.run(t)
		require.Equal(t, exit.StatusOK, got.status, "%+v", got)
		return got.stdout
	}
	sorted := func(text string) []string { return slices.Sorted(strings.Lines(text)) } // two that begin at once have no order
	require.Equal(t, sorted(first("explain", "run.jsonl")), sorted(first("explain")), "the journal has what a trace has")
	require.Equal(t, first("explain", "run.jsonl", "Decide the claim"), first("explain", id[:8], "Decide the claim"))
	require.Equal(t, first("explain", "run.jsonl", "--contains", "HL-H-2291-0457"), first("explain", "--contains", "HL-H-2291-0457"))

	require.NoError(t, os.WriteFile(filepath.Join(dir, id[:8]), []byte("no trace"), 0o600))
	got := call{dir: dir, args: []string{"explain", id[:8]}}.run(t)
	require.Equal(t, exit.StatusUsage, got.status, "a file of that name takes precedence: %+v", got)
	require.Contains(t, got.stderr, id[:8]+": line 1")
	require.NoError(t, os.Remove(filepath.Join(dir, id[:8])))

	verified := first("audit", "verify", id)
	require.Regexp(t, `^consistent, not anchored: run `+id+`, all \d+ lines, \d+ decisions, \d+ held, head \S+\n$`, verified)
	head := strings.TrimSpace(verified[strings.LastIndex(verified, " "):])
	require.Regexp(t, `^verified: `, first("audit", "verify", "--head", head))
	require.True(t, json.Valid([]byte(first("audit", "verify", "-o", "json"))))
	other := "0000" + head[4:]
	got = call{dir: dir, args: []string{"audit", "verify", "--head", other}}.run(t)
	require.Equal(t, exit.StatusFailed, got.status)
	require.Contains(t, got.stdout, "of the record of run "+id+": ")
}

// A replay takes all that the journal has, also a correction of which the caller of the run may not know.
func TestReplayOfAHiddenCorrection(t *testing.T) {
	t.Parallel()
	dir := clitest.Folder(t, map[string]string{"team.yaml": `
model: m
baseURL: http://127.0.0.1:1/v1
output: Open
agents: [{name: open}, {name: counter}]
policy: {rules: [{from: counter, to: user, mode: minimal}]}
tasks:
  - {title: Open, assignee: open, description: Say what is open.}
  - {title: Count, assignee: counter, description: Count., outputSchema: {type: object, properties: {n: {type: integer}}, required: [n]}}
`, "script.yaml": `replies: [{task: Count, turn: 1, text: none}, {task: Count, turn: 2, text: '{"n": 1}'}, {text: open}]`})
	require.Equal(t, exit.StatusOK, offlineRun(t, call{dir: dir}, "--script", "script.yaml").status)
	require.Contains(t, call{dir: dir, args: []string{"replay"}}.run(t).stderr, "equal to the byte")
}
