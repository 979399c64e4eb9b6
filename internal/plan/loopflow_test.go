package plan_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

// The result of a loop is the result of its last round, so an assertion about one of the two holds
// only if it holds for the other. The writer's draft is the result of an inner and an outer loop.
func TestAssertionsAboutTheResultOfALoop(t *testing.T) {
	t.Parallel()
	const broken = "BROKEN"
	tests := map[string]string{
		"task Write /text never reaches publisher":    broken,
		"task Write /note never reaches publisher":    "", // a rule blocks it
		"task Write /text never reaches user":         broken,
		"task Inner /text never reaches publisher":    broken,
		"task Draft /text never reaches publisher":    broken,
		"task Draft /text never reaches critic":       broken, // which reads each draft
		"task Draft /note never reaches critic":       "",     // which is not granted it
		"task Critique /note never reaches publisher": "",
		"task Write /note never derives into critic":  broken, // what the writer wrote of it
	}
	r, err := newRoster(plan.Config{
		Agents: []plan.Member{member("writer"), member("critic"), member("publisher")},
		Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: "writer", To: "publisher", Block: []task.Path{"/note"}}}},
	})
	require.NoError(t, err)
	text := []byte(`{"type":"object","properties":{"text":{"type":"string"},"note":{"type":"string"},"ok":{"type":"boolean"}},"required":["text","ok"]}`)
	specs := []task.Spec{
		{Title: "Draft", Repeat: &task.Repeat{MaxRounds: 2, Until: task.Equals("Inner", "/ok", true), Output: "Inner", Tasks: []task.Spec{
			{Title: "Inner", Repeat: &task.Repeat{MaxRounds: 3, Until: task.Equals("Critique", "/ok", true), Output: "Write", Tasks: []task.Spec{
				{Title: "Write", Description: "d", Assignee: "writer", OutputSchema: text},
				{Title: "Critique", Description: "d", Assignee: "critic", OutputSchema: text, DependsOn: []task.Ref{{Task: "Write", Need: []task.Path{"/text"}}}},
			}}},
		}}},
		{Title: "Publish", Description: "d", Assignee: "publisher", DependsOn: task.On("Draft")},
	}
	for assertion, want := range tests {
		p, err := r.plan(specs, &plan.Options{Assert: asserting(t, assertion)})
		require.NoError(t, err, assertion)
		if want == broken {
			require.Error(t, p.Broken().Err(), assertion)
		} else {
			require.NoError(t, p.Broken().Err(), assertion)
		}
	}
}

// Two tasks of one title, of which one is in a loop, are two sources in the flow table.
func TestFlowOfConditionsOnTasksOfOneTitle(t *testing.T) {
	t.Parallel()
	schema := []byte(`{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`)
	r, err := newRoster(plan.Config{
		Agents: []plan.Member{member("a"), member("b"), member("reader")},
		Policy: &handoff.Policy{Rules: []handoff.PairRule{{From: "b", To: "reader", Mode: handoff.Minimal}}},
	})
	require.NoError(t, err)
	p, err := r.plan([]task.Spec{
		{Title: "Draft", Repeat: &task.Repeat{MaxRounds: 2, Until: task.Equals("Check", "/ok", true), Output: "Check", Tasks: []task.Spec{
			{Title: "Check", Description: "d", Assignee: "a", OutputSchema: schema},
		}}},
		{Title: "Check", Description: "d", Assignee: "a", Uses: []task.Use{{Name: "claim"}}, OutputSchema: schema},
		{Title: "Pay", Description: "d", Assignee: "b", When: task.Equals("Check", "/ok", true)},
		{Title: "Report", Description: "d", Assignee: "reader", DependsOn: task.On("Pay")},
	}, &plan.Options{Inputs: []plan.Input{{Name: "claim", Text: "x"}}, Assert: asserting(t, "input claim never derives into reader")})
	require.NoError(t, err)
	require.ErrorContains(t, p.Broken().Err(), `reader receives what task "Check" wrote`)
}

// The plan has each task of a loop once.
func TestPlanOfALoop(t *testing.T) {
	t.Parallel()
	loop := task.Repeat{MaxRounds: 4, Until: task.Equals("Check", "/valid", true), Output: "Write", Tasks: []task.Spec{
		{Title: "Write", Description: "d", Assignee: "writer", DependsOn: []task.Ref{{Task: "Check", Round: task.Previous, Need: []task.Path{"/feedback"}, Optional: true}}},
		{Title: "Check", Description: "d", Assignee: "critic", DependsOn: task.On("Write"),
			OutputSchema: []byte(`{"type":"object","properties":{"valid":{"type":"boolean"},"feedback":{"type":"string"}},"required":["valid","feedback"]}`)},
	}}
	specs := []task.Spec{{Title: "Draft", Repeat: &loop}, by("publisher", spec("Publish", "Draft"))}
	p, err := newTeam(t, member("writer"), member("critic"), member("publisher")).plan(specs, nil)
	require.NoError(t, err)
	raw, err := json.Marshal(p)
	require.NoError(t, err)
	var shown struct {
		Tasks []struct {
			Title  string
			Rounds int
			Loop   bool
			Reads  []struct{ Kind, Name string }
		}
	}
	require.NoError(t, json.Unmarshal(raw, &shown))
	require.Len(t, shown.Tasks, 4)
	require.Equal(t, "[{Write 4 false [{dependency Check} {condition Check}]} {Check 4 false [{dependency Write} {condition Check}]} {Draft 4 true [{dependency Write} {condition Check}]} {Publish 0 false [{dependency Draft}]}]", fmt.Sprint(shown.Tasks))
	require.Equal(t, specs[0].Repeat.Tasks[0].Title, p.Specs()[0].Repeat.Tasks[0].Title, "a plan can be saved as it was written")
}
