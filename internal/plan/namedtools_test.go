package plan_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// clerks returns a team in which a clerk has the tools search and mail, and a reader has search.
func clerks(t testing.TB) roster {
	t.Helper()
	search, mail := newTool(t, "search", tool.Options{Effect: tool.None, Accepts: label.Confidential, Produces: new(label.Internal)}), newTool(t, "mail", tool.Options{Effect: tool.None, Accepts: label.Confidential})
	having := func(name string, tools ...*tool.Tool) plan.Member {
		return plan.Member{Name: name, Capabilities: []string{name}, Agent: asksModel, Accepts: label.Confidential, Tools: tools}
	}
	return newTeam(t, having("clerk", search, mail), having("reader", search), having("writer"))
}

func TestFlowFollowsTheToolsOfATask(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		tools []string
		text  string
		holds bool
	}{
		{"a tool of the task", []string{"search"}, "input claim never derives into tool:search", false},
		{"a tool that only its agent has", []string{"search"}, "input claim never derives into tool:other", true},
		{"a tool of no task", []string{}, "input claim never derives into tool:search", true},
		{"results of a tool of the task", []string{"search"}, `"tool:search" never derives into writer`, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tools := []*tool.Tool{newTool(t, "search", tool.Options{Effect: tool.None}), newTool(t, "other", tool.Options{Effect: tool.None})}
			r, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "reader", Agent: asksModel, Tools: tools}, {Name: "writer", Agent: asksModel}}})
			require.NoError(t, err)
			p, err := r.plan([]task.Spec{
				{Title: "Read", Description: "?", Assignee: "reader", Uses: []task.Use{{Name: "claim"}}, Tools: tt.tools},
				{Title: "Write", Description: "?", Assignee: "writer", DependsOn: task.On("Read")},
			}, &plan.Options{Inputs: []plan.Input{{Name: "claim", Text: "x"}}, Assert: asserting(t, tt.text)})
			require.NoError(t, err)
			require.Equal(t, tt.holds, p.Broken().Err() == nil, "%v", p.Broken().Err())
		})
	}
}

func TestToolsOfTasksAreChecked(t *testing.T) {
	t.Parallel()
	requires := func(names ...string) *task.Requires { return &task.Requires{Tools: names} }
	for _, tt := range []struct {
		name    string
		spec    task.Spec
		agent   string // of the plan
		pointer string // of the only problem
		message string
		hint    string
	}{
		{"a tool that the agent does not have", task.Spec{Assignee: "reader", Tools: []string{"search", "mail"}}, "", "/tasks/0/tools/1", `agent "reader" does not have the tool "mail"`, "write one of search"},
		{"a misspelt tool", task.Spec{Assignee: "clerk", Tools: []string{"serach"}}, "", "/tasks/0/tools/0", `agent "clerk" does not have the tool "serach"`, `did you mean "search"?`},
		{"tools of an agent without any", task.Spec{Assignee: "writer", Tools: []string{"search"}}, "", "/tasks/0/tools/0", `agent "writer" does not have the tool "search"`, "give the tool to an agent, or remove it here"},
		{"a tool that no agent has", task.Spec{Tools: []string{"serach"}}, "", "/tasks/0/tools/0", `no agent has the tool "serach"`, `did you mean "search"?`},
		{"a tool named twice", task.Spec{Assignee: "clerk", Tools: []string{"search", " search "}}, "", "/tasks/0/tools/1", `tools[1]: "search" is named before`, "remove it"},
		{"an agent is chosen that has the tools", task.Spec{Tools: []string{"mail"}}, "clerk", "", "", ""},
		{"no agent has the tools and the capability", task.Spec{Tools: []string{"mail"}, Requires: &task.Requires{Capabilities: []string{"writer"}}}, "", "/tasks/0/requires", `"clerk" comes nearest, but lacks the capability "writer"`, "let one agent have it all"},
		{"a required tool that the task may not call", task.Spec{Assignee: "clerk", Tools: []string{"search"}, Requires: requires("mail")}, "", "/tasks/0/requires/requiredTools/0", `requiredTools[0]: "mail" is not in tools`, "add it to tools, or remove it here"},
		{"a required tool among its tools", task.Spec{Tools: []string{"mail", "search"}, Requires: requires("search")}, "clerk", "", "", ""},
		{"a required tool that its agent lacks", task.Spec{Assignee: "writer", Requires: requires("search")}, "", "/tasks/0/requires", `agent "writer" lacks the tool "search"`, `"clerk" has all that it requires`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.spec.Title, tt.spec.Description = "Find", "?"
			p, err := clerks(t).plan([]task.Spec{tt.spec}, nil)
			if tt.pointer == "" {
				require.NoError(t, err)
				require.Equal(t, tt.agent, p.Tasks[0].Assignee)
				return
			}
			problems, _ := errors.AsType[task.Problems](err)
			require.Len(t, problems, 1, "%v", err)
			require.Equal(t, tt.pointer, problems[0].Pointer)
			require.Contains(t, problems[0].Message, tt.message)
			require.Contains(t, problems[0].Hint, tt.hint)
		})
	}
}

// An external tool that the task may not call needs no permission for untrusted context.
func TestToolsThatATaskLeavesOutNeedNoPermission(t *testing.T) {
	t.Parallel()
	tools := []*tool.Tool{newTool(t, "search", tool.Options{Effect: tool.None}), newTool(t, "mail", tool.Options{})}
	r, err := newRoster(plan.Config{Agents: []plan.Member{{Name: "reader", Agent: asksModel, Tools: tools}}})
	require.NoError(t, err)
	o := &plan.Options{Inputs: []plan.Input{{Name: "claim", Text: "x"}}}
	spec := task.Spec{Title: "Read", Description: "?", Assignee: "reader", Uses: []task.Use{{Name: "claim"}}}
	for _, spec.Tools = range [][]string{nil, {"mail"}, {"search"}, {}} {
		_, err := r.plan([]task.Spec{spec}, o)
		if refused := spec.Tools == nil || slices.Contains(spec.Tools, "mail"); refused {
			require.ErrorContains(t, err, `the tool "mail" of agent "reader" has external effects`)
		} else {
			require.NoError(t, err)
		}
	}
}
