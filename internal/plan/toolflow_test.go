package plan_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// Requirement: G52.
func TestAssertionsAboutTools(t *testing.T) {
	t.Parallel()
	keeps := newTool(t, "lookup", tool.Options{Effect: tool.None, Stateful: true})
	pure := newTool(t, "lookup", tool.Options{Effect: tool.None})
	tasks := []task.Spec{
		{Title: "Read", Description: "?", Assignee: "reader", Uses: []task.Use{{Name: "claim"}}},
		{Title: "Write", Description: "?", Assignee: "writer"},
		{Title: "Other", Description: "?", Assignee: "other", DependsOn: task.On("Read")},
	}
	for _, tt := range []struct {
		name    string
		f       *tool.Tool
		members []string // with the tool
		text    string
		holds   bool
	}{
		{"an agent can pass on what it reads", pure, []string{"reader"}, "input claim never reaches tool:lookup", false},
		{"another agent has the tool", pure, []string{"writer"}, "input claim never derives into tool:lookup", true},
		{"an agent can pass on what derives from it", pure, []string{"other"}, "input claim never derives into tool:lookup", false},
		{"a tool without state keeps tasks apart", pure, []string{"reader", "writer"}, "input claim never derives into writer", true},
		{"a tool with state connects tasks", keeps, []string{"reader", "writer"}, "input claim never derives into writer", false},
		{"results of a tool", pure, []string{"reader"}, `"tool:lookup" never derives into other`, false},
		{"results of a tool of another agent", pure, []string{"writer"}, `"tool:lookup" never derives into other`, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var members []plan.Member
			for _, name := range []string{"reader", "writer", "other"} {
				m := plan.Member{Name: name, Agent: asksModel}
				if slices.Contains(tt.members, name) {
					m.Tools = []*tool.Tool{tt.f}
				}
				members = append(members, m)
			}
			r, err := newRoster(plan.Config{Agents: members})
			require.NoError(t, err)
			p, err := r.plan(tasks, &plan.Options{Inputs: []plan.Input{{Name: "claim", Text: "x"}}, Assert: asserting(t, tt.text)})
			require.NoError(t, err)
			err = p.Broken().Err()
			if tt.holds {
				require.NoError(t, err)
			} else {
				require.ErrorContains(t, err, "tool:lookup")
			}
		})
	}
}

func TestToolsThatCannotBeCalledAreReportedBeforeTheRun(t *testing.T) {
	t.Parallel()
	f := newTool(t, "lookup", tool.Options{Accepts: label.Internal})
	r, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "clerk", Agent: asksModel, Accepts: label.Confidential, Tools: []*tool.Tool{f}}}})
	require.NoError(t, err)
	_, err = r.plan([]task.Spec{{Title: "Age", Description: "?", Assignee: "clerk", Classification: label.Confidential}}, nil)
	require.ErrorContains(t, err, `its context is at least confidential, and tool "lookup" of agent "clerk" accepts at most internal`)
}
