package gate_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/label"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// object is a schema that wants an object.
type object struct{}

func (object) Validate(v jsonvalue.Value) error {
	if _, ok := v.Value().(map[string]any); !ok {
		return errors.New("not an object")
	}
	return nil
}

func parse(t require.TestingT, raw string) jsonvalue.Value {
	v, err := jsonvalue.Parse(raw)
	require.NoError(t, err)
	return v
}

func TestInboundRefusesByOneRuleAlone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*gate.Contract, *gate.Reply)
		schema gate.Validator
		rule   handoff.Rule
	}{
		{"no contract", func(k *gate.Contract, _ *gate.Reply) { k.Session = "" }, nil, gate.RuleContract},
		{"the contract has ended", func(k *gate.Contract, _ *gate.Reply) { k.ExpiresAt = noon }, nil, gate.RuleContract},
		{"a claim above the ceiling", func(_ *gate.Contract, r *gate.Reply) { r.Claim = new(label.Secret) }, nil, gate.RuleClaim},
		{"a claim of no level", func(_ *gate.Contract, r *gate.Reply) { r.Claim = new(label.Secret + 1) }, nil, gate.RuleClaim},
		{"no JSON where a schema asks for it", func(_ *gate.Contract, r *gate.Reply) { r.Text = "words" }, object{}, gate.RuleSchema},
		{"two values in prose", func(_ *gate.Contract, r *gate.Reply) { r.Text = `Either {"a":1} or {"a":2}` }, object{}, gate.RuleSchema},
		{"JSON that does not match", func(_ *gate.Contract, r *gate.Reply) { r.Text = `[1]` }, object{}, gate.RuleSchema},
		{"JSON that the agent read and does not match", func(_ *gate.Contract, r *gate.Reply) { r.Text, r.JSON = `{"a":1}`, parse(t, `[1]`) }, object{}, gate.RuleSchema},
		{"a tag that is not declared", func(_ *gate.Contract, r *gate.Reply) { r.Tags = []string{"summary", "admin"} }, nil, gate.RuleTags},
		{"a required tag missing", func(k *gate.Contract, _ *gate.Reply) { k.RequiredTags = []string{"score"} }, nil, gate.RuleTags},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, r := newCompartment(t), gate.Reply{ID: "e-down", Text: `{"CANARY":1}`}
			parts := []gate.Sealed{seal(t, c, offer(t, envelope.Text("x")))}
			_, d, err := c.GateInbound(r, parts, tt.schema, noon)
			require.NoError(t, err, "without the change it passes")
			require.Equal(t, gate.Passed, d.Verdict)

			tt.change(&c.Contract, &r)
			e, d, err := c.GateInbound(r, nil, tt.schema, noon)
			require.Nil(t, e)
			held, ok := errors.AsType[*gate.WithheldError](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, tt.rule, d.Rule)
			require.Equal(t, gate.Withheld, d.Verdict)
			require.Equal(t, d, held.Decision)
			require.Zero(t, d.BytesAfter)
			require.NotContains(t, err.Error(), "CANARY")
		})
	}
}

func TestInboundEdges(t *testing.T) {
	t.Parallel()
	c := newCompartment(t, func(k *gate.Contract) { k.ExpiresAt, k.RequiredTags = noon.Add(1), []string{"score"} })
	e, d, err := c.GateInbound(gate.Reply{ID: "e", Text: "x", Claim: new(label.Confidential), Tags: []string{"score"}}, nil, nil, noon)
	require.NoError(t, err)
	require.Equal(t, []string{"score"}, e.Header().Tags)
	require.Equal(t, gate.Decision{
		Verdict: gate.Passed, Mode: handoff.Full, Rule: gate.RuleResult, Source: gate.Source{Kind: handoff.Dependency, Name: "t-down"}, Envelope: "e",
		From: "writer", To: "user", Task: "t-down", Before: label.Confidential, After: label.Confidential,
		Sizes: gate.Sizes{BytesBefore: 1, BytesAfter: 1},
	}, d)
}

func TestInboundMakesTheEnvelope(t *testing.T) {
	t.Parallel()
	c := newCompartment(t)
	parts := []gate.Sealed{seal(t, c, offer(t, envelope.Text("x"))), withheld(t, c)}
	e, _, err := c.GateInbound(gate.Reply{ID: "e-down", Text: "done", TTL: time.Minute, Tags: []string{"score", "summary", "score"}}, parts, nil, noon)
	require.NoError(t, err)
	require.Equal(t, envelope.Header{
		ID: "e-down", Producer: "writer", Task: "t-down", Run: "r1", Classification: label.Confidential, CreatedAt: noon, ExpiresAt: noon.Add(time.Minute),
		DerivedFrom: []envelope.ID{"e-up"}, Tags: []string{"summary", "score"},
	}, e.Header(), "a part that was withheld is no parent; tags stand once, in the declared order")
	require.Equal(t, envelope.Text("done"), e.Open())
	require.NoError(t, e.Genuine())
}

