package engine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

// twice is a loop that ends after its second round, with a task before its check.
func twice(write task.Spec) task.Spec {
	return task.Spec{Title: "Draft", Repeat: &task.Repeat{
		MaxRounds: 3, Until: task.Equals("Check", "/n", 2), Output: write.Title,
		Tasks: []task.Spec{write, {
			Title: "Check", Description: "d", Assignee: "critic", DependsOn: task.On(write.Title),
			OutputSchema: []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`),
		}},
	}}
}

// numbering answers with the number of its call.
func numbering() agent.Agent {
	n := 0
	return agent.New(byTurn(func(int, llm.Request) llm.Response {
		n++
		return llm.Response{Text: fmt.Sprintf(`{"n":%d}`, n)}
	}), agent.Options{})
}

// The output files of the last round are those of the loop.
func TestFilesOfALoop(t *testing.T) {
	t.Parallel()
	tools, err := builtin.Files("readwrite", tool.Options{})
	require.NoError(t, err)
	var reviewer []string
	round := 0
	tm, err := engine.New(engine.Config{Agents: []engine.Member{
		{Name: "fixer", Tools: tools, Agent: agent.New(byTurn(func(turn int, _ llm.Request) llm.Response {
			if turn > 1 {
				return llm.Response{Text: "done"}
			}
			round++
			return llm.Response{ToolCalls: []llm.ToolCall{call("file_write", fmt.Sprintf(`{"path":"draft.md","content":"draft %d"}`, round))}}
		}), agent.Options{})},
		{Name: "critic", Agent: numbering()},
		{Name: "reviewer", Tools: tools, Agent: agent.New(caller(&reviewer, call("file_read", `{"path":"draft.md"}`)), agent.Options{})},
	}})
	require.NoError(t, err)
	specs := []task.Spec{
		twice(task.Spec{Title: "Write", Description: "d", Assignee: "fixer", OutputFiles: []string{"*.md"}}),
		{Title: "Review", Description: "d", Assignee: "reviewer", DependsOn: []task.Ref{{Task: "Draft", Files: []task.Path{task.Whole}}}},
	}
	res, err := tm.RunTasks(t.Context(), specs, nil)
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Contains(t, reviewer[0], "### Draft (by fixer)\nThese files are in your workspace:\n")
	require.Contains(t, reviewer[1], "draft 2")
	loop, _ := res.Task("Draft")
	require.Equal(t, map[string]string{"draft.md": "draft 2"}, loop.OutputFiles)
}

// A coordinator that answers gets a loop once, and not each of its rounds.
func TestAnswerReadsALoopOnce(t *testing.T) {
	t.Parallel()
	c := &planner{}
	specs := []task.Spec{twice(task.Spec{Title: "Write", Description: "d", Assignee: "ada"}), {Title: "Other", Description: "d", Assignee: "ada"}}
	res, err := led(t, c, member("ada", says("a draft")), engine.Member{Name: "critic", Agent: numbering()}).RunTasks(t.Context(), specs, &engine.RunOptions{Answer: &engine.Goal{Text: "x"}})
	require.NoError(t, err)
	require.NoError(t, res.Err())
	require.Contains(t, c.prompts[0], "### Draft (")
	require.Contains(t, c.prompts[0], "### Other (")
	require.NotContains(t, c.prompts[0], "Write")
	require.NotContains(t, c.prompts[0], "Check")
}
