package gate_test

import (
	"errors"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestNegotiateRefusesByOneRuleAlone(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*gate.Request, *gate.Capabilities)
		rule   handoff.Rule
		says   string
	}{
		{"label above the agent's clearance", func(r *gate.Request, c *gate.Capabilities) {
			c.Accepts = label.Internal
		}, gate.RuleClearance, `the context is confidential, and "writer" accepts internal: remove the confidential context, declassify the parts that it needs, or set accepts: confidential on agent "writer"`},
		{"label above an endpoint's clearance", func(r *gate.Request, c *gate.Capabilities) {
			c.Endpoints = []gate.Endpoint{{URL: "http://127.0.0.1/v1", Accepts: label.Secret}, {URL: "https://api.example/v1", Accepts: label.Internal}}
		}, gate.RuleClearance, "endpoint https://api.example/v1 accepts internal: "},
		{"an agent that may not produce what it reads", func(r *gate.Request, c *gate.Capabilities) {
			c.Produces = label.Internal
		}, gate.RuleProduces, `the result will be confidential, and "writer" produces at most internal`},
		{"a required tag that is not declared", func(r *gate.Request, c *gate.Capabilities) {
			r.RequiredTags = []string{"score", "risk", "Score"}
		}, gate.RuleTags, "risk, Score"},
		{"a session longer than the longest", func(r *gate.Request, c *gate.Capabilities) {
			r.Duration, c.MaxSession = time.Minute+1, time.Minute
		}, gate.RuleSession, `"writer" keeps one for 1m0s`},
		{"a grant of no kind", func(r *gate.Request, c *gate.Capabilities) {
			r.Grants = append(r.Grants, gate.WholeOf(gate.Source{Name: "x"}, ""))
		}, gate.RuleGrant, "names no source"},
		{"a grant of no name", func(r *gate.Request, c *gate.Capabilities) {
			r.Grants = append(r.Grants, gate.WholeOf(gate.Source{Kind: handoff.Input}, ""))
		}, gate.RuleGrant, "names no source"},
		{"a grant of what is no path", func(r *gate.Request, c *gate.Capabilities) {
			r.Grants = append(r.Grants, gate.Grant{Source: gate.Source{Kind: handoff.Input, Name: "x"}, Paths: []task.Path{task.Whole, "score"}})
		}, gate.RuleGrant, `write /score`},
		{"a grant of one element", func(r *gate.Request, c *gate.Capabilities) {
			r.Grants = append(r.Grants, gate.Grant{Source: gate.Source{Kind: handoff.Input, Name: "x"}, Paths: []task.Path{"/items/0/id"}})
		}, gate.RuleGrant, `write /items/*/id`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, c := request(), writer()
			tt.change(&r, &c)
			k, err := gate.Negotiate(r, &c)
			refusal, ok := errors.AsType[*gate.Refusal](err)
			require.True(t, ok, "%v", err)
			require.Equal(t, tt.rule, refusal.Rule)
			require.Contains(t, refusal.Error(), tt.says)
			require.True(t, refusal.Hint != "" || strings.Contains(refusal.Reason, "write "), "it says what to write instead")
			require.Zero(t, k)
		})
	}
}

func TestNegotiateAcceptsTheEdges(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*gate.Request, *gate.Capabilities)
	}{
		{"label at the clearance", func(r *gate.Request, c *gate.Capabilities) {}},
		{"label at an endpoint's clearance", func(r *gate.Request, c *gate.Capabilities) {
			c.Endpoints = []gate.Endpoint{{Accepts: label.Confidential}}
		}},
		{"every required tag declared", func(r *gate.Request, c *gate.Capabilities) { r.RequiredTags = []string{"score", "summary"} }},
		{"the longest session", func(r *gate.Request, c *gate.Capabilities) { r.Duration, c.MaxSession = time.Minute, time.Minute }},
		{"any session where none is too long", func(r *gate.Request, c *gate.Capabilities) { r.Duration = 1000 * time.Hour }},
		{"no grants", func(r *gate.Request, c *gate.Capabilities) { r.Grants = nil }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r, c := request(), writer()
			tt.change(&r, &c)
			_, err := gate.Negotiate(r, &c)
			require.NoError(t, err)
		})
	}
}

