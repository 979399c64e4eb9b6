package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// decoded is a result as a reader of its JSON gets it.
func decoded(t *testing.T, res *engine.Result) map[string]any {
	t.Helper()
	raw, err := json.Marshal(res)
	require.NoError(t, err)
	var out map[string]any
	require.NoError(t, json.Unmarshal(raw, &out))
	return out
}

func keys(v any) []string { return slices.Sorted(maps.Keys(v.(map[string]any))) }

func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			v = v.(map[string]any)[p]
		case int:
			v = v.([]any)[p]
		}
	}
	return v
}

func TestJSONHasTheNamesOfTheOriginal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		counted := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			time.Sleep(1500 * time.Millisecond)
			return agent.Reply{Text: `{"n":1}`, Usage: llm.Usage{InputTokens: 5, OutputTokens: 2}}, nil
		}
		a := spec("a")
		a.OutputSchema, a.Key, a.Role, a.Priority, a.Metadata = []byte(`{"type":"object"}`), "k", "writer", task.High, map[string]any{"n": 1}
		c := by("a", spec("c", "a"))
		c.OutputSchema = a.OutputSchema
		res := run(t, newTeam(t, member("a", counted), member("b", says("text")), member("broken", fails(errBroken)), member("after", says("x"))), nil,
			a, c, spec("b", "a"), spec("broken"), spec("after", "broken"))
		got := decoded(t, res)
		require.Equal(t, []string{"agentResults", "context", "errors", "outcomes", "output", "runId", "status", "success", "taskResults", "tasks", "totalTokenUsage"}, keys(got))
		res.Command, res.Name, res.Warnings = "run", "claims", []string{"careful"}
		require.Equal(t, []string{"agentResults", "command", "context", "errors", "name", "outcomes", "output", "runId", "status", "success", "taskResults", "tasks", "totalTokenUsage", "warnings"}, keys(decoded(t, res)))

		require.Equal(t, "error", got["status"])
		require.Equal(t, false, got["success"])
		require.Equal(t, map[string]any{"input_tokens": 10.0, "output_tokens": 4.0}, got["totalTokenUsage"])

		first, second, cascaded := at(got, "tasks", 0), at(got, "tasks", 1), at(got, "tasks", 4)
		require.Equal(t, []string{"assignee", "dependsOn", "description", "id", "key", "label", "metadata", "metrics", "priority", "result", "role", "status", "structured", "title"}, keys(first))
		require.Equal(t, []string{"assignee", "dependsOn", "description", "id", "label", "metrics", "priority", "result", "status", "structured", "title"}, keys(second))
		require.Equal(t, []string{"assignee", "dependsOn", "description", "error", "id", "label", "priority", "result", "status", "title"}, keys(cascaded), "no metrics: it never ran")
		require.Equal(t, []any{}, at(first, "dependsOn"), "never null")
		require.Equal(t, []any{at(first, "id")}, at(second, "dependsOn"))
		start := float64(res.StartedAt.UnixMilli())
		require.Equal(t, map[string]any{
			"startMs": start, "endMs": start + 1500, "durationMs": 1500.0, "retries": 0.0, "toolCalls": []any{},
			"tokenUsage": map[string]any{"input_tokens": 5.0, "output_tokens": 2.0},
		}, at(first, "metrics"))

		require.Equal(t, []string{"a", "after", "b", "broken"}, keys(got["agentResults"]))
		require.Equal(t, []string{"output", "structured", "success", "tokenUsage", "toolCalls"}, keys(at(got, "agentResults", "a")))
		require.Equal(t, `{"n":1}`+"\n\n---\n\n"+`{"n":1}`, at(got, "agentResults", "a", "output"))
		require.Equal(t, map[string]any{"input_tokens": 10.0, "output_tokens": 4.0}, at(got, "agentResults", "a", "tokenUsage"))
		require.Equal(t, map[string]any{"success": false, "output": "", "toolCalls": []any{}, "tokenUsage": map[string]any{"input_tokens": 0.0, "output_tokens": 0.0}}, at(got, "agentResults", "broken"))

		id := at(first, "id").(string)
		require.Len(t, got["taskResults"], 5)
		require.Equal(t, map[string]any{"n": 1.0}, at(got, "taskResults", id, "structured"))
		require.Equal(t, []string{"output", "structured", "success", "tokenUsage", "toolCalls"}, keys(at(got, "taskResults", id)))
		broken := at(got, "tasks", 3, "id")
		require.Equal(t, []any{
			map[string]any{"code": "AGENT_ERROR", "message": errBroken.Error(), "task": broken},
			map[string]any{"code": "DEPENDENCY_FAILED", "message": fmt.Sprintf("Cancelled: dependency %q failed.", broken), "task": at(cascaded, "id"), "root": broken},
		}, got["errors"])
		require.Equal(t, at(got, "errors", 1), at(cascaded, "error"))
	})
}

func TestJSONOfASuccessHasNoErrors(t *testing.T) {
	t.Parallel()
	got := decoded(t, run(t, newTeam(t, member("a", says("x"))), nil, spec("a")))
	require.Equal(t, []any{}, got["errors"], "a list, never null")
	require.Equal(t, "ok", got["status"])
	require.Equal(t, "x", got["output"])
	require.Equal(t, true, at(got, "agentResults", "a", "success"))
}

