package agent_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// TestSchemaIsSentToTheEndpoint checks that each call for a structured answer,
// the correction too, carries the schema and the word JSON, without which OpenAI
// refuses json_object.
func TestSchemaIsSentToTheEndpoint(t *testing.T) {
	t.Parallel()
	model := says(`{"score": "high"}`, `{"score": 7}`)
	_, err := agent.New(model, agent.Options{}).Run(t.Context(), promptOf(t, "", " "+scoreSchema))
	require.NoError(t, err)
	s, err := schema.Parse(scoreSchema)
	require.NoError(t, err)
	require.Len(t, model.requests, 2)
	for _, req := range model.requests {
		require.Equal(t, s.String(), string(req.Schema), "canonical")
		require.Contains(t, req.System, "JSON")
	}
	model = says("hi")
	_, err = agent.New(model, agent.Options{}).Run(t.Context(), promptOf(t, "", ""))
	require.NoError(t, err)
	require.Nil(t, model.requests[0].Schema)
}

// TestFormatSchemaIsNotValidated checks that the agent does not validate a reply against a
// schema that only the endpoint enforces.
func TestFormatSchemaIsNotValidated(t *testing.T) {
	t.Parallel()
	k, err := gate.Negotiate(gate.Request{Session: "s", Task: "t"}, &gate.Capabilities{Agent: "writer"})
	require.NoError(t, err)
	p, _, err := prompt.Build(brief.Brief{Contract: k, Task: &task.Task{ID: "t", Spec: task.Spec{Title: "Score it", Description: "From 0 to 10."}}, FormatSchema: scoreSchema})
	require.NoError(t, err)
	require.Empty(t, p.Schema())
	require.NotContains(t, p.System()+p.Text(), "score", "the texts do not hold it")
	model := says("no JSON")
	reply, err := agent.New(model, agent.Options{}).Run(t.Context(), p)
	require.NoError(t, err)
	require.Equal(t, "no JSON", reply.Text)
	require.JSONEq(t, scoreSchema, string(model.requests[0].Schema))
}
