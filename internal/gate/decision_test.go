package gate_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// schema is a namer that knows the names of a schema.
type schema []string

func (s schema) Shown(p task.Path) task.Path {
	segments := strings.Split(string(p), "/")
	for i := 1; i < len(segments); i++ {
		known := false
		for _, name := range s {
			known = known || name == segments[i]
		}
		if !known {
			segments[i] = "*"
		}
	}
	return task.Path(strings.Join(segments, "/"))
}

// Requirement: G44.
func TestDecisionNamesOnlyKnownNames(t *testing.T) {
	t.Parallel()
	const give = `{"facts":{"name":"CANARY","CANARY-key":1},"score":1,"CANARY-top":2,"CANARY-other":3,"notes":"CANARY","items":[{"id":1,"CANARY-in":2}]}`
	p := exactly(handoff.PairRule{Allow: []task.Path{"/facts/**", "/score", "/items/*/id", "/gone"}, Block: []task.Path{"name"}, Origin: at(30)})
	compartment := func(names gate.Namer) *gate.Compartment {
		g := gate.WholeOf(upstream, "team.yaml:12 dependsOn")
		g.Terms, g.Names = rulebook(t, p).Between("analyst", "writer"), names
		return granted(t, []gate.Grant{g})
	}
	s := seal(t, compartment(nil), offer(t, structured(t, give)))
	require.EqualExportedValues(t, gate.Decision{
		Verdict: gate.Passed, Mode: handoff.Scoped, Rule: "analyst→writer", Line: "team.yaml:30", Source: upstream, Envelope: "e-up",
		From: "analyst", To: "writer", Task: "t-down",
		Before: label.Confidential, After: label.Confidential,
		Narrowing: &gate.Narrowing{InPart: true, Narrowed: true, Kept: []task.Path{"/facts/*", "/items/*/id", "/score"}, Dropped: []task.Path{"/*", "/facts/name", "/items/*/*"}, Unmatched: []task.Path{"/gone"}},
		Sizes:     gate.Sizes{BytesBefore: 134, BytesAfter: 55},
	}, *s.Decision())

	d := sealed(t, compartment(schema{"notes", "facts"}), offer(t, structured(t, give))).Decision()
	require.Equal(t, []task.Path{"/*", "/facts/name", "/items/*/*", "/notes"}, d.Parts().Dropped, "the schema names one more")

	for _, o := range []*gate.Offer{offer(t, structured(t, give)), offer(t, envelope.Text(give)), offer(t, structured(t, `{"CANARY":1,"name":{"CANARY":"CANARY"}}`)), offer(t, envelope.Text("CANARY"))} {
		for _, names := range []gate.Namer{nil, schema{"notes"}} {
			r := decide(t, compartment(names), o)
			raw, err := json.Marshal(r.Decision)
			require.NoError(t, err)
			require.NotContains(t, string(raw), "CANARY")
			if !r.IsDelivered() {
				require.NotContains(t, r.Err().Error(), "CANARY")
			}
		}
	}
}

// Requirement: G44.
func TestDecisionsCountBytesAndKinds(t *testing.T) {
	t.Parallel()
	p := exactly(handoff.PairRule{Reveal: map[redact.Kind][]task.Path{"email": {"/contact"}}, Block: []task.Path{"notes"}})
	give := structured(t, `{"contact":"a@example.com","other":"b@example.com, card 4111 1111 1111 1111","notes":"c@example.com"}`)
	s := seal(t, under(t, p), offer(t, give))
	canonical, _ := s.Payload().JSON()
	require.Equal(t, `{"contact":"a@example.com","other":"[REDACTED:email], card [REDACTED:card]"}`, canonical)
	d := s.Decision()
	require.Equal(t, redact.Counts{"email": 1, "card": 1}, d.Redacted, "what stays behind is not counted")
	require.Equal(t, redact.Counts{"email": 1}, d.Revealed)
	require.Equal(t, give.Size(), d.BytesBefore)
	require.Equal(t, len(canonical), d.BytesAfter)
	require.Equal(t, handoff.Rule("analyst→writer"), d.Rule, "no rule states a mode, and this one takes parts away")
}

// Requirement: G28.
func TestNumbersAreRedactedToo(t *testing.T) {
	t.Parallel()
	for name, compartment := range map[string]*gate.Compartment{"whole": newCompartment(t), "parts": needing(t, handoff.Policy{}, "/card")} {
		s := seal(t, compartment, offer(t, structured(t, `{"card": 4111111111111111}`)))
		canonical, _ := s.Payload().JSON()
		require.Equal(t, `{"card":"[REDACTED:card]"}`, canonical, name)
		require.Equal(t, redact.Counts{"card": 1}, s.Decision().Redacted)
	}
	s := sealed(t, needing(t, handoff.Policy{}, "/card"), offer(t, envelope.Text(`{"card": 4111111111111111}`)))
	canonical, _ := s.Payload().JSON()
	require.Equal(t, `{"card":"[REDACTED:card]"}`, canonical)
}

