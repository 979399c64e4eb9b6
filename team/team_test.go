package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

var errBroken = errors.New("broken")

// newTeam returns a team of an agent that answers and one that fails.
func newTeam(t *testing.T) *team.Team {
	t.Helper()
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "good", Agent: team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{Text: `{"n": 1}`}, nil })},
		{Name: "bad", Agent: team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, errBroken })},
	}})
	require.NoError(t, err)
	return tm
}

func TestRunThatFailsReturnsResultAndError(t *testing.T) {
	t.Parallel()
	res, err := newTeam(t).RunTasks(t.Context(), []task.Spec{
		{Title: "One", Description: "x", Assignee: "bad"},
		{Title: "Two", Description: "x", Assignee: "good", DependsOn: task.On("One")},
		{Title: "Three", Description: "x", Assignee: "good"},
	}, &team.RunOptions{RunID: "r"})
	failed, ok := errors.AsType[*team.RunError](err)
	require.True(t, ok, "%v", err)
	require.Equal(t, []any{"r", team.StatusError}, []any{failed.RunID, failed.Status})
	require.Equal(t, `run ended with status error: task "One": broken`, err.Error())
	require.Equal(t, err.Error(), fmt.Sprintf("%+v", err), "no verb prints causes")
	require.ErrorIs(t, err, errBroken)
	one, ok := errors.AsType[*team.TaskError](err)
	require.True(t, ok)
	require.Equal(t, []string{"AGENT_ERROR", "One"}, []string{one.Code, one.Title})

	require.NotNil(t, res)
	three, ok := res.Task("three")
	require.True(t, ok)
	require.Equal(t, task.Completed, three.Status)
}

func TestErrorsOfRunsThatDoNotStartAreNoRunErrors(t *testing.T) {
	t.Parallel()
	res, err := newTeam(t).RunTasks(t.Context(), []task.Spec{{Title: "One", Description: "x", Assignee: "nobody"}}, nil)
	require.Nil(t, res)
	_, ok := errors.AsType[*team.RunError](err)
	require.False(t, ok)
	problems, ok := errors.AsType[task.Problems](err)
	require.True(t, ok)
	require.Equal(t, "/tasks/0/assignee", problems[0].Pointer)

	_, err = newTeam(t).Plan(nil, &team.RunOptions{Assert: []string{"no assertion"}})
	problems, _ = errors.AsType[task.Problems](err)
	require.Equal(t, "/assert/0", problems[0].Pointer)
}

// TestPlanReportsAllOptionsTogether checks that no problem with an option hides another one.
func TestErrorsOfRunIDsSayWhatAProgramSets(t *testing.T) {
	t.Parallel()
	j := journal.InMemory()
	defer j.Close() //nolint:errcheck // it ends with the test
	tm := teamWith(t, person.New(later))
	o := &team.RunOptions{RunID: "r1", Journal: j}
	specs := []task.Spec{assigned("draft", "writer")}
	_, err := tm.RunTasks(t.Context(), specs, o)
	require.NoError(t, err)

	_, err = tm.RunTasks(t.Context(), specs, o)
	require.EqualError(t, err, `run ID "r1" exists: choose another, or call Resume`)
	const noTasks = "there are no tasks: set RunOptions.Tasks to the tasks of the run, or Answer to its goal"
	_, err = tm.Resume(t.Context(), "r1", &team.RunOptions{Journal: j})
	require.ErrorContains(t, err, noTasks)
	_, err = tm.Replay(t.Context(), "r1", &team.RunOptions{Journal: j})
	require.ErrorContains(t, err, noTasks)
	_, err = tm.Plan(nil, nil)
	require.ErrorContains(t, err, "there are no tasks: add a task")
}