func TestInboundReadsTheStructuredPart(t *testing.T) {
	t.Parallel()
	compartment := func(r gate.Reply) *envelope.Envelope {
		r.ID = "e"
		e, _, err := newCompartment(t).GateInbound(r, nil, object{}, noon)
		require.NoError(t, err)
		return e
	}
	e := compartment(gate.Reply{Text: "```json\n{\"score\": 1.0, \"b\": 2}\n```"})
	canonical, ok := e.Open().JSON()
	require.True(t, ok)
	require.Equal(t, `{"b":2,"score":1}`, canonical)
	require.Equal(t, "```json\n{\"score\": 1.0, \"b\": 2}\n```", e.Open().Text())
	require.Equal(t, []string{"score"}, e.Header().Tags, "the property is there, so the declared tag is")

	e = compartment(gate.Reply{Text: "prose of an agent in Go", JSON: parse(t, `{"summary":"x","deep":{"score":1}}`)})
	canonical, _ = e.Open().JSON()
	require.Equal(t, `{"deep":{"score":1},"summary":"x"}`, canonical)
	require.Equal(t, []string{"summary"}, e.Header().Tags, "top level only")
}

// Requirement: G20.
func TestRequiredTagByProperty(t *testing.T) {
	t.Parallel()
	c := newCompartment(t, func(k *gate.Contract) { k.RequiredTags = []string{"score"} })
	_, _, err := c.GateInbound(gate.Reply{ID: "e", Text: `{"score":1}`}, nil, object{}, noon)
	require.NoError(t, err)
	_, _, err = c.GateInbound(gate.Reply{ID: "e", Text: `{"x":{"score":1}}`}, nil, object{}, noon)
	require.Error(t, err)
}

// Requirement: G13.
func TestResultTakesTheLabelOfWhatWasRead(t *testing.T) {
	t.Parallel()
	for _, claim := range []*label.Classification{nil, new(label.Public), new(label.Internal), new(label.Confidential), new(label.Public - 1)} {
		e, d, err := newCompartment(t).GateInbound(gate.Reply{ID: "e", Text: "x", Claim: claim}, nil, nil, noon)
		require.NoError(t, err)
		require.Equal(t, label.Confidential, e.Classification(), "whatever the reply claims")
		require.Equal(t, label.Confidential, d.After)
	}
	c := newCompartment(t, func(k *gate.Contract) { k.MaxInput, k.MaxOutput = label.Secret, label.Confidential })
	_, d, err := c.GateInbound(gate.Reply{ID: "e", Text: "x", Claim: new(label.Secret)}, nil, nil, noon)
	require.Error(t, err, "the ceiling is for claims")
	require.Equal(t, gate.RuleClaim, d.Rule)
	e, _, err := c.GateInbound(gate.Reply{ID: "e", Text: "x"}, nil, nil, noon)
	require.NoError(t, err)
	require.Equal(t, label.Secret, e.Classification(), "and no lowering")
}

// What an agent writes is untrusted, whatever it has read.
//
// Requirement: G13.
func TestReplyIsUntrusted(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := newCompartment(t)
		trusts := rapid.SliceOfN(rapid.SampledFrom([]label.Trust{label.Untrusted, label.Endorsed}), 0, 4).Draw(t, "parts")
		var parts []gate.Sealed
		for _, trust := range trusts {
			parts = append(parts, seal(t, c, offer(t, envelope.Text("x"), func(h *envelope.Header) { h.Trust = trust })))
		}
		if rapid.Bool().Draw(t, "and a withheld one") {
			parts = append([]gate.Sealed{withheld(t, c)}, parts...)
		}
		e, _, err := c.GateInbound(gate.Reply{ID: "e", Text: "x"}, parts, nil, noon)
		require.NoError(t, err)
		require.Equal(t, label.Untrusted, e.Trust())
		require.Len(t, e.Header().DerivedFrom, len(trusts))
	})
}

