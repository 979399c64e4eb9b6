package gate_test

import (
	"testing"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

func labelled(level label.Classification) func(*envelope.Header) {
	return func(h *envelope.Header) { h.Classification = level }
}

// cleared changes what the reader may see, and what the contract lets in.
func cleared(level label.Classification) func(*gate.Contract) {
	return func(k *gate.Contract) { k.Clearance, k.MaxInput, k.MaxOutput = level, level, level }
}

// lowering lets the score of analyst reach writer as internal.
func lowering(change ...func(*handoff.Declassifier)) handoff.Policy {
	d := handoff.Declassifier{Entry: handoff.Entry{Name: "score-only", From: "analyst", To: "writer", Reason: "a number"}, Paths: []task.Path{"/score", "/marks/*"}, LowerTo: label.Internal}
	for _, c := range change {
		c(&d)
	}
	return handoff.Policy{Declassify: []handoff.Declassifier{d}}
}

// Requirement: G14.
func TestDeclassifierNarrowsWhereTheReaderIsBelowTheLabel(t *testing.T) {
	t.Parallel()
	value := structured(t, `{"score":0.7,"notes":"CANARY","marks":[1,{"x":"CANARY"}]}`)
	below := under(t, lowering(), cleared(label.Internal))
	o := offer(t, value)
	s := seal(t, below, o)
	canonical, _ := s.Payload().JSON()
	require.Equal(t, `{"marks":[1],"score":0.7}`, canonical, "its paths, and nothing else")
	d := s.Decision()
	require.Equal(t, label.Confidential, d.Before)
	require.Equal(t, label.Internal, d.After)
	require.Equal(t, []gate.Entry{{Use: gate.EntryLowered, Name: "score-only"}}, d.Entries)
	require.Equal(t, []task.Path{"/score"}, []task.Path{d.Parts().Kept[len(d.Parts().Kept)-1]})
	require.NotEmpty(t, d.Parts().Dropped)

	cleared := seal(t, under(t, lowering()), o)
	require.Equal(t, value, cleared.Payload(), "a reader that is cleared gets the whole")
	require.Equal(t, label.Confidential, cleared.Decision().After)
	require.Empty(t, cleared.Decision().Entries)

	r := requireWithheld(t, below, offer(t, envelope.Text("score: 0.7")), "score-only", gate.ReasonRule, gate.CodeWithheld)
	require.Empty(t, r.Entries, "what is held was lowered for nobody")
	require.Equal(t, label.Confidential, r.After)
	requireWithheld(t, below, offer(t, structured(t, `{"notes":"CANARY"}`)), "score-only", gate.ReasonRule, gate.CodeWithheld)
}

// Requirement: G14.
func TestDeclassifierIsForItsPairAndItsLevels(t *testing.T) {
	t.Parallel()
	value := structured(t, `{"score":0.7}`)
	// the label that it lowers to is above the reader
	tooHigh := lowering(func(d *handoff.Declassifier) { d.LowerTo = label.Confidential })
	requireWithheld(t, under(t, tooHigh, cleared(label.Internal)), offer(t, value, labelled(label.Secret)), gate.RuleClearance, gate.ReasonClearance, gate.CodeWithheld)
	// another pair
	for _, change := range []func(*handoff.Declassifier){
		func(d *handoff.Declassifier) { d.From = "critic" }, func(d *handoff.Declassifier) { d.To = "critic" },
		func(d *handoff.Declassifier) { d.From, d.To = "writer", "analyst" },
	} {
		requireWithheld(t, under(t, lowering(change), cleared(label.Internal)), offer(t, value), gate.RuleClearance, gate.ReasonClearance, gate.CodeWithheld)
	}
	// it never raises
	raise := lowering(func(d *handoff.Declassifier) { d.LowerTo = label.Confidential })
	require.Equal(t, label.Internal, sealed(t, under(t, raise), offer(t, value, labelled(label.Internal))).Decision().After)
	// what a rule blocks stays blocked, what a task does not need stays behind
	p := lowering()
	p.Rules = []handoff.PairRule{{From: handoff.Anyone, To: handoff.Anyone, Block: []task.Path{"SCORE"}}}
	requireWithheld(t, under(t, p, cleared(label.Internal)), offer(t, value), "*→*", gate.ReasonRule, gate.CodeWithheld)
	compartment := needing(t, lowering(), "/other", "/marks/*")
	cleared(label.Internal)(&compartment.Contract)
	canonical, _ := sealed(t, compartment, offer(t, structured(t, `{"score":0.7,"other":"CANARY","marks":[2]}`))).Payload().JSON()
	require.Equal(t, `{"marks":[2]}`, canonical)
	// a limit applies to the label that it is delivered with
	p = lowering()
	p.Rules = []handoff.PairRule{{From: "analyst", To: handoff.Anyone, Ceiling: new(label.Public), Origin: at(4)}}
	r := requireWithheld(t, under(t, p, cleared(label.Internal)), offer(t, value), "analyst→*", gate.ReasonRule, gate.CodeWithheld)
	require.Equal(t, "team.yaml:4", r.Line)
}

// Requirement: G14.
func TestDeclassifierOfText(t *testing.T) {
	t.Parallel()
	unsafe := lowering(func(d *handoff.Declassifier) { d.Paths, d.UnsafeText = []task.Path{task.Whole}, true })
	s := seal(t, under(t, unsafe, cleared(label.Internal)), offer(t, envelope.Text("words")))
	require.Equal(t, "words", s.Payload().Text())
	require.Equal(t, label.Internal, s.Decision().After)
	stars := lowering(func(d *handoff.Declassifier) { d.Paths = []task.Path{"/*", "/*/**"} })
	compartment := under(t, stars, cleared(label.Internal))
	requireWithheld(t, compartment, offer(t, envelope.Text("words")), "score-only", gate.ReasonRule, gate.CodeWithheld)
	requireWithheld(t, compartment, offer(t, structured(t, `"words"`)), "score-only", gate.ReasonRule, gate.CodeWithheld)
}

// Requirement: G14.
func TestEndorser(t *testing.T) {
	t.Parallel()
	p := handoff.Policy{Endorse: []handoff.Endorser{{Entry: handoff.Entry{Name: "checked", From: "analyst", To: "writer", Reason: "a person reads it"}}}}
	c := under(t, p)
	s := seal(t, c, offer(t, envelope.Text("x")))
	require.Equal(t, []gate.Entry{{Use: gate.EntryEndorsed, Name: "checked"}}, s.Decision().Entries)
	e, _, err := c.GateInbound(gate.Reply{ID: "e", Text: "x"}, []gate.Sealed{s}, nil, noon)
	require.NoError(t, err)
	require.Equal(t, label.Untrusted, e.Trust(), "whoever endorsed it has not seen what is made of it")

	already := seal(t, under(t, p), offer(t, envelope.Text("x"), func(h *envelope.Header) { h.Trust = label.Endorsed }))
	require.Empty(t, already.Decision().Entries, "there was nothing to do")
	recast := exactly(handoff.PairRule{Mode: handoff.Full, Translate: &handoff.Translation{Recast: gate.RecastSystem}})
	require.Equal(t, gate.Withheld, decide(t, under(t, recast), offer(t, envelope.Text("x"))).Verdict)
	recast.Endorse = p.Endorse
	require.Equal(t, gate.Passed, decide(t, under(t, recast), offer(t, envelope.Text("x"))).Verdict)
	for _, other := range []handoff.Endorser{{Entry: handoff.Entry{Name: "e", From: "analyst", To: "critic", Reason: "r"}}, {Entry: handoff.Entry{Name: "e", From: "critic", To: "writer", Reason: "r"}}} {
		c := under(t, handoff.Policy{Endorse: []handoff.Endorser{other}})
		e, _, err := c.GateInbound(gate.Reply{ID: "e", Text: "x"}, []gate.Sealed{seal(t, c, offer(t, envelope.Text("x")))}, nil, noon)
		require.NoError(t, err)
		require.Equal(t, label.Untrusted, e.Trust())
	}
}

// Requirement: G14.
func TestRenewal(t *testing.T) {
	t.Parallel()
	p := handoff.Policy{Renew: []handoff.Renewal{{Entry: handoff.Entry{Name: "a-day", From: "analyst", To: "writer", Reason: "figures of the day"}, TTL: 10 * time.Second}}}
	lives := func(h *envelope.Header) { h.ExpiresAt = noon.Add(time.Second) }
	for _, tt := range []struct {
		at      time.Duration
		passes  bool
		renewed bool
	}{{-1, false, false}, {0, true, false}, {time.Second - 1, true, false}, {time.Second, true, true}, {9999 * time.Millisecond, true, true}, {10 * time.Second, false, false}, {time.Hour, false, false}} {
		c, o := under(t, p), offer(t, envelope.Text("x"), lives)
		r, err := c.Decide(t.Context(), o, noon.Add(tt.at))
		require.NoError(t, err)
		require.Equal(t, tt.passes, r.IsDelivered(), "at %v", tt.at)
		require.Equal(t, tt.renewed, len(r.Entries) == 1, "at %v", tt.at)
		if !tt.passes {
			require.Equal(t, gate.RuleExpiry, r.Rule)
			continue
		}
		s, err := c.Seal(o, &r)
		require.NoError(t, err)
		e, _, err := c.GateInbound(gate.Reply{ID: "e", Text: "x"}, []gate.Sealed{s}, nil, noon.Add(tt.at))
		require.NoError(t, err)
		want := noon.Add(time.Second)
		if tt.renewed {
			require.Equal(t, []gate.Entry{{Use: gate.EntryRenewed, Name: "a-day"}}, r.Entries)
			want = noon.Add(10 * time.Second)
		}
		require.Equal(t, want, e.ExpiresAt(), "what is made of it lives no longer")
	}
	// It renews no other pair, and no envelope of the future or altered.
	for _, n := range []handoff.Renewal{{Entry: handoff.Entry{From: "analyst", To: "critic"}}, {Entry: handoff.Entry{From: "critic", To: "writer"}}} {
		n.Name, n.TTL, n.Reason = "n", time.Hour, "r"
		r, err := under(t, handoff.Policy{Renew: []handoff.Renewal{n}}).Decide(t.Context(), offer(t, envelope.Text("x"), lives), noon.Add(time.Second))
		require.NoError(t, err)
		require.Equal(t, gate.RuleExpiry, r.Rule)
	}
	future := offer(t, envelope.Text("x"), func(h *envelope.Header) { h.CreatedAt, h.ExpiresAt = noon.Add(1), noon.Add(2) })
	requireWithheld(t, under(t, p), future, gate.RuleExpiry, gate.ReasonExpired, gate.CodeWithheld)
	short := handoff.Policy{Renew: []handoff.Renewal{{Entry: handoff.Entry{Name: "short", From: "analyst", To: "writer", Reason: "r"}, TTL: 1}}}
	s := seal(t, under(t, short), offer(t, envelope.Text("x"), lives))
	require.Empty(t, s.Decision().Entries, "a renewal never shortens")
}

// Requirement: G15.
func TestSecretFlowsByARuleForThePairThatStatesAMode(t *testing.T) {
	t.Parallel()
	anyone := func(from, to string) handoff.PairRule {
		return handoff.PairRule{From: from, To: to, Mode: handoff.Full}
	}
	for _, tt := range []struct {
		name  string
		rule  handoff.PairRule
		flows bool
	}{
		{"full", handoff.PairRule{From: "analyst", To: "writer", Mode: handoff.Full}, true},
		{"scoped", handoff.PairRule{From: "analyst", To: "writer", Allow: []task.Path{"/a"}}, true},
		{"no mode", handoff.PairRule{From: "analyst", To: "writer", Block: []task.Path{"b"}}, false},
		{"a ceiling of secret", handoff.PairRule{From: "analyst", To: "writer", Ceiling: new(label.Secret)}, false},
		{"from anyone", anyone(handoff.Anyone, "writer"), false},
		{"to anyone", anyone("analyst", handoff.Anyone), false},
		{"the other way", anyone("writer", "analyst"), false},
		{"a ceiling below", handoff.PairRule{From: "analyst", To: "writer", Mode: handoff.Full, Ceiling: new(label.Confidential)}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			compartment := under(t, handoff.Policy{Rules: []handoff.PairRule{tt.rule}}, cleared(label.Secret))
			o := offer(t, structured(t, `{"a":1}`), labelled(label.Secret))
			r := decide(t, compartment, o)
			require.Equal(t, tt.flows, r.IsDelivered(), r.Detail)
			require.Equal(t, label.Secret, r.After)
			if !tt.flows {
				require.Equal(t, gate.ReasonRule, r.Reason)
			}
			require.Equal(t, gate.Passed, decide(t, compartment, offer(t, structured(t, `{"a":1}`))).Verdict, "below secret it is delivered")
		})
	}
	// A rule does not raise a clearance.
	compartment := under(t, exactly(handoff.PairRule{Mode: handoff.Full}))
	requireWithheld(t, compartment, offer(t, envelope.Text("x"), labelled(label.Secret)), gate.RuleClearance, gate.ReasonClearance, gate.CodeWithheld)
	// A declassifier lets parts of a secret value flow without one.
	s := seal(t, under(t, lowering(), cleared(label.Secret)), offer(t, structured(t, `{"score":1,"notes":"CANARY"}`), labelled(label.Secret)))
	canonical, _ := s.Payload().JSON()
	require.Equal(t, `{"score":1}`, canonical)
	require.Equal(t, label.Internal, s.Decision().After)
}

