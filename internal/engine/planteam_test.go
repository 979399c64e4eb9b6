package engine_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

func TestPlanOfAGoalIsOnlyAPlan(t *testing.T) {
	t.Parallel()
	c := &planner{plans: []string{twoTasks}}
	tm := led(t, c, idle(t, "ada", "bob")...)
	p, err := tm.PlanTeam(t.Context(), engine.Goal{Text: "Say it."}, nil)
	require.NoError(t, err)
	require.True(t, p.Goal)
	require.Equal(t, []string{"Find", "Tell"}, []string{p.Tasks[0].Title, p.Tasks[1].Title})
	require.Len(t, c.prompts, 1)
	specs := p.Specs()
	require.Equal(t, "ada", specs[0].Assignee)
	require.Equal(t, task.On("Find"), specs[1].DependsOn)

	c.plans = []string{"no"}
	c.prompts = nil
	_, err = tm.PlanTeam(t.Context(), engine.Goal{Text: "Say it."}, nil)
	failed, ok := errors.AsType[*engine.TaskError](err)
	require.True(t, ok)
	require.Equal(t, "COORDINATOR_PLAN_INVALID", failed.Code)
}

// A plan is asked for to be looked at: the run that follows it sends the messages.
func TestPlanTeamSendsNoMessages(t *testing.T) {
	t.Parallel()
	var heard audience
	var bob listens
	tm := led(t, &planner{plans: []string{twoTasks}}, member("ada", says("a")), engine.Member{Name: "bob", Agent: &bob})
	o := heard.options()
	o.Bus, o.Messages = tm.NewBus(), []engine.Message{{From: "user", To: "bob", Text: "mind the pump"}}
	p, err := tm.PlanTeam(t.Context(), engine.Goal{Text: "Say it."}, o)
	require.NoError(t, err)
	all, err := o.Bus.All("bob")
	require.NoError(t, err)
	require.Empty(t, all)
	require.Empty(t, heard.only(event.Warning), "nobody misses them")

	require.True(t, run(t, tm, o, p.Specs()...).Success())
	require.Equal(t, 1, strings.Count(bob.prompts[0], "mind the pump"))
}

// Requirement: G42.
func TestSpecsOfAPlannedGoalAreGated(t *testing.T) {
	t.Parallel()
	c := &planner{plans: []string{`[{"title": "A", "description": "Log in with ` + fakeToken + `."}]`}}
	p, err := led(t, c, idle(t, "ada")...).PlanTeam(t.Context(), engine.Goal{Text: "Do it."}, nil)
	require.NoError(t, err)
	require.Equal(t, "Log in with [REDACTED:token].", p.Specs()[0].Description)
}

// Who will answer is a reader like any other, and stands in the plan.
//
// Requirement: G51.
func TestPlanWithAnAnswerShowsTheCoordinator(t *testing.T) {
	t.Parallel()
	const far = "https://plan.example/v1"
	tm, err := engine.New(engine.Config{
		Agents:      idle(t, "ada"),
		Coordinator: &engine.Coordinator{Agent: engine.AgentFunc(never(t)), Backend: plan.Backend{Model: "big", Endpoint: far}},
		Endpoints:   map[string]label.Classification{far: label.Internal},
	})
	require.NoError(t, err)
	p, err := tm.Plan([]task.Spec{spec("ada")}, &engine.RunOptions{Answer: &engine.Goal{Text: "What is it?"}})
	require.NoError(t, err)
	require.Equal(t, &engine.PlannedAgent{
		Name: "coordinator", Model: "big", Accepts: label.Confidential, Produces: label.Confidential, Clearance: label.Internal, LeavesTo: far,
	}, p.Coordinator)
	require.False(t, p.Goal, "the tasks are the caller's")
	require.Empty(t, p.Warnings, "its prompts do go there")

	p, err = tm.Plan([]task.Spec{spec("ada")}, nil)
	require.NoError(t, err)
	require.Nil(t, p.Coordinator, "nobody asks it")

	_, err = tm.Plan([]task.Spec{spec("ada")}, &engine.RunOptions{Answer: &engine.Goal{Text: "x", Classification: label.Confidential}})
	requireFaults(t, err, fault{"/goal", "endpoint " + far + " accepts internal", nil})
}
