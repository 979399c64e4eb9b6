package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// A pattern in the schema of a server's tool held a run for minutes. The call fails and names the
// pattern; it is not made unchecked.
func TestCallsWithArgumentsThatCannotBeChecked(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		strings.Repeat("x?", 3_000) + "!": "takes too much work to match (in /properties/text of the schema); write a text that is shorter than",
		strings.Repeat("(x{1000})?", 20):  "compiles to more than 10000 instructions (in /properties/text of the schema)",
	} {
		f := &tool.Tool{
			Name: "store", Foreign: true, Parameters: json.RawMessage(`{"type":"object","properties":{"text":{"pattern":"` + pattern + `"}}}`),
			Run: func(context.Context, tool.Call) (tool.Result, error) {
				return tool.Result{}, errors.New("it was called")
			},
			Options: tool.Options{Effect: tool.None},
		}
		model := &chat{replies: []llm.Response{calls("store", `{"text":"`+strings.Repeat("x", 400_000)+`"}`), says("Done.")}}
		tm, err := team.New(team.Config{Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Tools: []*tool.Tool{f}}}})
		require.NoError(t, err)
		began := time.Now()
		_, err = tm.RunTasks(t.Context(), []task.Spec{{Title: "Store", Description: "Store it.", Assignee: "clerk"}}, nil)
		require.NoError(t, err)
		require.Less(t, time.Since(began), 20*time.Second, "on a busy computer; a match took minutes")
		answer := model.requests[1].Messages[2].Text
		require.Contains(t, answer, "Invalid arguments: cannot be checked, since the pattern")
		require.Contains(t, answer, want)

		f.Foreign = false
		if strings.Contains(want, "compiles") {
			require.ErrorContains(t, f.Check(), "write a simpler one", "its program can correct it")
		}
	}
}

func TestOutputSchemaWithAPatternThatIsTooLarge(t *testing.T) {
	t.Parallel()
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "a", Agent: agent.New(&chat{}, agent.Options{})}}})
	require.NoError(t, err)
	schema := json.RawMessage(`{"properties":{"id":{"pattern":"` + strings.Repeat("(x{1000})?", 20) + `"}}}`)
	_, err = tm.Plan([]task.Spec{{Title: "T", Description: "d", Assignee: "a", OutputSchema: schema}}, nil)
	require.ErrorContains(t, err, "/properties/id: the pattern")
	require.ErrorContains(t, err, "compiles to more than 10000 instructions; write a simpler one")
}
