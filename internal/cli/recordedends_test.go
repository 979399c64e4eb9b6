package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/stretchr/testify/require"
)

// taskEnds returns how the tasks of a run in JSON ended: the status of each, with its result or the code of its error.
func taskEnds(t *testing.T, stdout string) map[string]string {
	t.Helper()
	var run struct {
		Tasks []struct {
			Title, Status, Result string
			Error                 struct{ Code string }
		}
	}
	require.NoError(t, json.Unmarshal([]byte(stdout), &run), stdout)
	ends := map[string]string{}
	for _, task := range run.Tasks {
		if ends[task.Title] = task.Status + ": " + task.Error.Code; task.Status == "completed" {
			ends[task.Title] += task.Result
		}
	}
	return ends
}

// hangingModel serves a script in place of a model. A reply with a delay of an hour is never given.
func hangingModel(t *testing.T, script string) map[string]string {
	t.Helper()
	s, err := scripted.Parse("model.yaml", []byte(script))
	require.NoError(t, err)
	server, err := scripted.Start(s, scripted.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = server.Close() })
	return map[string]string{"OPENAI_BASE_URL": server.URL()}
}

// A run from a recording ends as the recorded run did, although its limits are an hour.
func TestRecordedTimeLimits(t *testing.T) {
	t.Parallel()
	const spawning = `
name: limits
model: m
agents: [{name: lead, systemPrompt: Lead., spawn: {depth: 2, timeoutMs: CHILD}}]
tasks:
  - {title: Report, assignee: lead, description: Report., timeoutMs: TASK}
`
	const twoChildren = `
replies:
  - {task: Report, toolCalls: [{name: spawn_agent, arguments: {goal: Find apples}}, {name: spawn_agent, arguments: {goal: Find pears}}]}
  - {task: Report, text: '{{ toolResult "spawn_agent" 1 }} {{ toolResult "spawn_agent" 2 }}'}
  - {goal: apples, text: red}
`
	tests := map[string]struct {
		spec, script  string
		short, long   []string // pairs of a word in the spec and its value
		want, entries []string
	}{
		"of a task": {
			spec: `
name: limits
model: m
agents: [{name: solo, systemPrompt: Answer.}]
tasks:
  - {title: Slow, assignee: solo, description: Wait., timeoutMs: TASK}
  - {title: Later, assignee: solo, description: Never., dependsOn: [Slow]}
  - {title: Second try, assignee: solo, description: Twice., timeoutMs: TASK, maxRetries: 1, retryDelayMs: 1}
`,
			script: `
replies:
  - {task: Slow, delay: 1h, text: no}
  - {task: Second try, delay: 1h, times: 1, text: no}
  - {task: Second try, text: at last}
`,
			short: []string{"TASK", "LIMIT"}, long: []string{"TASK", "3600000"},
			want:    []string{"Slow", "TIMEOUT", "Second try", "completed: at last"},
			entries: []string{"ended: timeout"},
		},
		"of an agent": {
			spec: `
name: limits
model: m
agents: [{name: solo, systemPrompt: Answer., timeoutMs: TASK}]
tasks: [{title: Slow, assignee: solo, description: Wait.}]
`,
			script: "replies: [{task: Slow, delay: 1h, text: no}]",
			short:  []string{"TASK", "LIMIT"}, long: []string{"TASK", "3600000"},
			want: []string{"Slow", "TIMEOUT"}, entries: []string{"ended: timeout"},
		},
		"of a child": {
			spec: spawning, script: twoChildren + "  - {goal: pears, delay: 1h, text: no}\n",
			short: []string{"CHILD", "LIMIT", "TASK", "3600000"}, long: []string{"CHILD", "3600000", "TASK", "3600000"},
			want: []string{"Report", "red No result: TIMEOUT."}, entries: []string{"ended: timeout"},
		},
		"of a parent": {
			spec: spawning, script: twoChildren + "  - {goal: pears, delay: 1h, text: no}\n",
			short: []string{"CHILD", "3600000", "TASK", "LIMIT"}, long: []string{"CHILD", "3600000", "TASK", "3600000"},
			want: []string{"Report", "TIMEOUT"}, entries: []string{"ended: task timeout"},
		},
		"of a child with a child": {
			spec: spawning, script: twoChildren + `
  - {goal: eat them, delay: 1h, text: no}
  - {goal: pears, turn: 1, delay: 300ms, toolCalls: [{name: spawn_agent, arguments: {goal: Eat them}}]}
`,
			short: []string{"CHILD", "LIMIT", "TASK", "3600000"}, long: []string{"CHILD", "3600000", "TASK", "3600000"},
			want: []string{"Report", "red No result: TIMEOUT."}, entries: []string{"ended: child timeout"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"long.yaml": replaced(tt.spec, tt.long)})
			var first outcome
			var recorded string
			for limit := 1500; ; limit *= 2 { // a busy computer needs longer for the calls that do not hang
				short := strings.ReplaceAll(replaced(tt.spec, tt.short), "LIMIT", strconv.Itoa(limit))
				require.NoError(t, os.WriteFile(filepath.Join(dir, "short.yaml"), []byte(short), 0o600))
				first = call{dir: dir, args: []string{"run", "short.yaml", "--record", "rec.yaml", "--force", "-o", "json"}, env: hangingModel(t, tt.script)}.run(t)
				recorded = clitest.Contents(t, filepath.Join(dir, "rec.yaml"))
				if limit > 20_000 || hasEnds(taskEnds(t, first.stdout), tt.want) && !slices.ContainsFunc(tt.entries, func(entry string) bool { return !strings.Contains(recorded, entry) }) {
					break
				}
			}
			want := taskEnds(t, first.stdout)
			require.True(t, hasEnds(want, tt.want), "%v: %+v", want, first)
			for _, entry := range tt.entries {
				require.Contains(t, recorded, entry)
			}
			again := call{dir: dir, args: []string{"run", "long.yaml", "--offline", "--script", "rec.yaml", "--record", "again.yaml", "-o", "json"}}.run(t)
			require.Equal(t, first.status, again.status, "%+v", again)
			require.Equal(t, want, taskEnds(t, again.stdout))
			require.ElementsMatch(t, strings.Split(recorded, "\n"), strings.Split(clitest.Contents(t, filepath.Join(dir, "again.yaml")), "\n"), "a recording of a replay is the recording")
		})
	}
}