// The JSON is written in pieces; what a piece ends in must not matter.
func TestWriteJSONInPieces(t *testing.T) {
	t.Parallel()
	slowtest.NotUnderRace(t)
	rapid.Check(t, func(rt *rapid.T) {
		runes := rapid.SampledFrom([]string{"€", "𝄞", "é", "\xff", "\xe2\x82", "\u2028", "<&>", "\"\\", "a"}).Draw(rt, "runes")
		text := strings.Repeat("x", rapid.IntRange(65_530, 65_540).Draw(rt, "before")) + strings.Repeat(runes, rapid.IntRange(1, 3_000).Draw(rt, "times"))
		res := &engine.Result{Output: text, Tasks: []engine.TaskResult{
			{ID: "1", Assignee: "a", Status: task.Completed, Result: text}, {ID: "2", Assignee: "a", Status: task.Completed, Result: "end"}}}
		marshaled, err := json.Marshal(res)
		require.NoError(rt, err)
		var written bytes.Buffer
		require.NoError(rt, res.WriteJSON(&written))
		require.True(rt, bytes.Equal(marshaled, written.Bytes()))
		var out struct {
			Output       string
			AgentResults map[string]struct{ Output string }
		}
		require.NoError(rt, json.Unmarshal(marshaled, &out))
		require.True(rt, out.Output == asJSON(rt, text))
		require.True(rt, out.AgentResults["a"].Output == out.Output+"\n\n---\n\nend")
	})
}

// asJSON is what a text reads like after a way through the standard library.
func asJSON(t require.TestingT, text string) (back string) {
	raw, err := json.Marshal(text)
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &back))
	return back
}

// full is a writer that takes n bytes.
type full struct{ n int }

func (w *full) Write(p []byte) (int, error) {
	if w.n -= len(p); w.n < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestWriteJSONReportsAFullDisk(t *testing.T) {
	t.Parallel()
	res := run(t, newTeam(t, member("a", says(strings.Repeat("x", 100_000)))), nil, spec("a"))
	for _, n := range []int{0, 10, 5_000, 200_000} {
		require.ErrorIs(t, res.WriteJSON(&full{n}), io.ErrShortWrite)
	}
}

func TestOutput(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, member("a", says("text of a")), member("b", says("text of b")), member("c", says("text of c")), member("broken", fails(errBroken)), member("empty", says("")))
	tests := []struct {
		name   string
		give   []task.Spec
		output string
		want   string
	}{
		{"one sink", []task.Spec{spec("a"), spec("b", "a")}, "", "text of b"},
		{"several sinks in the order written", []task.Spec{spec("c"), spec("a"), spec("b", "a")}, "", "# c\n\ntext of c\n\n# b\n\ntext of b"},
		{"the task chosen by title", []task.Spec{spec("a"), spec("b", "a")}, " A ", "text of a"},
		{"by key", []task.Spec{{Title: "b", Description: "x", Assignee: "b"}, {Title: "a", Key: "first", Description: "x", Assignee: "a"}}, "first", "text of a"},
		{"by id", []task.Spec{spec("a"), spec("b")}, string(task.NewID("a")), "text of a"},
		{"a sink that failed is left out", []task.Spec{spec("a"), spec("broken"), spec("c")}, "", "# a\n\ntext of a\n\n# c\n\ntext of c"},
		{"nothing completed", []task.Spec{spec("broken"), spec("a", "broken")}, "", ""},
		{"a sink without a word", []task.Spec{spec("empty")}, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res := run(t, tm, &engine.RunOptions{Output: tt.output}, tt.give...)
			require.Equal(t, tt.want, res.Output)
		})
	}
}

func TestOutputWithholdsTheSinkAboveTheClearance(t *testing.T) {
	t.Parallel()
	s := spec("a")
	s.Classification = label.Secret
	res := run(t, newTeam(t, cleared("a", label.Secret, says("hidden")), member("b", says("open"))), nil, s, spec("b"))
	require.Equal(t, "# a\n\n[withheld: secret]\n\n# b\n\nopen", res.Output)
}

func TestErrOfAResult(t *testing.T) {
	t.Parallel()
	other := errors.New("another fault")
	res := run(t, newTeam(t, member("broken", fails(errBroken)), member("other", fails(other)), member("after", says("x"))), nil, spec("broken"), spec("other"), spec("after", "other", "broken"))
	require.EqualError(t, res.Err(), "task \"broken\": the agent is out of order\ntask \"other\": another fault", "roots alone")
	require.ErrorIs(t, res.Err(), errBroken)
	require.ErrorIs(t, res.Err(), other)
	failed, ok := errors.AsType[*engine.TaskError](res.Err())
	require.True(t, ok)
	require.Equal(t, task.NewID("broken"), failed.Task)
	require.NoError(t, (&engine.Result{Status: engine.StatusOK}).Err())
}

