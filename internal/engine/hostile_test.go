package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
)

// printed is everything that common ways of printing make of a value.
func printed(v any) string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%v %+v %#v %s %q", v, v, v, v, v)
	slog.New(slog.NewTextHandler(&b, nil)).Info("x", "v", v)
	slog.New(slog.NewJSONHandler(&b, nil)).Info("x", "v", v)
	return b.String()
}

type quoting string

func (e quoting) Error() string { return string(e) }

// Requirement: G42.
func TestResultsPrintNoCause(t *testing.T) {
	t.Parallel()
	a := spec("a")
	a.Classification = label.Secret
	tm := newTeam(t, cleared("a", label.Secret, fails(quoting("boom on CANARY"))), member("b", says("x")))
	res := run(t, tm, nil, a, spec("b"))
	require.Equal(t, "[withheld: secret]", res.Errors[0].Message)
	hidden := struct{ e []engine.TaskError }{res.Errors}
	for _, v := range []any{hidden, []*engine.Result{res}, res.Errors, res.Errors[0], &res.Errors[0], *res, res, res.Tasks} {
		require.NotContains(t, printed(v), "CANARY")
	}
	var cause quoting
	require.ErrorAs(t, res.Err(), &cause, "a program can still ask")
}

// Requirement: G47.
func TestClearanceIsReadOnce(t *testing.T) {
	t.Parallel()
	accepts := label.Confidential
	a := spec("a")
	a.Classification = label.Secret
	raise := func(context.Context, prompt.Prompt) (agent.Reply, error) {
		accepts = label.Secret
		return agent.Reply{Text: "CANARY"}, nil
	}
	res := run(t, newTeam(t, cleared("a", label.Secret, raise), member("b", says("x"))), &engine.RunOptions{UserAccepts: &accepts}, a, spec("b"))
	require.Equal(t, "[withheld: secret]", of(t, res, "a").Result)
}

// Requirement: G11.
func TestSpecsAreReadOnce(t *testing.T) {
	t.Parallel()
	first, second := spec("first"), spec("second", "first")
	second.Uses = []task.Use{{Name: "open"}}
	second.Metadata = map[string]any{"who": "me"}
	uses, metadata := second.Uses, second.Metadata
	change := func(context.Context, prompt.Prompt) (agent.Reply, error) {
		uses[0].Name, metadata["who"] = "payroll", "CANARY"
		return agent.Reply{Text: "x"}, nil
	}
	res := run(t, newTeam(t, member("first", change), member("second", echo)), &engine.RunOptions{Inputs: []engine.Input{
		{Name: "payroll", Text: "CANARY"}, {Name: "open", Text: "hello"},
	}}, first, second)
	require.Contains(t, of(t, res, "second").Result, "hello")
	text, err := res.MarshalJSON()
	require.NoError(t, err)
	require.NotContains(t, string(text), "CANARY")
}

// Requirement: G49.
func TestGrantsAreReadOnce(t *testing.T) {
	t.Parallel()
	k := &engine.Coordinator{Agent: &planner{plans: []string{`[{"title": "A", "description": "d", "uses": ["in"]}]`}}}
	tm, err := engine.New(engine.Config{Agents: idle(t, "ada"), Coordinator: k})
	require.NoError(t, err)
	k.MayGrant = synth.Grants{Inputs: true}
	res, err := tm.RunTeam(t.Context(), engine.Goal{Text: "x"}, &engine.RunOptions{Inputs: []engine.Input{{Name: "in", Text: "CANARY"}}})
	require.NoError(t, err)
	require.ErrorIs(t, res.Err(), engine.ErrPlan)
}

// Requirement: G47.
func TestMetadataOfATaskAboveTheCallersClearance(t *testing.T) {
	t.Parallel()
	a := spec("a")
	a.Classification, a.Metadata = label.Secret, map[string]any{"who": "CANARY"}
	res := run(t, newTeam(t, cleared("a", label.Secret, says("x")), member("b", says("x"))), nil, a, spec("b"))
	text, err := res.MarshalJSON()
	require.NoError(t, err)
	require.NotContains(t, string(text), "CANARY")
}

func TestCodesAreOurWords(t *testing.T) {
	t.Parallel()
	res := run(t, newTeam(t, member("a", fails(&llm.Error{Kind: "CANARY\x1b[31m"}))), nil, spec("a"))
	require.Equal(t, "MODEL_ERROR", of(t, res, "a").Error.Code)
}

// A subscriber that writes to what it must not change harms the record that it
// was given, and nothing that the run decides.
//
// Requirement: G11.
func TestSubscribersCannotChangeDecisions(t *testing.T) {
	t.Parallel()
	changed := make(chan struct{})
	scribble := func(e event.Event) {
		if e.Type == event.AgentStart && e.Title == "b" {
			d := e.Receipt.Sources[len(e.Receipt.Sources)-1].Decision
			d.To, d.Envelope, d.Task = "x", "forged", "x"
			close(changed)
		}
	}
	waits := func(context.Context, prompt.Prompt) (agent.Reply, error) {
		<-changed
		return agent.Reply{Text: "x"}, nil
	}
	res := run(t, newTeam(t, member("a", says("x")), member("b", waits)), &engine.RunOptions{Subscribers: []func(event.Event){scribble}}, spec("a"), spec("b", "a"))
	require.True(t, res.Success())
	require.NotContains(t, of(t, res, "b").Envelope.Header().DerivedFrom, "forged")
}

func TestRunIDIsOneCleanLine(t *testing.T) {
	t.Parallel()
	_, err := newTeam(t, member("a", echo)).RunTasks(t.Context(), []task.Spec{spec("a")}, &engine.RunOptions{RunID: "x\x1b[2J"})
	require.ErrorContains(t, err, "the run's id")
}