// hasEnds reports whether tasks ended as wanted: pairs of a title and a part of the end.
func hasEnds(ends map[string]string, want []string) bool {
	for i := 0; i < len(want); i += 2 {
		if !strings.Contains(ends[want[i]], want[i+1]) {
			return false
		}
	}
	return true
}

// replaced returns a text with words replaced, as pairs of a word and what replaces it.
func replaced(text string, pairs []string) string {
	for i := 0; i < len(pairs); i += 2 {
		text = string(bytes.ReplaceAll([]byte(text), []byte(pairs[i]), []byte(pairs[i+1])))
	}
	return text
}

const twoSlow = `
name: canceled
model: m
agents: [{name: solo, systemPrompt: Answer.}]
tasks:
  - {title: Quick, assignee: solo, description: Answer.}
  - {title: Slow, assignee: solo, description: Wait., dependsOn: [Quick], maxRetries: 2}
  - {title: Later, assignee: solo, description: Never., dependsOn: [Slow]}
`

// A run from a recording skips the task of a call that was canceled, by a command or with the run.
func TestRecordedCancels(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"cancel", "interrupt"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := clitest.Folder(t, map[string]string{"team.yaml": twoSlow})
			reached := make(chan struct{}, 1)
			model := serveModel(t, func(w http.ResponseWriter, r *http.Request, _ int) {
				body, _ := io.ReadAll(r.Body)
				if !bytes.Contains(body, []byte("# Task: Slow")) {
					reply(w, "done")
					return
				}
				reached <- struct{}{}
				<-r.Context().Done()
			})
			cmd := call{dir: dir, args: []string{"run", "--record", "rec.yaml", "-o", "json"}, env: model.env()}.command(t)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			require.NoError(t, cmd.Start())
			var runs []struct{ RunID string }
			<-reached
			if how == "cancel" {
				require.NoError(t, json.Unmarshal([]byte(call{dir: dir, args: []string{"runs", "-o", "json"}}.run(t).stdout), &runs))
				got := call{dir: dir, args: []string{"cancel", runs[0].RunID, "Slow"}}.run(t)
				require.Zero(t, got.status, "%+v", got)
			} else {
				require.NoError(t, cmd.Process.Signal(interrupt))
			}
			_ = cmd.Wait()
			require.Contains(t, clitest.Contents(t, filepath.Join(dir, "rec.yaml")), "ended: canceled", "%s", &stderr)
			want := taskEnds(t, stdout.String())
			again := call{dir: dir, args: []string{"run", "--offline", "--script", "rec.yaml", "-o", "json"}}.run(t)
			require.Equal(t, exit.StatusFailed, again.status, "%+v", again)
			got := taskEnds(t, again.stdout)
			require.Equal(t, want["Quick"], got["Quick"])
			if how == "cancel" {
				require.Equal(t, want, got)
			} else {
				require.Contains(t, got["Slow"], "skipped: ")
				require.Contains(t, got["Later"], "skipped: ")
			}
		})
	}
}