func TestContractSaysWhatWasAgreed(t *testing.T) {
	t.Parallel()
	r, c := request(), writer()
	r.Classification, r.RequiredTags, r.Duration = label.Internal, []string{"score"}, time.Minute
	k := negotiate(t, r, c)
	require.Len(t, k.Grants, 1)
	require.Equal(t, exported(r.Grants[0]), exported(k.Grants[0]))
	k.Grants = nil
	require.Equal(t, exported(gate.Contract{
		Session: "r1/t-down/1", Caller: "user", Callee: "writer", Run: "r1", Task: "t-down",
		Clearance: label.Confidential, MaxInput: label.Internal, MaxOutput: label.Internal, // not what the agent could take or give
		RequiredTags: []string{"score"}, DeclaredTags: []string{"summary", "score"}, Duration: time.Minute,
	}), exported(k))
	k.Start(noon)
	require.Equal(t, noon.Add(time.Minute), k.ExpiresAt)
}

// exported returns the fields of a struct that everybody can see, by name.
func exported(v any) map[string]any {
	fields := map[string]any{}
	for field, value := range reflect.ValueOf(v).Fields() {
		if field.IsExported() {
			fields[field.Name] = value.Interface()
		}
	}
	return fields
}

// Requirement: G16.
func TestContractExpiry(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		asked, most time.Duration
		want        time.Time
	}{
		{"nobody bounds it", 0, 0, time.Time{}},
		{"the task does", time.Minute, 0, noon.Add(time.Minute)},
		{"the agent does", 0, time.Hour, noon.Add(time.Hour)},
		{"the task asks for less", time.Minute, time.Hour, noon.Add(time.Minute)},
	}
	for _, tt := range tests {
		r, c := request(), writer()
		r.Duration, c.MaxSession = tt.asked, tt.most
		k := negotiate(t, r, c)
		k.Start(noon)
		require.Equal(t, tt.want, k.ExpiresAt, tt.name)
	}
}

// Requirement: G11.
func TestContractSharesNothingWithTheRequest(t *testing.T) {
	t.Parallel()
	r, c := request(), writer()
	r.Grants[0].Paths = []task.Path{task.Whole}
	r.Grants[0].Reveal = map[redact.Kind][]task.Path{"email": {"/mail"}}
	r.Grants = append(r.Grants, gate.Grant{Source: gate.Source{Kind: handoff.Input, Name: "in"}, Paths: []task.Path{"/a"}})
	r.RequiredTags = []string{"score"}
	k := negotiate(t, r, c)
	r.Grants[0].Paths[0], r.Grants[0].Reveal["email"][0], r.RequiredTags[0], c.OutputTags[0] = "/x", "/**", "x", "x"
	r.Grants[0].Reveal["card"] = []task.Path{task.Whole}
	r.Grants[0].Source.Name, r.Grants[1].Paths[0] = "t-other", "/**"
	require.Equal(t, []string{"score"}, k.RequiredTags)
	require.Equal(t, []string{"summary", "score"}, k.DeclaredTags)
	require.Equal(t, []task.Path{task.Whole}, k.Grants[0].Paths)
	require.Equal(t, map[redact.Kind][]task.Path{"email": {"/mail"}}, k.Grants[0].Reveal)
	require.Equal(t, []task.Path{"/a"}, k.Grants[1].Paths)
	require.Equal(t, upstream, k.Grants[0].Source)
}

// Requirement: G15.
func TestDefaultsOfAnAgent(t *testing.T) {
	t.Parallel()
	c := gate.Capabilities{Agent: "plain"}
	require.Equal(t, label.Internal, c.Clearance())
	r := request()
	_, err := gate.Negotiate(r, &c)
	require.Error(t, err, "it does not accept confidential")
	r.Classification = label.Internal
	require.Equal(t, label.Internal, negotiate(t, r, c).MaxOutput)
}

// Generators are made anew for each test: rapid's are not safe to share between parallel ones.

func levels() *rapid.Generator[label.Classification] {
	return rapid.SampledFrom([]label.Classification{label.Public, label.Internal, label.Confidential, label.Secret})
}

func parts() *rapid.Generator[[]gate.Part] {
	level := levels()
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) gate.Part {
		return gate.Part{Classification: level.Draw(t, "level"), Withheld: rapid.Bool().Draw(t, "held"), Optional: rapid.Bool().Draw(t, "optional")}
	}), 0, 5)
}

// Requirement: G51.
func TestClearanceIsTheLowest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := gate.Capabilities{Agent: "a", Accepts: levels().Draw(t, "accepts")}
		lowest := c.Accepts
		for _, level := range rapid.SliceOfN(levels(), 0, 3).Draw(t, "endpoints") {
			c.Endpoints = append(c.Endpoints, gate.Endpoint{Accepts: level})
			lowest = min(lowest, level)
		}
		require.Equal(t, lowest, c.Clearance())
	})
}