func TestLabelLimits(t *testing.T) {
	t.Parallel()
	levels := []label.Classification{label.Public, label.Internal, label.Confidential}
	for _, ceiling := range levels {
		for _, rule := range []handoff.PairRule{{From: "analyst", To: "writer"}, {From: handoff.Anyone, To: "writer"}, {From: "analyst", To: handoff.Anyone}, {From: handoff.Anyone, To: handoff.Anyone}} {
			rule.Ceiling, rule.Origin = new(ceiling), at(9)
			compartment := under(t, handoff.Policy{Rules: []handoff.PairRule{rule, {From: "critic", To: handoff.Anyone, Ceiling: new(label.Public)}}})
			for _, level := range levels {
				o := offer(t, envelope.Text("x"), labelled(level))
				if level <= ceiling {
					require.Equal(t, gate.Passed, decide(t, compartment, o).Verdict)
					continue
				}
				r := requireWithheld(t, compartment, o, handoff.Rule(rule.From+"→"+rule.To), gate.ReasonRule, gate.CodeWithheld)
				require.Equal(t, "team.yaml:9", r.Line)
				require.Contains(t, r.Detail, ceiling.String()+" through at most")
			}
		}
	}
	// Of several the lowest counts, whatever their order,
	for _, two := range [][]label.Classification{{label.Internal, label.Confidential}, {label.Confidential, label.Internal}} {
		p := handoff.Policy{Rules: []handoff.PairRule{{From: handoff.Anyone, To: "writer", Ceiling: &two[0]}, {From: handoff.Anyone, To: "writer", Ceiling: &two[1]}}}
		requireWithheld(t, under(t, p), offer(t, envelope.Text("x")), "*→writer", gate.ReasonRule, gate.CodeWithheld)
	}
	// and whatever the rank of their rules.
	p := handoff.Policy{Rules: []handoff.PairRule{
		{From: "analyst", To: "writer", Mode: handoff.Full, Ceiling: new(label.Secret)}, {From: "analyst", To: handoff.Anyone, Ceiling: new(label.Confidential)},
		{From: handoff.Anyone, To: "writer", Ceiling: new(label.Confidential)}, {From: handoff.Anyone, To: handoff.Anyone, Ceiling: new(label.Internal)},
	}}
	requireWithheld(t, under(t, p), offer(t, envelope.Text("x")), "*→*", gate.ReasonRule, gate.CodeWithheld)
	p = handoff.Policy{Rules: []handoff.PairRule{
		{From: "analyst", To: "writer", Mode: handoff.Full, Ceiling: new(label.Internal)}, {From: handoff.Anyone, To: handoff.Anyone, Ceiling: new(label.Secret)},
	}}
	requireWithheld(t, under(t, p), offer(t, envelope.Text("x")), "analyst→writer", gate.ReasonRule, gate.CodeWithheld)
}

