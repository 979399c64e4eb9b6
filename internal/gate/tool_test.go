package gate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/label"
)

// toTool returns a compartment for a tool that produces a level, and arguments for it.
func toTool(t *testing.T, produces label.Classification, expires time.Time) (gate.Compartment, gate.Sealed, time.Time) {
	t.Helper()
	now := time.Now()
	source := gate.Source{Kind: handoff.Arguments, Name: "r/t/1/call_1_1"}
	k, err := gate.Negotiate(gate.Request{
		Session: source.Name, Caller: handoff.User, Run: "r", Task: "t", Classification: label.Internal, Grants: []gate.Grant{gate.WholeOf(source, "tools")}, Declassified: true,
	}, &gate.Capabilities{Agent: gate.ToolReader("x"), Accepts: label.Internal, Produces: produces})
	require.NoError(t, err)
	v, err := jsonvalue.Parse(`{"to":"ann@example.org"}`)
	require.NoError(t, err)
	e, err := envelope.New(envelope.Header{ID: "a", Producer: "clerk", Run: "r", Task: "t", Classification: label.Internal, CreatedAt: now, ExpiresAt: expires}, envelope.Text("").WithStructured(v))
	require.NoError(t, err)
	c := gate.Compartment{Contract: k}
	s, err := c.GateOutbound(t.Context(), &gate.Offer{Source: source, Title: "x", Envelope: e}, now)
	require.NoError(t, err)
	return c, s, now
}

// Requirement: G52.
func TestResultOfAToolIsAsSensitiveAsWhatItReadAndProduces(t *testing.T) {
	t.Parallel()
	for produces, want := range map[label.Classification]label.Classification{label.Public: label.Internal, label.Internal: label.Internal, label.Confidential: label.Confidential} {
		c, arguments, now := toTool(t, produces, time.Time{})
		canonical, _ := arguments.Payload().JSON()
		require.JSONEq(t, `{"to":"[REDACTED:email]"}`, canonical)
		e, err := c.GateToolResult(gate.ToolReply{ID: "r", Text: "done"}, produces, &arguments, now)
		require.NoError(t, err)
		h := e.Header()
		require.Equal(t, want, h.Classification)
		require.Equal(t, label.Untrusted, h.Trust)
		require.Equal(t, "tool:x", h.Producer)
		require.Equal(t, []envelope.ID{"a"}, h.DerivedFrom)
	}
}

func TestResultOfAToolThatIsRefused(t *testing.T) {
	t.Parallel()
	c, arguments, now := toTool(t, label.Internal, time.Time{})
	_, err := c.GateToolResult(gate.ToolReply{ID: "r", Text: "x", Claim: new(label.Confidential)}, label.Internal, &arguments, now)
	require.ErrorContains(t, err, "the result claims confidential, but tool:x produces at most internal")
	_, err = c.GateToolResult(gate.ToolReply{ID: "r", Text: "x", Claim: new(label.Public)}, label.Internal, &arguments, now)
	require.NoError(t, err)
	_, other, _ := toTool(t, label.Internal, time.Time{})
	c.Contract.Session = "another"
	_, err = c.GateToolResult(gate.ToolReply{ID: "r", Text: "x"}, label.Internal, &other, now)
	require.ErrorIs(t, err, gate.ErrUnsealed)
}

func TestResultOfAToolExpiresWithItsArguments(t *testing.T) {
	t.Parallel()
	until := time.Now().Add(time.Hour)
	c, arguments, now := toTool(t, label.Internal, until)
	e, err := c.GateToolResult(gate.ToolReply{ID: "r", Text: "x"}, label.Internal, &arguments, now)
	require.NoError(t, err)
	require.True(t, e.ExpiresAt().Equal(until))
}