// Requirement: G13.
func TestLabelIsTheJoin(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		own, ps := levels().Draw(t, "own"), parts().Draw(t, "parts")
		got := gate.Label(own, ps)
		require.GreaterOrEqual(t, got, own)
		highest := own
		for _, p := range ps {
			if !p.Optional {
				require.GreaterOrEqual(t, got, p.Classification, "what is required always counts")
			}
			if !p.Optional || !p.Withheld {
				highest = highest.Join(p.Classification)
			}
		}
		require.Equal(t, highest, got, "and nothing else does")
		for range ps { // the order does not matter
			ps = append(ps[1:], ps[0])
			require.Equal(t, got, gate.Label(own, ps))
		}
	})
}

// What nil terms, those of no policy, say of a label.
func TestAdmissionWithoutAPolicy(t *testing.T) {
	t.Parallel()
	tests := []struct {
		callee string
		most   label.Classification
		level  label.Classification
		rule   handoff.Rule
		why    string
	}{
		{"writer", label.Internal, label.Public, "", ""},
		{"writer", label.Internal, label.Internal, "", ""},
		{"writer", label.Internal, label.Confidential, gate.RuleClearance, gate.ReasonClearance},
		{"writer", label.Confidential, label.Secret, gate.RuleClearance, gate.ReasonClearance},
		{"writer", label.Secret, label.Confidential, "", ""},
		{"writer", label.Secret, label.Secret, gate.RuleSecret, gate.ReasonRule},
		{"coordinator", label.Secret, label.Secret, gate.RuleSecret, gate.ReasonRule},
		{"", label.Secret, label.Secret, gate.RuleSecret, gate.ReasonRule},
		{handoff.User, label.Secret, label.Secret, "", ""},
		{handoff.User, label.Confidential, label.Secret, gate.RuleClearance, gate.ReasonClearance},
		{"writer", label.Secret, label.Secret + 1, gate.RuleClearance, gate.ReasonClearance},
		{"writer", label.Public - 1, label.Public, gate.RuleClearance, gate.ReasonClearance},
	}
	for _, tt := range tests {
		for _, terms := range []*gate.Terms{nil, (*gate.Rulebook)(nil).Between("analyst", tt.callee), rulebook(t, handoff.Policy{}).Between("analyst", tt.callee)} {
			x := terms.Admit(tt.level, tt.most, tt.callee)
			require.Equal(t, tt.rule, x.Rule, "%v", tt)
			require.Equal(t, tt.why, x.Reason, "%v", tt)
			require.Equal(t, tt.rule == "", x.Detail == "")
			require.Equal(t, tt.rule != "", x.Withheld())
			require.Equal(t, tt.level, x.After)
			require.Nil(t, x.Lowers)
		}
	}
}

// Many grants are found by their source, and no more than was granted.
//
// Requirement: G1.
func TestManyGrants(t *testing.T) {
	t.Parallel()
	name := func(i int) gate.Source {
		return gate.Source{Kind: handoff.Dependency, Name: strconv.Itoa(i)}
	}
	var grants []gate.Grant
	for i := range 100 {
		grants = append(grants, gate.WholeOf(name(i), ""))
	}
	grants = append(grants, gate.Grant{Source: name(7)}) // the first of two counts
	k, err := gate.Negotiate(gate.Request{Session: "s", Task: "t", Grants: grants}, &gate.Capabilities{Agent: "a"})
	require.NoError(t, err)
	compartment := gate.Compartment{Contract: k}
	e, err := envelope.New(envelope.Header{ID: "e", Producer: "b", CreatedAt: noon}, envelope.Text("x"))
	require.NoError(t, err)
	rule := func(s gate.Source) handoff.Rule {
		r, err := compartment.Decide(t.Context(), &gate.Offer{Source: s, Envelope: e}, noon)
		require.NoError(t, err)
		return r.Rule
	}
	for i := range 100 {
		require.Equal(t, gate.RuleDependsOn, rule(name(i)))
	}
	require.Equal(t, gate.RuleGrant, rule(name(100)))
	require.Equal(t, gate.RuleGrant, rule(gate.Source{Kind: handoff.Input, Name: "7"}))
	compartment.Contract.Grants = compartment.Contract.Grants[:3]
	require.Equal(t, gate.RuleGrant, rule(name(50)), "what was taken out of the contract is granted no more")
}