func TestRevealIsForItsKindItsPathsAndAgents(t *testing.T) {
	t.Parallel()
	const iban, mail = "DE89 3704 0044 0532 0130 00", "a@example.com"
	give := `{"iban":"` + iban + `","note":"` + iban + ` ` + mail + `","deep":[{"iban":"` + iban + `"}],"key":"` + fakeToken + `"}`
	const clean = `{"deep":[{"iban":"[REDACTED:iban]"}],"iban":"[REDACTED:iban]","key":"[REDACTED:token]","note":"[REDACTED:iban] [REDACTED:email]"}`
	compartment := func(paths []task.Path, grant, rule bool, changes ...func(*gate.Contract)) *gate.Compartment {
		reveal := map[redact.Kind][]task.Path{"iban": paths}
		g := gate.WholeOf(upstream, "")
		if rule {
			g.Terms = rulebook(t, exactly(handoff.PairRule{Mode: handoff.Full, Reveal: reveal})).Between("analyst", "writer")
		}
		if grant {
			g.Reveal = reveal
		}
		return granted(t, []gate.Grant{g}, changes...)
	}
	for _, tt := range []struct {
		name  string
		paths []task.Path
		want  string
		shown int
	}{
		{"one path", []task.Path{"/iban"}, strings.Replace(clean, `"iban":"[REDACTED:iban]","key"`, `"iban":"`+iban+`","key"`, 1), 1},
		{"in arrays", []task.Path{"/deep/*/iban"}, strings.Replace(clean, `"[REDACTED:iban]"}]`, `"`+iban+`"}]`, 1), 1},
		{"anywhere", []task.Path{""}, strings.ReplaceAll(clean, "[REDACTED:iban]", iban), 3},
		{"another path", []task.Path{"/other", "/deep", "/note/x"}, clean, 0},
	} {
		for _, by := range []string{"grant", "rule"} {
			o := offer(t, structured(t, give))
			s := sealed(t, compartment(tt.paths, by == "grant", by == "rule"), o)
			canonical, _ := s.Payload().JSON()
			require.Equal(t, tt.want, canonical, "%s by %s", tt.name, by)
			require.Equal(t, tt.shown, s.Decision().Revealed["iban"], "%s by %s", tt.name, by)

			text := sealed(t, compartment(tt.paths, by == "grant", by == "rule"), offer(t, envelope.Text("to "+iban))).Payload().Text()
			require.Equal(t, tt.name == "anywhere", text == "to "+iban, "a text stands at no path: %s", text)
		}
	}
	c := compartment([]task.Path{""}, true, false, func(k *gate.Contract) { k.Callee = handoff.User })
	require.Equal(t, strings.ReplaceAll(give, fakeToken, "[REDACTED:token]"), sealed(t, c, offer(t, envelope.Text(give))).Payload().Text(), "secrets go nowhere, the rest is the user's own")

	g := gate.WholeOf(upstream, "")
	g.Reveal = map[redact.Kind][]task.Path{"token": {""}, "password": {"", "/key"}, "jwt": {""}, "key": {""}}
	require.Equal(t, "[REDACTED:token]", sealed(t, granted(t, []gate.Grant{g}), offer(t, envelope.Text(fakeToken))).Payload().Text(), "nothing reveals a secret")
	for _, p := range gate.CheckReveal(g.Reveal) {
		require.Contains(t, p.Message, "is a secret")
		require.NotEmpty(t, p.Pointer())
	}
}

