package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// toolCalled returns a tool with this name that says so.
func toolCalled(t testing.TB, name string, o tool.Options) *tool.Tool {
	t.Helper()
	f, err := tool.New(name, "About "+name+".", func(context.Context, struct{}) (string, error) { return "said by " + name, nil }, o)
	require.NoError(t, err)
	return f
}

// toolNames returns the names of the tools that a request offers.
func toolNames(r *llm.Request) []string {
	names := []string{}
	for _, f := range r.Tools {
		names = append(names, f.Name)
	}
	return names
}

// plannedTools returns the tools of each task of a plan.
func plannedTools(t testing.TB, p *team.Plan) (names [][]string) {
	t.Helper()
	text, err := json.Marshal(p)
	require.NoError(t, err)
	var said struct{ Tasks []struct{ Tools []string } }
	require.NoError(t, json.Unmarshal(text, &said))
	for _, one := range said.Tasks {
		names = append(names, one.Tools)
	}
	return names
}

// clerks returns a team in which a clerk has the tools search and mail, and a reader has search.
func clerks(t testing.TB, models map[string]llm.Model, coordinator *team.Coordinator) *team.Team {
	t.Helper()
	search, mail := toolCalled(t, "search", tool.Options{Effect: tool.None, Accepts: label.Confidential, Produces: new(label.Internal)}), toolCalled(t, "mail", tool.Options{Effect: tool.None, Accepts: label.Confidential})
	member := func(name string, tools ...*tool.Tool) team.Member {
		model := models[name]
		if model == nil {
			model = &chat{}
		}
		return team.Member{Name: name, Capabilities: []string{name}, Agent: agent.New(model, agent.Options{}), Accepts: label.Confidential, Tools: tools}
	}
	tm, err := team.New(team.Config{Agents: []team.Member{member("clerk", search, mail), member("reader", search), member("writer")}, Coordinator: coordinator})
	require.NoError(t, err)
	return tm
}

func TestTaskHasOnlyTheToolsThatItNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		tools   []string
		offered []string
		answer  string // to a call of mail
		label   label.Classification
	}{
		{"all of its agent", nil, []string{"search", "mail"}, "said by mail", label.Confidential},
		{"one of them", []string{"search"}, []string{"search"}, "Unknown tool. Available tools: search.", label.Internal},
		{"none", []string{}, []string{}, "Unknown tool: you have no tools.", label.Internal},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			model := &chat{replies: []llm.Response{calls("mail", "{}"), says("done")}}
			tm := clerks(t, map[string]llm.Model{"clerk": model}, nil)
			tasks := []task.Spec{{Title: "Find", Description: "?", Assignee: "clerk", Tools: tt.tools}}
			p, err := tm.Plan(tasks, nil)
			require.NoError(t, err)
			require.Equal(t, tt.label, p.Tasks[0].Label)
			require.Equal(t, [][]string{tt.offered}, plannedTools(t, p))
			res, err := tm.RunTasks(t.Context(), tasks, nil)
			require.Equal(t, tt.offered, toolNames(&model.requests[0]))
			require.NoError(t, err)
			require.Equal(t, tt.label, res.Tasks[0].Label)
			require.Contains(t, model.requests[1].Messages[2].Text, tt.answer)
		})
	}
}

// plans is a coordinator that answers requests for a plan in turn.
func plans(seen *[]llm.Request, texts ...string) llm.Model {
	return llm.ModelFunc(func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		*seen = append(*seen, r)
		if n := len(*seen); n <= len(texts) {
			return says(texts[n-1]), nil
		}
		return says("answered"), nil
	})
}

