package engine_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// requireRule holds an error to be a refusal by one rule.
func requireRule(t *testing.T, err error, rule handoff.Rule) {
	t.Helper()
	var refused *gate.Refusal
	require.ErrorAs(t, err, &refused)
	require.Equal(t, rule, refused.Rule)
}

// never is an agent that must not be asked.
func never(t *testing.T) agentFunc {
	return func(context.Context, prompt.Prompt) (agent.Reply, error) {
		t.Error("an agent ran")
		return agent.Reply{}, nil
	}
}

// Requirement: G15.
func TestUnlabeledIsInternal(t *testing.T) {
	t.Parallel()
	r := spec("a")
	r.Uses = []task.Use{{Name: "x"}}
	res := run(t, newTeam(t, member("a", says("x"))), &engine.RunOptions{Inputs: []engine.Input{{Name: "x", Text: "y"}}}, r)
	require.Equal(t, label.Internal, of(t, res, "a").Label)
	require.Equal(t, label.Internal, of(t, res, "a").Envelope.Classification())
	low := cleared("a", label.Public, never(t))
	_, err := newTeam(t, low).Plan([]task.Spec{spec("a")}, nil)
	requireRule(t, err, gate.RuleClearance)
}

// endpointAgent is an agent that says where its prompts go.
type endpointAgent struct {
	engine.AgentFunc
	url string
}

func (e endpointAgent) Endpoint() string { return e.url }

// A run whose only answer would be withheld does not start.
//
// Requirement: G47.
func TestAnswerWithoutAReaderIsRefused(t *testing.T) {
	t.Parallel()
	tm := newTeam(t, cleared("a", label.Secret, says("hidden")), member("b", says("open")))
	secret := spec("a")
	secret.Classification = label.Secret
	tests := []struct {
		name string
		give []task.Spec
		o    engine.RunOptions
		want string // where the problem is; empty: none
	}{
		{"the only sink", []task.Spec{secret}, engine.RunOptions{}, "/tasks/0"},
		{"the task named", []task.Spec{secret, spec("b")}, engine.RunOptions{Output: "a"}, "/output"},
		{"another sink is readable", []task.Spec{secret, spec("b")}, engine.RunOptions{}, ""},
		{"another task is named", []task.Spec{secret, spec("b")}, engine.RunOptions{Output: "b"}, ""},
		{"revealed", []task.Spec{secret}, engine.RunOptions{UserAccepts: new(label.Secret), Reveal: true}, ""},
		{"a caller who may see less", []task.Spec{spec("b")}, engine.RunOptions{UserAccepts: new(label.Public)}, "/tasks/0"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			res, err := tm.RunTasks(t.Context(), tt.give, &tt.o)
			if tt.want == "" {
				require.NoError(t, err)
				require.True(t, res.Success())
				return
			}
			requireFaults(t, err, fault{tt.want, "you may see", nil})
			requireRule(t, err, gate.RuleClearance)
		})
	}
}