func TestRulesAddKindsAndPatterns(t *testing.T) {
	t.Parallel()
	const give = "from 10.1.2.3 about C-42, mail a@example.com, " // and a secret
	compartment := func(p handoff.Policy, changes ...func(*gate.Contract)) string {
		return sealed(t, under(t, p, changes...), offer(t, envelope.Text(give+fakeToken))).Payload().Text()
	}
	pattern := handoff.Redaction{Patterns: []redact.Pattern{{Name: "case", Regexp: `C-\d+`}}}
	ip := handoff.Redaction{Kinds: []redact.Kind{"ip"}}
	everybody := handoff.PairRule{From: handoff.Anyone, To: handoff.Anyone, Redact: pattern}
	require.Equal(t, "from 10.1.2.3 about C-42, mail [REDACTED:email], [REDACTED:token]", compartment(handoff.Policy{}))
	require.Equal(t, "from [REDACTED:ip] about C-42, mail [REDACTED:email], [REDACTED:token]", compartment(exactly(handoff.PairRule{Redact: ip})))
	require.Equal(t, "from 10.1.2.3 about [REDACTED:case], mail [REDACTED:email], [REDACTED:token]", compartment(handoff.Policy{Redact: pattern}))
	both := exactly(handoff.PairRule{Redact: ip})
	both.Rules = append(both.Rules, everybody)
	require.Equal(t, "from [REDACTED:ip] about [REDACTED:case], mail [REDACTED:email], [REDACTED:token]", compartment(both))
	both.Redact = ip
	require.Equal(t, "from [REDACTED:ip] about [REDACTED:case], mail [REDACTED:email], [REDACTED:token]", compartment(both))

	// To the user only secrets go by default, and what a rule for the user names.
	for want, p := range map[string]handoff.Policy{
		give + "[REDACTED:token]": {Redact: ip, Rules: []handoff.PairRule{everybody}},
		"from 10.1.2.3 about [REDACTED:case], mail a@example.com, [REDACTED:token]": {Rules: []handoff.PairRule{{From: "analyst", To: handoff.User, Redact: pattern}}},
		"from [REDACTED:ip] about C-42, mail a@example.com, [REDACTED:token]":       {Rules: []handoff.PairRule{{From: handoff.Anyone, To: handoff.User, Redact: ip}}},
	} {
		g := gate.WholeOf(upstream, "")
		g.Terms = rulebook(t, p).Between("analyst", handoff.User)
		g.Reveal = map[redact.Kind][]task.Path{"ip": {""}} // which is for agents
		c := granted(t, []gate.Grant{g}, func(k *gate.Contract) { k.Callee = handoff.User })
		require.Equal(t, want, sealed(t, c, offer(t, envelope.Text(give+fakeToken))).Payload().Text())
	}
}

// Requirement: G2.
func TestNothingIsDeliveredWithoutARedactor(t *testing.T) {
	t.Parallel()
	var unmade gate.Rulebook
	for name, tt := range map[string]struct {
		terms *gate.Terms
		give  envelope.Payload
	}{
		"no redactor, a text":     {unmade.Between(handoff.User, "writer"), envelope.Text("CANARY")},
		"no redactor, a value":    {unmade.Between(handoff.User, "writer"), structured(t, `{"a":"CANARY"}`)},
		"no redactor, an empty":   {unmade.Between(handoff.User, "writer"), envelope.Text("")},
		"a text it cannot read":   {nil, envelope.Text("CANARY \xff")},
		"the same under a policy": {rulebook(t, exactly(handoff.PairRule{Mode: handoff.Full})).Between("analyst", "writer"), envelope.Text("CANARY \xff")},
	} {
		for _, optional := range []bool{false, true} {
			g := gate.WholeOf(upstream, "")
			g.Terms = tt.terms
			c, o := granted(t, []gate.Grant{g}), offer(t, tt.give)
			if o.Optional = optional; strings.HasPrefix(name, "no redactor") {
				o.Envelope = envelopeOf(t, tt.give, func(h *envelope.Header) { h.Producer = handoff.User })
			}
			r, err := c.Decide(t.Context(), o, noon)
			require.Error(t, err, name)
			require.NotContains(t, err.Error(), "CANARY")
			require.Equal(t, gate.Withheld, r.Verdict, name)
			require.Equal(t, gate.RuleRedact, r.Rule)
			require.Zero(t, r.BytesAfter)
			s, err := c.GateOutbound(t.Context(), o, noon)
			require.Error(t, err, name)
			require.Zero(t, s)
			s, err = c.Seal(o, &r)
			require.Equal(t, optional, err == nil)
			require.Zero(t, s.Payload())
		}
	}
	require.Equal(t, handoff.Minimal, unmade.Between("analyst", "writer").Mode(), "nor of a book that nobody compiled")
	require.NotPanics(t, func() { unmade.Between(handoff.User, handoff.Coordinator) })
}