// A question that a person did not answer in time ends the task, or leaves it open, in a run from the recording too.
func TestRecordedQuestionsWithoutAnAnswer(t *testing.T) {
	t.Parallel()
	for onTimeout, want := range map[string]string{"fail": "failed: TIMEOUT", "suspend": "suspended"} {
		t.Run(onTimeout, func(t *testing.T) {
			t.Parallel()
			spec := `
name: person
model: m
agents: [{name: editor, backend: {kind: person}}, {name: solo, systemPrompt: Answer.}]
tasks:
  - {title: Decide, assignee: editor, description: May it be sent?, timeoutMs: 500` + map[string]string{"fail": ", onTimeout: fail"}[onTimeout] + `}
  - {title: Other, assignee: solo, description: Take a while.}
`
			dir := clitest.Folder(t, map[string]string{"team.yaml": spec})
			first := call{dir: dir, args: []string{"run", "--record", "rec.yaml", "-o", "json"}, env: hangingModel(t, "replies: [{task: Other, delay: 800ms, text: done}]")}.run(t)
			again := call{dir: dir, args: []string{"run", "--offline", "--script", "rec.yaml", "-o", "json"}}.run(t)
			require.FileExists(t, filepath.Join(dir, "rec.yaml"), "%+v", first)
			require.Contains(t, clitest.Contents(t, filepath.Join(dir, "rec.yaml")), "ended: timeout", "%+v", first)
			require.Equal(t, first.status, again.status, "%+v %+v", first, again)
			require.Equal(t, taskEnds(t, first.stdout), taskEnds(t, again.stdout))
			require.Contains(t, taskEnds(t, again.stdout)["Decide"]+object(t, again.stdout)["status"].(string), want)
		})
	}
}

// A script can end calls whatever the limits of the spec are.
func TestScriptsThatEndCalls(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ pears, report, want string }{
		"a child's own limit":         {"timeout", "", "completed: No result: TIMEOUT."},
		"the limit of its task":       {"task timeout", "", "failed: TIMEOUT"},
		"a limit that is not above":   {"child 2 timeout", "", "completed: No result: TIMEOUT."},
		"an interrupt of a child":     {"interrupted", "", "completed: No result: INTERRUPTED."},
		"a cancel":                    {"canceled", "", "skipped: "},
		"the limit of the task":       {"timeout", "timeout", "failed: TIMEOUT"},
		"an interrupt without a text": {"timeout", "interrupted", "failed: AGENT_ERROR"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := `
replies:
  - {task: Report, turn: 1, toolCalls: [{name: spawn_agent, arguments: {goal: Find pears}}]}
  - {task: Report, text: '{{ toolResult "spawn_agent" }}'}
  - {goal: pears, ended: ` + tt.pears + "}\n"
			if tt.report != "" {
				script = "replies: [{task: Report, ended: " + tt.report + "}]"
			}
			dir := clitest.Folder(t, map[string]string{"team.yaml": familyTeam, "script.yaml": script})
			got := call{dir: dir, args: []string{"run", "--offline", "-o", "json"}}.run(t)
			require.Equal(t, tt.want, taskEnds(t, got.stdout)["Report"], "%+v", got)
		})
	}
}
