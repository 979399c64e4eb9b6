package foreign

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/ollama/ollama/openai"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/llm/scripted"
)

// unscripted are the examples without a script, and where their answers come from.
var unscripted = map[string]string{
	"durable":    "a Go function",
	"quickstart": "the endpoint that its reader chooses",
}

// ollamaErrors changes what a run printed into what it prints with Ollama: its errors have no
// code, which would say that a filter refused the prompt.
var ollamaErrors = strings.NewReplacer(
	"MODEL_MODERATED", "MODEL_BAD_REQUEST",
	"a filter of the provider refused the prompt", "the endpoint refused the request",
	"; change the prompt, or the filter settings at the provider", ".",
)

// Every example has the same results with the offline script in the process, with the
// script behind HTTP, with aimock and with Ollama. aimock has a recording of the answers, and
// compares each conversation with it. With Ollama, the script answers from what Ollama
// understood of the conversation; specs with tools have the same answers if it streams them.
func TestExamples(t *testing.T) {
	t.Parallel()
	overlay := redirected(t)
	for _, name := range exampleNames(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newScriptedExample(t, name, overlay)
			want := e.run(t, "")
			recorded := new(recording)
			require.Equal(t, want, e.run(t, recorded.start(t, e.endpoint(t))), "with the script behind HTTP")
			require.NotEmpty(t, recorded.exchanges, "the example does not call the endpoint")
			e.requireToolCalls(t, recorded)

			t.Run("aimock", func(t *testing.T) {
				file := filepath.Join(t.TempDir(), "fixtures.json")
				text, err := json.Marshal(map[string]any{"fixtures": recorded.fixtures(t)})
				require.NoError(t, err)
				require.NoError(t, os.WriteFile(file, text, 0o600))
				server := "http://" + aimock(t, file)
				require.Equal(t, want, e.run(t, server+"/v1"))
				require.Equal(t, len(recorded.exchanges), served(t, server))
			})
			t.Run("Ollama", func(t *testing.T) {
				o := &ollama{script: e.endpoint(t)}
				require.Equal(t, ollamaErrors.Replace(want), e.run(t, o.start(t)))
				require.Len(t, o.seen, len(recorded.exchanges))
				if e.program != "" || e.asksPeople || !bytes.Contains(e.script, []byte("toolCalls:")) {
					return
				}
				streamed := &ollama{script: e.endpoint(t)}
				require.Equal(t, e.answers(t, e.endpoint(t)), e.answers(t, streamed.start(t), "--stream"))
				require.Len(t, streamed.seen, len(recorded.exchanges))
			})
		})
	}
}

// exampleNames returns the folders below examples that have a script, such as patterns/route. A folder with a spec
// or a program is an example. Every other folder must contain some, so that no example is left out, and an example
// without a script fails.
func exampleNames(t *testing.T) (names []string) {
	t.Helper()
	root, err := os.OpenRoot("../examples")
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, root.Close()) })
	var collect func(folder string)
	collect = func(folder string) {
		found := len(names)
		entries, err := fs.ReadDir(root.FS(), folder)
		require.NoError(t, err)
		for _, e := range entries {
			name := path.Join(folder, e.Name())
			switch {
			case !e.IsDir() || e.Name() == "testdata" || unscripted[name] != "":
			case !isExample(root.FS(), name):
				collect(name)
			default:
				_, err := root.Stat(path.Join(name, "script.yaml"))
				require.NoError(t, err, "examples/%s cannot run without a model: add a script, or list it in unscripted with the reason", name)
				names = append(names, name)
			}
		}
		require.Greater(t, len(names), found, "examples/%s has no example: an example is a spec, team.yaml, or a program, main.go", folder)
	}
	collect(".")
	return names
}

// isExample reports whether a folder has a spec or a program.
func isExample(examples fs.FS, folder string) bool {
	for _, file := range []string{"team.yaml", "main.go"} {
		if _, err := fs.Stat(examples, path.Join(folder, file)); err == nil {
			return true
		}
	}
	return false
}

// A scriptedExample is a spec or a Go program whose model answers from a script.
type scriptedExample struct {
	dir        string
	script     []byte
	program    string // the built program; empty for a spec
	asksPeople bool
	turns      []byte // what a person says in a chat, a line each; nil without a chat
}

// delays make scripts pleasant to watch, and time limits of agents show what becomes of a late one. A test waits for
// neither.
var delays = regexp.MustCompile(`(?m)^ +delay: .*\n|\bdelay: \w+, |, timeoutMs: \d+`)

