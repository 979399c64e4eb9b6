package team_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// An approval of all further calls of a tool is not for a call that the agent writes as text: the person is asked about
// it, also in a later process, and may refuse it.
//
// Requirement: G32.
func TestAlwaysIsNotForACallWrittenAsText(t *testing.T) {
	t.Parallel()
	for decision, want := range map[string][]int{`{"decision":"yes"}`: {1, 2, 3, 4}, `{"decision":"no"}`: {1, 2, 4}, `{"decision":"always"}`: {1, 2, 3, 4}} {
		var paid []int
		var asked []string
		pay, err := tool.New("pay", "Pays.", func(_ context.Context, in struct{ Amount int }) (string, error) {
			paid = append(paid, in.Amount)
			return "done", nil
		}, tool.Options{Approve: "editor"})
		require.NoError(t, err)
		model := llm.ModelFunc(func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
			switch n := (len(r.Messages) + 1) / 2; n { // each turn adds the call and its result
			case 3, 5:
				return says(fmt.Sprintf("```tool_code\nprint(pay(Amount=%d))\n```", n)), nil
			case 6:
				return says("done"), nil
			default:
				return calls("pay", fmt.Sprintf(`{"Amount":%d}`, n)), nil
			}
		})
		editor := func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			asked = append(asked, p.Text())
			switch {
			case strings.Contains(p.Text(), `{"Amount":1}`):
				return agent.Reply{Text: `{"decision":"always"}`}, nil
			case strings.Contains(p.Text(), `{"Amount":5}`):
				return agent.Reply{Text: `{"decision":"no"}`}, nil
			}
			return agent.Reply{}, person.ErrLater
		}
		tm, err := team.New(team.Config{Agents: []team.Member{
			{Name: "clerk", Agent: agent.New(named{model}, agent.Options{TextToolCalls: true}), Tools: []*tool.Tool{pay}, AllowUntrusted: []string{"pay"}},
			{Name: "editor", Agent: person.New(editor)},
		}})
		require.NoError(t, err)
		j, err := journal.Open(filepath.Join(t.TempDir(), "runs.db"), journal.Options{})
		require.NoError(t, err)
		defer j.Close()
		specs := []task.Spec{assigned("refund", "clerk")}
		res, err := tm.RunTasks(t.Context(), specs, &team.RunOptions{RunID: "r1", Journal: j})
		require.NoError(t, err)
		require.Equal(t, []any{team.StatusSuspended, []int{1, 2}, 2}, []any{res.Status, paid, len(asked)})
		require.Contains(t, asked[1], "in a call that it wrote as text")
		require.NotContains(t, asked[0], "as text")

		res, err = tm.Resume(t.Context(), "r1", &team.RunOptions{Tasks: specs, Journal: j})
		require.NoError(t, err)
		require.Equal(t, []any{team.StatusSuspended, []int{1, 2}, 3}, []any{res.Status, paid, len(asked)}, "another process asks too")

		require.NoError(t, leave(t.Context(), j, idOf("refund"), answerAs("ann", decision)))
		for range 2 {
			res, err = tm.Resume(t.Context(), "r1", &team.RunOptions{Tasks: specs, Journal: j})
			require.NoError(t, err)
			require.Equal(t, []any{team.StatusOK, want, 4}, []any{res.Status, paid, len(asked)}, decision)
		}
	}
}