// Requirement: G18.
func TestOneReplyForEachContract(t *testing.T) {
	t.Parallel()
	c := newCompartment(t)
	reply := gate.Reply{Session: "r1/t-down/1", ID: "e", Text: "x"}
	_, _, err := c.GateInbound(gate.Reply{Session: "r1/t-down/2", ID: "e", Text: "x"}, nil, nil, noon)
	require.ErrorContains(t, err, "another contract")
	_, _, err = c.GateInbound(gate.Reply{ID: "e", Text: "x"}, nil, object{}, noon)
	require.Error(t, err, "a refused reply does not count")
	_, _, err = c.GateInbound(reply, nil, nil, noon)
	require.NoError(t, err)
	copied := gate.Compartment{Contract: c.Contract}
	for _, compartment := range []*gate.Compartment{c, &copied} {
		for _, id := range []envelope.ID{"e", "e2"} {
			reply.ID = id
			e, d, err := compartment.GateInbound(reply, nil, nil, noon)
			require.ErrorContains(t, err, "a reply has come under this contract already")
			require.Nil(t, e)
			require.Equal(t, gate.RuleContract, d.Rule)
		}
	}
	_, _, err = newCompartment(t).GateInbound(reply, nil, nil, noon)
	require.NoError(t, err, "the next attempt has a contract of its own")

	byHand := gate.Compartment{Contract: gate.Contract{Session: "s", Callee: "writer", Task: "t-down", Clearance: label.Secret, MaxInput: label.Secret}}
	_, _, err = byHand.GateInbound(gate.Reply{ID: "e", Text: "x"}, nil, nil, noon)
	require.ErrorContains(t, err, "no contract that a handshake made")
}

// Requirement: G18.
func TestSealedCopiesOfAnotherReader(t *testing.T) {
	t.Parallel()
	mine := seal(t, newCompartment(t), offer(t, envelope.Text("x")))
	for _, change := range []func(*gate.Request, *gate.Capabilities){
		func(r *gate.Request, _ *gate.Capabilities) { r.Session = "r1/t-down/2" },
		func(r *gate.Request, _ *gate.Capabilities) { r.Session, r.Run = "r2/t-down/1", "r2" },
		func(r *gate.Request, _ *gate.Capabilities) { r.Task = "t-other" },
		func(_ *gate.Request, c *gate.Capabilities) { c.Agent = "critic" },
	} {
		r, c := request(), writer()
		change(&r, &c)
		other := gate.Compartment{Contract: negotiate(t, r, c)}
		e, _, err := other.GateInbound(gate.Reply{ID: "e", Text: "x"}, []gate.Sealed{mine}, nil, noon)
		require.ErrorIs(t, err, gate.ErrUnsealed)
		require.Nil(t, e)
	}
}

// Requirement: G20.
func TestTagsAreClaims(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		reply  gate.Reply
		schema gate.Validator
		want   []string
		held   bool
	}{
		{"claimed", gate.Reply{Text: "x", Tags: []string{"score"}}, nil, []string{"score"}, false},
		{"not declared", gate.Reply{Text: "x", Tags: []string{"Score"}}, nil, nil, true},
		{"a property", gate.Reply{Text: `{"score":null}`}, object{}, []string{"score"}, false},
		{"a property of text that nobody validates", gate.Reply{Text: `{"score":1}`}, nil, nil, false},
		{"a property deeper", gate.Reply{Text: `{"a":{"score":1}}`}, object{}, nil, false},
		{"a property that nobody declares", gate.Reply{Text: `{"admin":1}`}, object{}, nil, false},
		{"both", gate.Reply{Text: `{"score":1}`, Tags: []string{"summary"}}, object{}, []string{"summary", "score"}, false},
	} {
		tt.reply.ID = "e"
		e, d, err := newCompartment(t).GateInbound(tt.reply, nil, tt.schema, noon)
		require.Equal(t, tt.held, err != nil, tt.name)
		if tt.held {
			require.Equal(t, gate.RuleTags, d.Rule)
			continue
		}
		require.Equal(t, tt.want, e.Header().Tags, tt.name)
	}
}

// A text that is one JSON value is redacted by its structure: a path reveals
// in it, and what is not redacted keeps its bytes.
//
// Requirement: G23.
func TestTextsOfJSONAreRedactedByTheirStructure(t *testing.T) {
	t.Parallel()
	g := gate.WholeOf(upstream, "")
	g.Reveal = map[redact.Kind][]task.Path{redact.Email: {"/desk"}}
	k := newCompartment(t, func(k *gate.Contract) { k.Grants = []gate.Grant{g} })
	for _, fence := range []string{"%s", "```json\n%s\n```\n"} {
		text := fmt.Sprintf(fence, `{ "desk": "a@b.example",  "of": "c@d.example" }`)
		o := offer(t, envelope.Text(text))
		d, err := k.Decide(t.Context(), o, noon)
		require.NoError(t, err)
		s, err := k.Seal(o, &d)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf(fence, `{ "desk": "a@b.example",  "of": "[REDACTED:email]" }`), s.Payload().Text())
		require.Equal(t, redact.Counts{redact.Email: 1}, d.Revealed)
	}
}
