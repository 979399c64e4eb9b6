package plan_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Plans name the agents whose answers have no bound, and those whose calls are not known.
func TestPlansNameWhatIsNotBounded(t *testing.T) {
	t.Parallel()
	r := newTeam(t, plan.Member{Name: "writer", Agent: asksModel}, member("scanner"), member("idle"))
	tasks := []task.Spec{{Title: "A", Description: "d", Assignee: "writer"}, {Title: "B", Description: "d", Assignee: "scanner"}}
	most := atMost(t, r, tasks, nil)
	require.Equal(t, []string{"writer"}, most.UnboundedAnswers)
	require.Equal(t, []string{"scanner"}, most.NotCounted)
	require.Equal(t, [2]int{1, 0}, [2]int{most.Calls, most.Tokens})
	require.Positive(t, most.PromptTokens)

	tasks[0].MaxRetries = 1 << 40
	most = atMost(t, r, tasks, &plan.Options{Budget: plan.Budget{MaxTokenBudget: 70}})
	require.Equal(t, [2]int{70, 70}, [2]int{most.Tokens, most.TokenBudget}, "it bounds calls and answers of any number")
	require.Equal(t, 1<<40+1, most.Calls)
}

func atMost(t *testing.T, r roster, tasks []task.Spec, o *plan.Options) plan.PlannedUsage {
	t.Helper()
	p, err := r.plan(tasks, o)
	require.NoError(t, err)
	return p.AtMost
}

// A secret input does not show its size in the bound.
func TestBoundsOfAPlanHideInputs(t *testing.T) {
	t.Parallel()
	r := newTeam(t, plan.Member{Name: "writer", Accepts: label.Confidential, Agent: asksModel})
	var all []plan.PlannedUsage
	for _, n := range []int{1, 100_000} {
		all = append(all, atMost(t, r, []task.Spec{{Title: "A", Description: "d", Assignee: "writer", Uses: []task.Use{{Name: "in"}}}, {Title: "B", Description: "d", Assignee: "writer"}}, &plan.Options{Inputs: []plan.Input{{Name: "in", Text: strings.Repeat("x", n), Classification: label.Confidential}}, UserAccepts: new(label.Internal)}))
	}
	require.Equal(t, all[0], all[1])
}