func TestPlannedTasksHaveOnlyToolsThatTheirPlanMayGrant(t *testing.T) {
	t.Parallel()
	const goal = "Research the market, compare the offers and then write a report."
	plan := func(members string) string {
		return `[{"title": "Find", "description": "Find it.", "assignee": "reader"` + members + `}]`
	}
	for _, tt := range []struct {
		name   string
		may    synth.Grants
		plans  []string
		tools  []string
		faults string // that the coordinator reads, of its first plan
		fails  string // the code of the failure of the run
	}{
		{"no tools without the grant", synth.Grants{}, []string{plan("")}, []string{}, "", ""},
		{"no tools that the plan does not name", synth.Grants{Tools: true}, []string{plan("")}, []string{}, "", ""},
		{"tools that the plan names", synth.Grants{Tools: true}, []string{plan(`, "tools": ["search"]`)}, []string{"search"}, "", ""},
		{"a tool that the agent lacks is corrected", synth.Grants{Tools: true}, []string{plan(`, "tools": ["mail"]`), plan(`, "tools": ["search"]`)}, []string{"search"}, `agent "reader" does not have the tool "mail": write one of search`, ""},
		{"a grant that the plan may not make is corrected", synth.Grants{}, []string{plan(`, "tools": ["search"]`), plan("")}, []string{}, "a grant that this plan may not make: remove it", ""},
		{"it is corrected once", synth.Grants{Tools: true}, []string{plan(`, "tools": ["mail"]`), plan(`, "tools": ["mail"]`)}, nil, `does not have the tool "mail"`, "COORDINATOR_PLAN_INVALID"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var seen []llm.Request
			model := &chat{replies: []llm.Response{calls("search", "{}"), says("done")}}
			tm := clerks(t, map[string]llm.Model{"reader": model}, &team.Coordinator{Agent: agent.New(plans(&seen, tt.plans...), agent.Options{}), MayGrant: tt.may})
			_, err := tm.RunTeam(t.Context(), team.Goal{Text: goal}, nil)
			shown := strings.Contains(seen[0].System, `{"description":"About search.","name":"search"}`)
			require.Equal(t, tt.may.Tools, shown, seen[0].System)
			require.Equal(t, tt.may.Tools, strings.Contains(string(seen[0].Schema), `"enum":["search","mail"]`), string(seen[0].Schema))
			if tt.faults != "" {
				require.Contains(t, seen[1].Messages[0].Text, tt.faults)
			}
			failed, _ := errors.AsType[*team.TaskError](err)
			switch {
			case tt.fails != "":
				require.Equal(t, tt.fails, failed.Code)
				require.Empty(t, model.requests)
			case len(tt.tools) == 0: // the agent calls a tool nevertheless
				require.NoError(t, err)
				require.Empty(t, model.requests[0].Tools)
				require.Contains(t, model.requests[1].Messages[2].Text, "Unknown tool: you have no tools.")
			default:
				require.NoError(t, err)
				require.Equal(t, tt.tools, toolNames(&model.requests[0]))
				require.Contains(t, model.requests[1].Messages[2].Text, "said by search")
			}
		})
	}
}

// What a server writes about its tools is not in the roster, which has no fences.
func TestRosterHasNoDescriptionsOfServers(t *testing.T) {
	t.Parallel()
	var seen []llm.Request
	f := toolCalled(t, "search", tool.Options{Effect: tool.None})
	f.Foreign = true
	tm, err := team.New(team.Config{
		Agents:      []team.Member{{Name: "reader", Agent: agent.New(&chat{replies: []llm.Response{says("done")}}, agent.Options{}), Tools: []*tool.Tool{f}}},
		Coordinator: &team.Coordinator{Agent: agent.New(plans(&seen, `[{"title": "Find", "description": "Find it.", "tools": ["search"]}]`), agent.Options{}), MayGrant: synth.Grants{Tools: true}},
	})
	require.NoError(t, err)
	_, err = tm.RunTeam(t.Context(), team.Goal{Text: "Compare the offers."}, nil)
	require.NoError(t, err)
	require.Contains(t, seen[0].System, `"tools":[{"name":"search"}]`)
	require.NotContains(t, seen[0].System, "About search.")
}

// A goal that becomes a task unchanged is the caller's own task.
func TestGoalThatBecomesATaskHasTheToolsOfItsAgent(t *testing.T) {
	t.Parallel()
	var seen []llm.Request
	model := &chat{replies: []llm.Response{calls("search", "{}"), says("done")}}
	tm, err := team.New(team.Config{
		Agents:      []team.Member{{Name: "reader", Agent: agent.New(model, agent.Options{}), Tools: []*tool.Tool{toolCalled(t, "search", tool.Options{Effect: tool.None})}}},
		Coordinator: &team.Coordinator{Agent: agent.New(plans(&seen), agent.Options{})},
	})
	require.NoError(t, err)
	_, err = tm.RunTeam(t.Context(), team.Goal{Text: "What is the capital of France?"}, &team.RunOptions{Auto: true})
	require.NoError(t, err)
	require.Empty(t, seen)
	require.Equal(t, []string{"search"}, toolNames(&model.requests[0]))
}

// A plan that is run as written tasks has the tools that it granted, and no others.
func TestPlannedTasksKeepTheirTools(t *testing.T) {
	t.Parallel()
	var seen []llm.Request
	tm := clerks(t, nil, &team.Coordinator{
		Agent: agent.New(plans(&seen, `[{"title": "Find", "description": "Find it.", "assignee": "reader", "tools": ["search"]}, {"title": "Tell", "description": "Tell it.", "assignee": "reader"}]`), agent.Options{}), MayGrant: synth.Grants{Tools: true},
	})
	p, err := tm.PlanTeam(t.Context(), team.Goal{Text: "Find it and then tell it."}, nil)
	require.NoError(t, err)
	again, err := tm.Plan(p.Specs(), nil)
	require.NoError(t, err)
	for _, planned := range []*team.Plan{p, again} {
		require.Equal(t, [][]string{{"search"}, {}}, plannedTools(t, planned))
	}
}
