package gate_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

var noon = time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)

// Credentials that were never valid, in pieces so that scanners of
// repositories do not take them for real ones.
var (
	fakeToken = "gh" + "p_" + "9fKq2LmZ7RtXv4Nc8BwYp1HsDj6GaEu3Wo5T"
	fakePEM   = "-----BEGIN " + "PRIVATE KEY-----\n" + strings.Repeat("MIIBVgIBADANBgkqhkiG9w0BAQEFAASCAUAwggE8AgEAAkEAq7BFUpkGp3+LQmlQ\n", 40) + "-----END " + "PRIVATE KEY-----"
)

var upstream = gate.Source{Kind: handoff.Dependency, Name: "t-up"}

// request asks "writer" to take the result of t-up.
func request() gate.Request {
	return gate.Request{
		Session: "r1/t-down/1", Caller: handoff.User, Run: "r1", Task: "t-down",
		Classification: label.Confidential,
		Grants:         []gate.Grant{gate.WholeOf(upstream, "team.yaml:12 dependsOn")},
	}
}

func writer() gate.Capabilities {
	return gate.Capabilities{Agent: "writer", Accepts: label.Confidential, Produces: label.Confidential, OutputTags: []string{"summary", "score"}}
}

func negotiate(t require.TestingT, r gate.Request, c gate.Capabilities) gate.Contract {
	k, err := gate.Negotiate(r, &c)
	require.NoError(t, err)
	return k
}

// compartment returns a gate whose contract was changed after it was made.
func newCompartment(t require.TestingT, changes ...func(*gate.Contract)) *gate.Compartment {
	return granted(t, request().Grants, changes...)
}

// granted returns a gate under a contract with these grants.
func granted(t require.TestingT, grants []gate.Grant, changes ...func(*gate.Contract)) *gate.Compartment {
	r := request()
	r.Grants = grants
	c := &gate.Compartment{Contract: negotiate(t, r, writer())}
	for _, change := range changes {
		change(&c.Contract)
	}
	return c
}

// rulebook compiles a policy for the agents analyst, writer and critic.
func rulebook(t require.TestingT, p handoff.Policy) *gate.Rulebook {
	b, err := gate.Compile(&p, []gate.Party{{Name: "analyst"}, {Name: "writer"}, {Name: "critic"}})
	require.NoError(t, err)
	return b
}

// exactly returns the policy of one rule for what analyst makes for writer.
func exactly(r handoff.PairRule) handoff.Policy {
	r.From, r.To = "analyst", "writer"
	return handoff.Policy{Rules: []handoff.PairRule{r}}
}

// under returns a gate that grants writer what analyst made as a whole, under a policy.
func under(t require.TestingT, p handoff.Policy, changes ...func(*gate.Contract)) *gate.Compartment {
	g := gate.WholeOf(upstream, "team.yaml:12 dependsOn")
	g.Terms = rulebook(t, p).Between("analyst", "writer")
	return granted(t, []gate.Grant{g}, changes...)
}

// needing is under for a task that says what it needs.
func needing(t require.TestingT, p handoff.Policy, need ...task.Path) *gate.Compartment {
	g := gate.Grant{Source: upstream, Paths: need, Line: "team.yaml:12 dependsOn", Terms: rulebook(t, p).Between("analyst", "writer")}
	return granted(t, []gate.Grant{g})
}

func header() envelope.Header {
	return envelope.Header{ID: "e-up", Producer: "analyst", Task: "t-up", Run: "r1", Classification: label.Confidential, CreatedAt: noon}
}

func envelopeOf(t require.TestingT, p envelope.Payload, changes ...func(*envelope.Header)) *envelope.Envelope {
	h := header()
	for _, change := range changes {
		change(&h)
	}
	e, err := envelope.New(h, p)
	require.NoError(t, err)
	return e
}

func structured(t require.TestingT, raw string) envelope.Payload {
	p, err := envelope.Structured(raw)
	require.NoError(t, err)
	return p
}

// offer returns an offer that passes the gate of [compartment].
func offer(t require.TestingT, p envelope.Payload, changes ...func(*envelope.Header)) *gate.Offer {
	return &gate.Offer{Source: upstream, Title: "Analyse", Assignee: "analyst", Status: task.Completed, Envelope: envelopeOf(t, p, changes...)}
}

func decide(t require.TestingT, c *gate.Compartment, o *gate.Offer) gate.Ruling {
	r, err := c.Decide(context.Background(), o, noon)
	require.NoError(t, err)
	return r
}

// seal gates an offer that must pass.
func seal(t require.TestingT, c *gate.Compartment, o *gate.Offer) gate.Sealed {
	s, err := c.GateOutbound(context.Background(), o, noon)
	require.NoError(t, err)
	require.False(t, s.Withheld())
	return s
}

// sealed is seal for calls of methods.
func sealed(t require.TestingT, c *gate.Compartment, o *gate.Offer) *gate.Sealed {
	s := seal(t, c, o)
	return &s
}

// text gates a text and returns what is delivered.
func text(t require.TestingT, give string) *gate.Sealed {
	return sealed(t, newCompartment(t), offer(t, envelope.Text(give)))
}

// tampered returns e with another text under its old digest.
func tampered(t require.TestingT, e *envelope.Envelope) *envelope.Envelope {
	r := e.Record()
	r.Text += "!"
	e, err := r.Envelope()
	require.NoError(t, err)
	return e
}

func TestBaseOfferPasses(t *testing.T) {
	t.Parallel() // what the other tests change one thing about
	r := decide(t, newCompartment(t), offer(t, envelope.Text("numbers")))
	require.EqualExportedValues(t, gate.Decision{
		Verdict: gate.Passed, Mode: handoff.Full, Rule: gate.RuleDependsOn, Line: "team.yaml:12 dependsOn", Source: upstream,
		Envelope: "e-up", From: "analyst", To: "writer", Task: "t-down", Before: label.Confidential, After: label.Confidential,
		Sizes: gate.Sizes{BytesBefore: 7, BytesAfter: 7},
	}, r.Decision)
	require.NoError(t, r.Err())
	s := seal(t, newCompartment(t), offer(t, envelope.Text("numbers")))
	require.Equal(t, envelope.Text("numbers"), s.Payload())
	require.Equal(t, "Analyse", s.Title())
	require.Equal(t, "analyst", s.Assignee())
	require.Equal(t, task.Completed, s.Status())
	require.Equal(t, upstream, s.Source())
}
