package team_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

// logs is a tool that returns many lines, one of them with personal data.
func logs(t testing.TB, lines int) *tool.Tool {
	t.Helper()
	f, err := tool.New("logs", "Returns the log.", func(context.Context, struct{}) (string, error) {
		var text strings.Builder
		text.WriteString("first line\n")
		for i := range lines {
			text.WriteString(fmt.Sprintf("line %d of the log\n", i))
		}
		return text.String() + "mail of ann@example.org\n" + strings.Repeat("more\n", lines) + "last line", nil
	}, tool.Options{Effect: tool.None, MaxOutput: 1000})
	require.NoError(t, err)
	return f
}

// reading is a team of one clerk with these tools and those that read files.
func reading(t testing.TB, model llm.Model, limit int, tools ...*tool.Tool) *team.Team {
	t.Helper()
	files, err := builtin.Files("readonly", tool.Options{})
	require.NoError(t, err)
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: append(files, tools...), Limits: team.Limits{MaxPromptBytes: limit}}}})
	require.NoError(t, err)
	return tm
}

func readClerk(t testing.TB, tm *team.Team) *team.Result {
	t.Helper()
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Read", Description: "?", Assignee: "clerk"}}, nil)
	require.NoError(t, err)
	return res
}

// An agent that can read files finds there what its result lacks, redacted like the result.
func TestLongResultIsInAFile(t *testing.T) {
	t.Parallel()
	model := &chat{replies: []llm.Response{calls("logs", ""), calls("grep", `{"pattern": "ann|mail of|line 99 ", "path": "outputs"}`), calls("file_read", `{"path": "outputs/call_1_1.txt", "offset": 102, "limit": 2}`), says("done")}}
	res := readClerk(t, reading(t, model, 0, logs(t, 100)))
	result := model.requests[1].Messages[2].Text
	require.Contains(t, result, "first line\n")
	require.Contains(t, result, "\n[…]\n")
	require.Contains(t, result, "last line\n[/envelope ")
	require.Contains(t, result, ", cut 1 of 2.4 KiB: data")
	require.True(t, strings.HasSuffix(result, "]\n[whole result in outputs/call_1_1.txt]"), result)
	require.Less(t, len(result), 1300)
	require.NotContains(t, result, "mail of")
	require.Contains(t, model.requests[2].Messages[4].Text, "outputs/call_1_1.txt:101:line 99 of the log\noutputs/call_1_1.txt:102:mail of [REDACTED:email]")
	require.NotContains(t, fmt.Sprint(model.requests[2].Messages), "ann@")
	require.Contains(t, model.requests[3].Messages[6].Text, "102\tmail of [REDACTED:email]\n103\tmore\n")
	require.Empty(t, res.Warnings, "nothing was lost")
}

// A structured result is in the file too, and its excerpt is a text.
func TestLongStructuredResultIsInAFile(t *testing.T) {
	t.Parallel()
	f, err := tool.New("list", "", func(context.Context, struct{}) (tool.Result, error) {
		return tool.Result{JSON: json.RawMessage(`["first"` + strings.Repeat(`,"x"`, 1000) + `,"last"]`)}, nil
	}, tool.Options{Effect: tool.None, MaxOutput: 500})
	require.NoError(t, err)
	model := &chat{replies: []llm.Response{calls("list", ""), calls("grep", `{"pattern": "first", "path": "outputs"}`), says("done")}}
	readClerk(t, reading(t, model, 0, f))
	require.Regexp(t, `(?s)\n\["first","x".*\n\[…\]\n.*,"last"\]\n\[/envelope`, model.requests[1].Messages[2].Text)
	require.Contains(t, model.requests[2].Messages[4].Text, `outputs/call_1_1.txt:1:["first"`)
}