// A translation reads a declassified value with the label of its original: whoever sees
// the prompt of the translation must be cleared for that.
//
// Requirement: G14.
func TestTranslationOfADeclassifiedValueKeepsItsLabel(t *testing.T) {
	t.Parallel()
	p := lowering()
	p.Rules = append(p.Rules, handoff.PairRule{From: "analyst", To: "writer", Translate: &handoff.Translation{MaxTokens: 10, ByModel: true}})
	compartment, o := under(t, p, cleared(label.Internal)), offer(t, structured(t, `{"score":0.7,"notes":"CANARY"}`))
	ruling := decide(t, compartment, o)
	require.Equal(t, gate.NeedsTranslation, ruling.Verdict)
	translated, grant, err := compartment.TranslationOffer(o, &ruling, noon)
	require.NoError(t, err)
	require.Equal(t, label.Confidential, translated.Envelope.Classification())
	contract := compartment.Contract
	contract.Grants = []gate.Grant{grant}
	s := seal(t, &gate.Compartment{Contract: contract}, &translated)
	require.Equal(t, label.Confidential, s.Decision().Before, "who may see the prompt")
	require.Equal(t, label.Internal, s.Decision().After, "what the reader gets")
}

// The labels of words that instruct count, their parts do not.
func TestLabelLimitsApplyToContextWithoutParts(t *testing.T) {
	t.Parallel()
	for from, kind := range map[string]handoff.SourceKind{"analyst": handoff.Plan, gate.Runtime: handoff.Fault} {
		p := handoff.Policy{Rules: []handoff.PairRule{{From: handoff.Anyone, To: "writer", Allow: []task.Path{"/a"}, Translate: &handoff.Translation{MaxTokens: 1}}, {From: handoff.Anyone, To: "writer", Ceiling: new(label.Internal), ID: "ceiling"}}}
		source := gate.Source{Kind: kind, Name: "t-up"}
		g := gate.WholeOf(source, "")
		g.Terms = rulebook(t, p).Between(from, "writer")
		compartment := granted(t, []gate.Grant{g})
		by := func(h *envelope.Header) { h.Producer = from }
		o := offer(t, envelope.Text("it broke, mail a@example.com"), labelled(label.Internal), by)
		o.Source = source
		s := seal(t, compartment, o)
		require.Equal(t, "it broke, mail [REDACTED:email]", s.Payload().Text())
		require.Equal(t, carriers[kind].rule, s.Decision().Rule)
		require.Equal(t, handoff.Full, s.Decision().Mode)
		o = offer(t, envelope.Text("it broke"), by)
		o.Source = source
		requireWithheld(t, compartment, o, "ceiling", gate.ReasonRule, gate.CodeWithheld)
	}
}

// What went wrong in the words of an agent is what it made.
//
// Requirement: G9.
func TestErrorTextsFollowTheRulesOfTheirAgent(t *testing.T) {
	t.Parallel()
	source := gate.Source{Kind: handoff.Fault, Name: "t-up"}
	for _, r := range []handoff.PairRule{{Allow: []task.Path{"/a"}}, {Mode: handoff.Minimal}, {Block: []task.Path{"x"}}} {
		g := gate.WholeOf(source, "")
		g.Terms = rulebook(t, exactly(r)).Between("analyst", "writer")
		o := offer(t, envelope.Text("it broke: CANARY"))
		o.Source, o.Optional = source, true
		s, err := granted(t, []gate.Grant{g}).GateOutbound(t.Context(), o, noon)
		require.NoError(t, err)
		require.True(t, s.Withheld())
		require.Zero(t, s.Payload())
	}
}