func newScriptedExample(t *testing.T, name, overlay string) *scriptedExample {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join("../examples", name))
	require.NoError(t, err)
	e := &scriptedExample{dir: dir}
	text, err := os.ReadFile(filepath.Join(dir, "script.yaml"))
	require.NoError(t, err)
	e.script = delays.ReplaceAll(text, nil)
	if _, err := os.Stat(filepath.Join(dir, "main.go")); err == nil {
		e.program = filepath.Join(t.TempDir(), "program")
		build := exec.CommandContext(t.Context(), "go", "build", "-overlay", overlay, "-o", e.program, ".")
		build.Dir = dir
		out, err := build.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return e
	}
	spec, err := os.ReadFile(filepath.Join(dir, "team.yaml"))
	require.NoError(t, err)
	e.asksPeople = bytes.Contains(spec, []byte("kind: person"))
	if bytes.Contains(spec, []byte("\nchat:")) {
		e.turns, err = os.ReadFile(filepath.Join(dir, "turns.txt"))
		require.NoError(t, err)
	}
	return e
}

// elsewhere is the variable that names the endpoint of a Go program.
const elsewhere = "FOREIGN_ENDPOINT"

// redirected returns an overlay for go build with which programs that start a scripted
// endpoint call another one, if the variable elsewhere names it.
func redirected(t *testing.T) (overlay string) {
	t.Helper()
	source, err := filepath.Abs("../llm/scripted/scripted.go")
	require.NoError(t, err)
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	changed := string(text)
	for old, change := range map[string]string{
		"import (\n":                       "import (\n\t\"os\"\n\n",
		"string { return s.server.URL() }": "string {\n\tif url := os.Getenv(\"" + elsewhere + "\"); url != \"\" {\n\t\treturn url\n\t}\n\treturn s.server.URL()\n}",
	} {
		require.Equal(t, 1, strings.Count(changed, old), "%s must have %q once", source, old)
		changed = strings.Replace(changed, old, change, 1)
	}
	dir := t.TempDir()
	replacement := filepath.Join(dir, "scripted.go")
	require.NoError(t, os.WriteFile(replacement, []byte(changed), 0o600))
	list, err := json.Marshal(map[string]any{"Replace": map[string]string{source: replacement}})
	require.NoError(t, err)
	overlay = filepath.Join(dir, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, list, 0o600))
	return overlay
}

// endpoint starts an endpoint that answers from the script, and returns its base URL.
func (e *scriptedExample) endpoint(t *testing.T) string {
	t.Helper()
	script, err := scripted.Parse("script.yaml", e.script)
	require.NoError(t, err)
	server, err := scripted.Start(script)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, server.Close()) })
	return server.URL()
}

// run runs the example with the models at a base URL, or offline. It returns the exit status
// and what the run printed, without what differs between any two runs.
func (e *scriptedExample) run(t *testing.T, baseURL string) string {
	t.Helper()
	if e.program != "" {
		state, out := e.command(t, baseURL, e.program)
		return fmt.Sprintf("%v\n%s", state, out)
	}
	// Each agent has a model, which a spec for offline runs need not name.
	journal := filepath.Join(t.TempDir(), "runs.db")
	args := []string{e.spec(t, baseURL), "--model", "gpt-4o", "--journal", journal}
	if baseURL == "" {
		script := filepath.Join(t.TempDir(), "script.yaml")
		require.NoError(t, os.WriteFile(script, e.script, 0o600))
		args = append(args, "--offline", "--script", script)
	}
	if e.turns != nil {
		state, out := e.command(t, baseURL, runteam, append([]string{"chat"}, args...)...)
		return fmt.Sprintf("%v\n%s", state, out)
	}
	state, out := e.command(t, baseURL, runteam, append([]string{"run", "-o", "json"}, args...)...)
	if e.asksPeople {
		for state.ExitCode() == suspended {
			state, out = e.answer(t, baseURL, journal)
		}
		return fmt.Sprintf("%v\n%s", state, outcomes(t, out))
	}
	return fmt.Sprintf("%v\n%s", state, comparable(t, out, baseURL))
}

// answers runs the example of a spec with the models at a base URL, and returns what it prints.
func (e *scriptedExample) answers(t *testing.T, baseURL string, flags ...string) string {
	t.Helper()
	state, out := e.command(t, baseURL, runteam, append([]string{"run", e.spec(t, baseURL), "--model", "gpt-4o", "--no-journal"}, flags...)...)
	return fmt.Sprintf("%v\n%s", state, out)
}

// suspended is the exit status of a run that waits for people.
const suspended = 4

// command runs a command with the models at a base URL, and with what a person types in a chat. It returns what the
// command prints on standard output.
func (e *scriptedExample) command(t *testing.T, baseURL, name string, args ...string) (*os.ProcessState, []byte) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "OPENAI_") && !strings.HasPrefix(v, "RUNTEAM_") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	if baseURL != "" {
		cmd.Env = append(cmd.Env, "OPENAI_BASE_URL="+baseURL, elsewhere+"="+baseURL)
	}
	var out, errs bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(e.turns), &out, &errs
	if err := cmd.Run(); err != nil {
		_, exited := errors.AsType[*exec.ExitError](err)
		require.True(t, exited, err)
	}
	require.NotEmpty(t, out.String(), errs.String())
	return cmd.ProcessState, out.Bytes()
}