func TestTaskOfAResult(t *testing.T) {
	t.Parallel()
	a := spec("a")
	a.Title, a.Key = "The Task", "the-key"
	res := run(t, newTeam(t, member("a", says("x"))), nil, a)
	for _, name := range []string{"The Task", "  the task", "the-key", "The-Key", string(task.NewID("The Task"))} {
		got, ok := res.Task(name)
		require.True(t, ok, name)
		require.Equal(t, "The Task", got.Title)
	}
	for _, name := range []string{"", "a", "the key"} {
		_, ok := res.Task(name)
		require.False(t, ok, name)
	}
}

func TestRunAgent(t *testing.T) {
	t.Parallel()
	var got prompt.Prompt
	m := member("ada", func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		got = p
		return agent.Reply{Text: "hello back", Usage: llm.Usage{InputTokens: 3}}, nil
	})
	m.SystemPrompt = "You are Ada."
	tm := newTeam(t, m)
	const text = "  Hello.\n\n# A heading of mine\nis fine.\n"
	res, err := tm.RunAgent(t.Context(), "ada", text, nil)
	require.NoError(t, err)
	require.Equal(t, text, got.Text(), "verbatim")
	require.Equal(t, "You are Ada.", got.System())
	require.Equal(t, "hello back", res.Output)
	require.Equal(t, llm.Usage{InputTokens: 3}, res.Usage)
	require.Len(t, res.Tasks, 1)

	res, err = tm.RunAgent(t.Context(), "ada", text, &engine.RunOptions{Inputs: []engine.Input{{Name: "one", Text: "first"}, {Name: "two", Text: "second"}}})
	require.NoError(t, err)
	require.True(t, strings.HasPrefix(got.Text(), text+"\n\n## Inputs\n\n### one\n[envelope "), got.Text())
	require.Len(t, got.Sections(), 2)
	require.Empty(t, res.Warnings, "all are granted")
}

func TestRunAgentRefusals(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, member("ada", never(t)))
	_, err := tm.RunAgent(t.Context(), "bob", "Hello.", nil)
	require.ErrorIs(t, err, plan.ErrUnknownAgent)
	_, err = tm.RunAgent(t.Context(), "ada", " ", nil)
	require.ErrorContains(t, err, "it is empty")
	_, err = tm.RunAgent(t.Context(), "ada", "Hello.\n## Inputs\n", nil)
	require.ErrorIs(t, err, task.ErrInvalid)
	_, err = tm.RunAgent(t.Context(), "ada", "Hello.", &engine.RunOptions{Inputs: []engine.Input{{Name: "x", Classification: label.Confidential}}})
	require.ErrorContains(t, err, `confidential by input "x"`)
}

// What a model answered decides whether a run could run at all.
func TestRunWithoutAnyReplyCouldNotRun(t *testing.T) {
	t.Parallel()
	model := func(res llm.Response, err error) engine.Member {
		m := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) { return res, err })
		return engine.Member{Name: "a", Agent: agent.New(m, agent.Options{Retry: llm.RetryOptions{Extra: -1}})}
	}
	stuck := engine.Member{Name: "a", Agent: endpointAgent{sleeps(time.Hour), "http://localhost/v1"}}
	late := spec("late")
	late.DependsOn, late.Uses = []task.Ref{{Task: "a", Optional: true}}, []task.Use{{Name: "brief"}}
	limited := spec("a")
	limited.Timeout = time.Second
	tests := []struct {
		name string
		give []engine.Member
		spec []task.Spec
		want bool
	}{
		{"an answer", []engine.Member{model(llm.Response{Text: "x"}, nil)}, []task.Spec{spec("a")}, true},
		{"refused for its content", []engine.Member{model(llm.Response{}, &llm.Error{Kind: callfault.BadRequest, Status: 400})}, []task.Spec{spec("a")}, true},
		{"no endpoint", []engine.Member{model(llm.Response{}, &llm.Error{Kind: callfault.Unreachable})}, []task.Spec{spec("a")}, false},
		{"no key", []engine.Member{model(llm.Response{}, &llm.Error{Kind: callfault.Unauthorized, Err: llm.ErrNoKey})}, []task.Spec{spec("a")}, false},
		{"unknown model", []engine.Member{model(llm.Response{}, &llm.Error{Kind: callfault.UnknownModel, Status: 404})}, []task.Spec{spec("a")}, false},
		{"no answer in time", []engine.Member{stuck}, []task.Spec{limited}, false},
		{"an agent in Go", []engine.Member{member("a", fails(errBroken))}, []task.Spec{spec("a")}, true},
		{"a Go agent beside an endpoint that is down", []engine.Member{model(llm.Response{}, &llm.Error{Kind: callfault.Unreachable}), member("b", says("x"))}, []task.Spec{spec("a"), spec("b")}, true},
		{"a Go agent that was not asked", []engine.Member{stuck, member("late", never(t))}, []task.Spec{limited, late}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := &engine.RunOptions{Inputs: []engine.Input{{Name: "brief", TTL: time.Second}}}
				require.Equal(t, tt.want, run(t, newTeam(t, tt.give...), o, tt.spec...).Answered)
			})
		})
	}
}