func TestPlanReportsAllOptionsTogether(t *testing.T) {
	t.Parallel()
	_, err := newTeam(t).Plan([]task.Spec{{Title: "One", Description: "x", Assignee: "god"}}, &team.RunOptions{
		Assert: []string{"no assertion"}, Output: "Two", Strategy: "luck", MaxConcurrency: -1, Timeout: -1,
		Messages: []team.Message{{From: "user", To: "godo", Text: "x"}},
	})
	problems, _ := errors.AsType[task.Problems](err)
	pointers := make([]string, len(problems))
	for i := range problems {
		pointers[i] = problems[i].Pointer
	}
	require.ElementsMatch(t, []string{"/assert/0", "/output", "/schedulingStrategy", "/maxConcurrency", "/timeoutMs", "/messages/0/to", "/tasks/0/assignee"}, pointers)
}

func TestUnknownAgentOfRunAgentNamesNoTask(t *testing.T) {
	t.Parallel()
	_, err := newTeam(t).RunAgent(t.Context(), "godo", "x", nil)
	require.EqualError(t, err, `unknown agent "godo": did you mean "good"?`)
}

func TestRunErrorSaysWhyARunEndedEarly(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	one := []task.Spec{{Title: "One", Description: "x", Assignee: "good"}}
	_, err := newTeam(t).RunTasks(ctx, one, nil)
	require.ErrorIs(t, err, context.Canceled)

	slow, err := team.New(team.Config{Agents: []team.Member{{Name: "good", Agent: team.AgentFunc(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
		<-ctx.Done()
		return agent.Reply{}, ctx.Err()
	})}}})
	require.NoError(t, err)
	_, err = slow.RunTasks(t.Context(), one, &team.RunOptions{Timeout: time.Nanosecond})
	failed, ok := errors.AsType[*team.RunError](err)
	require.True(t, ok)
	require.Equal(t, team.StatusTimeout, failed.Status)
	require.ErrorContains(t, err, "run timed out after 1ns")
}

func TestPlanRunsMoreThanOnce(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{{Title: "One", Description: "x", Assignee: "good", Uses: []task.Use{{Name: "in"}}}}
	p, err := newTeam(t).Plan(specs, &team.RunOptions{Inputs: []team.Input{{Name: "in", Text: "CANARY", Classification: label.Public}}})
	require.NoError(t, err)
	require.NoError(t, p.Err())
	require.Equal(t, []team.PlannedTask{{ID: p.Tasks[0].ID, Title: "One", Assignee: "good", Label: label.Internal}}, p.Tasks)
	require.NotContains(t, fmt.Sprintf("%+v %#v", p, struct{ p *team.Plan }{p}), "CANARY")
	for _, id := range []string{"a", "b"} {
		res, err := p.Run(t.Context(), &team.RunOptions{RunID: id})
		require.NoError(t, err)
		require.Equal(t, []string{id, `{"n": 1}`}, []string{res.RunID, res.Output})
	}
	text, err := json.Marshal(p)
	require.NoError(t, err)
	require.Contains(t, string(text), `"reads":[{"kind":"input","name":"in"`)
}

func TestResultAsSaysWhyThereIsNoValue(t *testing.T) {
	t.Parallel()
	schema := json.RawMessage(`{"type": "object", "properties": {"n": {"type": "integer"}}}`)
	res, err := newTeam(t).RunTasks(t.Context(), []task.Spec{
		{Title: "Structured", Description: "x", Assignee: "good", OutputSchema: schema},
		{Title: "Text", Description: "x", Assignee: "good"},
		{Title: "Failed", Description: "x", Assignee: "bad"},
	}, nil)
	require.Error(t, err)
	n, err := team.ResultAs[map[string]int](res, "structured")
	require.NoError(t, err)
	require.Equal(t, map[string]int{"n": 1}, n)

	_, err = team.ResultAs[[]string](res, "structured")
	require.ErrorContains(t, err, `task "Structured": decode the result`)
	_, err = team.ResultAs[any](res, "Text")
	require.ErrorContains(t, err, "no structured result")
	_, err = team.ResultAs[any](res, "Failed")
	require.ErrorIs(t, err, errBroken)
	_, err = team.ResultAs[any](res, "Structure")
	require.ErrorContains(t, err, `did you mean "Structured"?`)
	_, err = team.ResultAs[any](nil, "x")
	require.Error(t, err)
}