// answer answers the open questions of a suspended run as the script answers for people offline, and resumes the run.
func (e *scriptedExample) answer(t *testing.T, baseURL, journal string) (*os.ProcessState, []byte) {
	t.Helper()
	_, out := e.command(t, baseURL, runteam, "questions", "--journal", journal, "-o", "json")
	var questions []struct{ RunID, ID, Task, Prompt string }
	require.NoError(t, json.Unmarshal(out, &questions), "%s", out)
	require.NotEmpty(t, questions, "the run is suspended, and nothing is open")
	for _, q := range questions {
		text := reply(t, e.endpoint(t), q.Prompt)
		state, out := e.command(t, baseURL, runteam, "answer", q.RunID, q.Task, text, "--question", q.ID, "--journal", journal)
		require.True(t, state.Success(), "%s", out)
	}
	return e.command(t, baseURL, runteam, "resume", questions[0].RunID, "--journal", journal, "-o", "json")
}

// reply returns what the endpoint at a base URL answers to a prompt.
func reply(t *testing.T, baseURL, prompt string) string {
	t.Helper()
	body, err := json.Marshal(openai.ChatCompletionRequest{Model: "gpt-4o", Messages: []openai.Message{{Role: "user", Content: prompt}}})
	require.NoError(t, err)
	res, err := http.Post(baseURL+"/chat/completions", "application/json", bytes.NewReader(body))
	require.NoError(t, err)
	defer res.Body.Close()
	require.Equal(t, http.StatusOK, res.StatusCode)
	var completion openai.ChatCompletion
	require.NoError(t, json.NewDecoder(res.Body).Decode(&completion))
	text, _ := completion.Choices[0].Message.Content.(string)
	return text
}

// endpoints matches the base URLs in a spec.
var endpoints = regexp.MustCompile(`(?m)\bbaseURL: *http\S+`)

// spec returns the path of the spec. If the spec names endpoints, that is a copy in which
// their place is taken by a base URL.
func (e *scriptedExample) spec(t *testing.T, baseURL string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(e.dir, "team.yaml"))
	require.NoError(t, err)
	if baseURL == "" || !endpoints.Match(text) {
		return e.dir
	}
	dir := t.TempDir()
	require.NoError(t, os.CopyFS(dir, os.DirFS(e.dir)))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "team.yaml"), endpoints.ReplaceAllLiteral(text, []byte("baseURL: "+baseURL)), 0o600))
	return dir
}

// varying are the members of a run's JSON that differ between two equal runs: IDs, times, the chain of decisions, which
// has both, and how much was known to the team when each task started. A script in the process is called as the model.
var varying = []string{"runId", "requestId", "model", "startMs", "endMs", "durationMs", "audit", "bytesIfShared"}

// comparable returns the JSON that a run printed without the name of the endpoint and without
// what varies.
func comparable(t *testing.T, stdout []byte, baseURL string) string {
	t.Helper()
	if baseURL != "" {
		stdout = bytes.ReplaceAll(stdout, []byte(baseURL), []byte("the offline script"))
	}
	var v any
	require.NoError(t, json.Unmarshal(stdout, &v), "%s", stdout)
	remove(v, varying)
	text, err := json.MarshalIndent(v, "", " ")
	require.NoError(t, err)
	return string(text)
}

// outcomes returns the status and the result of each task in the JSON that a run printed. A run that was suspended
// differs in the rest from one that people answered at once.
func outcomes(t *testing.T, stdout []byte) string {
	t.Helper()
	var run struct {
		Status, Output string
		Tasks          []struct{ Title, Status, Label, Result string }
	}
	require.NoError(t, json.Unmarshal(stdout, &run), "%s", stdout)
	text, err := json.MarshalIndent(run, "", " ")
	require.NoError(t, err)
	return string(text)
}

// remove removes members from all objects in a JSON value.
func remove(v any, names []string) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range names {
			delete(v, name)
		}
		for _, member := range v {
			remove(member, names)
		}
	case []any:
		for _, item := range v {
			remove(item, names)
		}
	}
}

// requireToolCalls checks that a script with tool calls made some, as members of replies.
func (e *scriptedExample) requireToolCalls(t *testing.T, r *recording) {
	t.Helper()
	if !bytes.Contains(e.script, []byte("toolCalls:")) {
		return
	}
	calls := 0
	for _, f := range r.fixtures(t) {
		if f.Match.Offered != "" {
			calls++
		}
	}
	require.NotZero(t, calls, "the script calls tools, and no reply did")
}

// served returns how many calls aimock answered.
func served(t *testing.T, server string) int {
	t.Helper()
	res, err := http.Get(server + "/__aimock/journal?path=/chat/completions&limit=0")
	require.NoError(t, err)
	res.Body.Close()
	n, err := strconv.Atoi(res.Header.Get("X-Total-Count"))
	require.NoError(t, err)
	return n
}