// Requirement: G16.
func TestResultExpiresWithItsFirstPart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		lives := rapid.SliceOfN(rapid.IntRange(0, 5), 0, 4).Draw(t, "seconds each part lives, 0 for ever")
		ttl := time.Duration(rapid.IntRange(0, 5).Draw(t, "own")) * time.Second
		c := newCompartment(t, func(k *gate.Contract) { k.ExpiresAt = noon.Add(time.Second / 2) }) // does not bound results
		var want time.Time
		if ttl > 0 {
			want = noon.Add(ttl)
		}
		var parts []gate.Sealed
		for _, n := range lives {
			part := offer(t, envelope.Text("x"), func(h *envelope.Header) {
				if n > 0 {
					h.ExpiresAt = noon.Add(time.Duration(n) * time.Second)
					if want.IsZero() || h.ExpiresAt.Before(want) {
						want = h.ExpiresAt
					}
				}
			})
			parts = append(parts, seal(t, c, part))
		}
		e, _, err := c.GateInbound(gate.Reply{ID: "e", Text: "x", TTL: ttl}, parts, nil, noon)
		require.NoError(t, err)
		require.Equal(t, want, e.ExpiresAt())
	})
}

// Requirement: G16.
func TestDistantExpiry(t *testing.T) {
	t.Parallel()
	far := time.Date(9000, 1, 1, 0, 0, 0, 5, time.UTC) // does not fit into nanoseconds since 1970
	c := newCompartment(t)
	parts := []gate.Sealed{seal(t, c, offer(t, envelope.Text("x"), func(h *envelope.Header) { h.ExpiresAt = far }))}
	e, _, err := c.GateInbound(gate.Reply{ID: "e", Text: "x"}, parts, nil, noon)
	require.NoError(t, err)
	require.Equal(t, far, e.ExpiresAt())
}

// Requirement: G16.
func TestPartThatExpiresBeforeSealing(t *testing.T) {
	t.Parallel()
	c := newCompartment(t)
	parts := []gate.Sealed{seal(t, c, offer(t, envelope.Text("x"), func(h *envelope.Header) { h.ExpiresAt = noon.Add(time.Second) }))}
	e, d, err := c.GateInbound(gate.Reply{ID: "e", Text: "x"}, parts, nil, noon.Add(time.Second))
	require.Error(t, err)
	require.Nil(t, e)
	require.Equal(t, gate.RuleExpiry, d.Rule)
	_, _, err = c.GateInbound(gate.Reply{ID: "e", Text: "x"}, parts, nil, noon.Add(time.Second-1))
	require.NoError(t, err)
}

// Requirement: G16.
func TestContractBoundsReplies(t *testing.T) {
	t.Parallel()
	for at, refused := range map[time.Duration]bool{0: false, 9999 * time.Millisecond: false, 10 * time.Second: true, time.Hour: true} {
		c := newCompartment(t, func(k *gate.Contract) { k.ExpiresAt = noon.Add(10 * time.Second) })
		_, d, err := c.GateInbound(gate.Reply{ID: "e", Text: "x"}, nil, nil, noon.Add(at))
		require.Equal(t, refused, err != nil, "at %v", at)
		require.Equal(t, refused, d.Rule == gate.RuleContract)
	}
}

func TestInboundReportsThatItCouldNotDecide(t *testing.T) {
	t.Parallel()
	e, d, err := newCompartment(t).GateInbound(gate.Reply{Text: "x"}, nil, nil, noon) // no id
	require.ErrorIs(t, err, envelope.ErrInvalid)
	_, held := errors.AsType[*gate.WithheldError](err)
	require.False(t, held, "that is no refusal")
	require.Nil(t, e)
	require.Equal(t, gate.Withheld, d.Verdict)
}

func ExampleCompartment() {
	now := time.Date(2026, 3, 14, 12, 0, 0, 0, time.UTC)
	source := gate.Source{Kind: handoff.Input, Name: "report"}
	contract, _ := gate.Negotiate(gate.Request{
		Session: "run/task/1", Task: "task", Classification: label.Internal, Grants: []gate.Grant{gate.WholeOf(source, "uses")},
	}, &gate.Capabilities{Agent: "writer"})
	compartment := gate.Compartment{Contract: contract}
	for _, level := range []label.Classification{label.Internal, label.Confidential} {
		e, _ := envelope.New(envelope.Header{ID: "i", Producer: handoff.User, Classification: level, CreatedAt: now}, envelope.Text("figures"))
		s, err := compartment.GateOutbound(context.Background(), &gate.Offer{Source: source, Title: "report", Envelope: e}, now)
		fmt.Println(s.Payload().Text(), err)
	}
	// Output:
	// figures <nil>
	//  input from "user" is withheld by clearance: it is confidential, and "writer" may see internal (uses)
}