// Without a tool that reads files, a long result is cut at its end.
func TestLongResultWithoutFilesIsCut(t *testing.T) {
	t.Parallel()
	model := &chat{replies: []llm.Response{calls("logs", ""), says("done")}}
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: []*tool.Tool{logs(t, 100)}}}})
	require.NoError(t, err)
	res := readClerk(t, tm)
	result := model.requests[1].Messages[2].Text
	require.Contains(t, result, "first line")
	require.NotContains(t, result, "last line")
	require.NotContains(t, result, "outputs/")
	require.Len(t, res.Warnings, 1)
}

// What was moved out of a conversation is in the file that its line names, as the agent had it.
// The file is there for the first call that uses the workspace.
func TestMovedResultIsInItsFile(t *testing.T) {
	t.Parallel()
	page, err := tool.New("page", "", func(_ context.Context, in lookupArguments) (string, error) {
		return "page of " + in.Name + " and ann@example.org " + strings.Repeat("x", 3000), nil
	}, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	model := &chat{replies: []llm.Response{calls("page", `{"name": "A"}`), calls("page", `{"name": "B"}`), calls("page", `{"name": "C"}`), calls("file_read", `{"path": "history/step_001.json"}`), calls("grep", `{"pattern": "page of", "path": "history"}`), says("done")}}
	readClerk(t, reading(t, model, 8000, page))
	require.Len(t, model.requests, 6)
	before, after := model.requests[2].Messages, model.requests[3].Messages
	require.Equal(t, "[result moved to history/step_001.json: up to 4 KiB]", after[2].Text)
	require.Equal(t, "[result moved to history/step_002.json: up to 4 KiB]", after[4].Text)
	require.Contains(t, after[6].Text, "page of C")
	require.Equal(t, after, model.requests[4].Messages[:len(after)], "later turns append again")
	require.NotContains(t, model.requests[4].Messages[8].Text, ", error")
	require.Contains(t, model.requests[4].Messages[8].Text, "page of A and [REDACTED:email]")
	file, _, _ := strings.Cut(before[2].Text, "\n")
	require.Contains(t, model.requests[4].Messages[8].Text, strings.ReplaceAll(file[:len("[envelope 0123456789")], `"`, `\"`))
	require.Contains(t, model.requests[5].Messages[10].Text, "history/step_002.json:")
}

// The results of one turn may take half of a prompt together.
func TestResultsOfOneTurnShareThePrompt(t *testing.T) {
	t.Parallel()
	page, err := tool.New("page", "", func(_ context.Context, in lookupArguments) (string, error) {
		return in.Name + strings.Repeat("x", 9000), nil
	}, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	three := llm.Response{}
	for _, name := range []string{"A", "B", "C"} {
		three.ToolCalls = append(three.ToolCalls, llm.ToolCall{Name: "page", Arguments: fmt.Sprintf(`{"name": %q}`, name)})
	}
	model := &chat{replies: []llm.Response{three, says("done")}}
	readClerk(t, reading(t, model, 12_000, page))
	for _, m := range model.requests[1].Messages[2:] {
		require.Contains(t, m.Text, "[whole result in outputs/call_1_")
		require.InDelta(t, 2000, len(m.Text), 300)
	}
}

// Results that would take too much memory together are dropped, and the agent is told.
func TestResultsOfOneTurnAreBounded(t *testing.T) {
	t.Parallel()
	page, err := tool.New("page", "", func(context.Context, struct{}) (string, error) { return strings.Repeat("x", 3<<20), nil }, tool.Options{Effect: tool.Workspace})
	require.NoError(t, err)
	many := llm.Response{}
	for range 12 {
		many.ToolCalls = append(many.ToolCalls, llm.ToolCall{Name: "page", Arguments: "{}"})
	}
	model := &chat{replies: []llm.Response{many, calls("page", ""), says("done")}}
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: []*tool.Tool{page}}}})
	require.NoError(t, err)
	readClerk(t, tm)
	for i, m := range model.requests[1].Messages[2:] {
		require.Equal(t, i >= 10, strings.Contains(m.Text, "The result was dropped"), i)
	}
	require.Contains(t, model.requests[2].Messages[15].Text, "xxx", "the next turn has room again")
}
