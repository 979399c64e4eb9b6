package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/synth"
)

// deciding is a plan with a condition, a loop and a list.
const deciding = `[
	{"title": "List", "description": "List the sources.", "outputSchema": {"type": "object", "properties": {"urgent": {"type": "boolean"}, "sources": {"type": "array", "items": {"type": "string"}}}, "required": ["urgent", "sources"]}},
	{"title": "Read", "description": "Read the source.", "forEach": {"task": "List", "path": "/sources", "maxItems": 5}},
	{"title": "Alarm", "description": "Raise the alarm.", "when": {"task": "List", "path": "/urgent", "equals": true}},
	{"title": "Draft", "repeat": {"maxRounds": 4, "until": {"task": "Check", "path": "/good", "equals": true}, "output": "Write", "tasks": [
		{"title": "Write", "description": "Write the report.", "dependsOn": [{"each": "Read"}, {"task": "Check", "round": "previous", "optional": true}]},
		{"title": "Check", "description": "Check the report.", "dependsOn": ["Write"], "outputSchema": {"type": "object", "properties": {"good": {"type": "boolean"}}, "required": ["good"]}}
	]}}
]`

// decidingTeam is a team whose coordinator may plan with these constructs. Its agent lists two
// sources and accepts the second draft.
func decidingTeam(t *testing.T, c *planner, may synth.Constructs) (*engine.Team, *[]string) {
	var prompts []string
	var checks atomic.Int32
	ada := member("ada", func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		switch text := p.Text(); {
		case strings.Contains(text, "List the sources."):
			return agent.Reply{Text: `{"urgent": false, "sources": ["mill", "port"]}`}, nil
		case strings.Contains(text, "Read the source.") && strings.Contains(text, "mill"):
			return agent.Reply{Text: "cracks"}, nil
		case strings.Contains(text, "Read the source."):
			return agent.Reply{Text: "rust"}, nil
		case strings.Contains(text, "Check the report."):
			return agent.Reply{Text: map[bool]string{true: `{"good": true}`, false: `{"good": false}`}[checks.Add(1) == 2]}, nil
		default:
			prompts = append(prompts, text) // of Write, one after the other
			return agent.Reply{Text: "the report"}, nil
		}
	})
	tm, err := engine.New(engine.Config{Agents: []engine.Member{ada}, Coordinator: &engine.Coordinator{Agent: c, MayPlan: may}})
	require.NoError(t, err)
	return tm, &prompts
}

// TestCoordinatorPlansConstructs runs a plan that decides, and keeps the plan as it was written.
func TestCoordinatorPlansConstructs(t *testing.T) {
	t.Parallel()
	all := synth.Constructs{When: true, Repeat: true, ForEach: true}
	c := &planner{plans: []string{deciding}}
	tm, prompts := decidingTeam(t, c, all)
	res, err := tm.RunTeam(t.Context(), engine.Goal{Text: "Report on the bridges."}, nil)
	require.NoError(t, err)
	require.True(t, res.Success(), "%v", res.Err())
	require.Equal(t, "the answer", res.Output)
	var titles []string
	for i := range res.Tasks {
		titles = append(titles, res.Tasks[i].Title+" "+string(res.Tasks[i].Status))
	}
	require.Equal(t, []string{
		"List completed", "Read[1] completed", "Read[2] completed", "Alarm not_needed", "Write#1 completed", "Check#1 completed", "Write#2 completed", "Check#2 completed", "Draft completed",
	}, titles)
	require.Len(t, *prompts, 2)
	require.Contains(t, (*prompts)[0], "cracks")
	require.Contains(t, (*prompts)[0], "rust")
	require.Contains(t, (*prompts)[1], `"good": false`)
	require.Contains(t, c.systems[0], "## Conditions, Loops and Lists")

	tm, _ = decidingTeam(t, &planner{plans: []string{deciding}}, all)
	p, err := tm.PlanTeam(t.Context(), engine.Goal{Text: "Report on the bridges.", Classification: label.Public}, nil)
	require.NoError(t, err)
	specs := p.Specs()
	require.Len(t, specs, 4)
	require.Equal(t, "Read the source.", specs[1].Description)
	require.Equal(t, "coordinator", specs[1].Source.Record.From)
	require.Equal(t, "ada", specs[1].Assignee)
	require.Nil(t, specs[3].Source.Record, "a loop has no description")
	check := specs[3].Repeat.Tasks[1]
	require.Equal(t, "Check the report.", check.Description)
	require.Equal(t, "coordinator", check.Source.Record.From)
	require.Equal(t, label.Internal, check.Classification, "that of what the coordinator has read")
}

// TestPlanWithConstructsIsCorrected checks that the coordinator gets back what is wrong with the
// constructs of its plan, and that they are refused unless it may plan them.
func TestPlanWithConstructsIsCorrected(t *testing.T) {
	t.Parallel()
	all := synth.Constructs{When: true, Repeat: true, ForEach: true}
	tests := []struct {
		name string
		plan string
		may  synth.Constructs
		want []string
	}{
		{"not allowed", deciding, synth.Constructs{When: true}, []string{`task 2 "Read": unknown key "forEach"`, `task 4 "Draft": unknown key "repeat"`}},
		{"a value without bounds", strings.Replace(deciding, `"urgent": {"type": "boolean"}, `, "", 1), all, []string{`task 3 "Alarm": `, "/urgent is not bounded"}},
		{"a list that is none", strings.Replace(deciding, `"path": "/sources"`, `"path": "/urgent"`, 1), all, []string{`task 2 "Read": `, "/urgent"}},
		{"a list that no schema has", strings.Replace(deciding, `"path": "/sources"`, `"path": "/source"`, 1), all, []string{`task 2 "Read": `, "has no list at /source"}},
		{"a task of a loop", strings.Replace(deciding, `"dependsOn": ["Write"], "outputSchema"`, `"assignee": "bob", "outputSchema"`, 1), all, []string{`task 4.2 "Check": assignee: unknown agent "bob"`}},
		{"a condition of a loop", strings.Replace(deciding, `"/good", "equals": true`, `"/bad", "equals": true`, 1), all, []string{`task 4 "Draft": `, "/bad"}},
		{"an unknown task outside", strings.Replace(deciding, `{"each": "Read"}, `, `{"each": "Raed"}, `, 1), all, []string{`task 4.1 "Write": `, `no task "Raed"`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c := &planner{plans: []string{tt.plan, `[{"title": "Write", "description": "Write the report."}]`}}
			tm, _ := decidingTeam(t, c, tt.may)
			res, err := tm.RunTeam(t.Context(), engine.Goal{Text: "Report on the bridges."}, nil)
			require.NoError(t, err)
			require.True(t, res.Success(), "%v", res.Err())
			require.Len(t, res.Tasks, 1)
			for _, line := range tt.want {
				require.Contains(t, c.prompts[1], line)
			}
		})
	}
}
