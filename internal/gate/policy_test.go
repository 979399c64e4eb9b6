package gate_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

var parties = []gate.Party{{Name: "analyst"}, {Name: "writer"}, {Name: "critic"}}

func at(line int) provenance.Position { return provenance.Position{File: "team.yaml", Line: line} }

// Requirement: G2.
func TestProblemsOfAPolicy(t *testing.T) {
	t.Parallel()
	scoped := []task.Path{"/a"}
	rule := func(r handoff.PairRule) handoff.Policy { return handoff.Policy{Rules: []handoff.PairRule{r}} }
	lower := func(d handoff.Declassifier) handoff.Policy {
		return handoff.Policy{Declassify: []handoff.Declassifier{d}}
	}
	renew := func(n handoff.Renewal) handoff.Policy { return handoff.Policy{Renew: []handoff.Renewal{n}} }
	tests := []struct {
		name, pointer, says string
		give                handoff.Policy
	}{
		{"an unknown default", "/policy/default", "scoped", handoff.Policy{Default: "scopd"}},
		{"an unknown mode", "/policy/rules/0/mode", "minimal", rule(handoff.PairRule{From: "analyst", To: "writer", Mode: "minimum"})},
		{"an unknown producer", "/policy/rules/0/from", `"analyst"`, rule(handoff.PairRule{From: "analist", To: "writer", Mode: handoff.Full})},
		{"an unknown reader", "/policy/rules/0/to", `"writer"`, rule(handoff.PairRule{From: "analyst", To: "Writer", Mode: handoff.Full})},
		{"no producer", "/policy/rules/0/from", "name an agent", rule(handoff.PairRule{To: "writer", Mode: handoff.Full})},
		{"the user to the user", "/policy/rules/0/to", "one side", rule(handoff.PairRule{From: handoff.User, To: handoff.User, Mode: handoff.Full})},
		{"nothing said", "/policy/rules/0", "says nothing", rule(handoff.PairRule{From: "analyst", To: "writer"})},
		{"full with a list", "/policy/rules/0/allow", "mode: scoped", rule(handoff.PairRule{From: "analyst", To: "writer", Mode: handoff.Full, Allow: scoped})},
		{"minimal with a list", "/policy/rules/0/allow", "no effect", rule(handoff.PairRule{From: "analyst", To: "writer", Mode: handoff.Minimal, Allow: scoped})},
		{"an empty list", "/policy/rules/0/allow", "mode: minimal", rule(handoff.PairRule{From: "analyst", To: "writer", Allow: []task.Path{}})},
		{"everybody to everybody with a mode", "/policy/rules/0/mode", "policy.default", rule(handoff.PairRule{From: handoff.Anyone, To: handoff.Anyone, Mode: handoff.Full})},
		{"everybody to everybody with a list", "/policy/rules/0/mode", "policy.default", rule(handoff.PairRule{From: handoff.Anyone, To: handoff.Anyone, Allow: scoped})},
		{"everybody to everybody with a translation", "/policy/rules/0/translate", "with a name", rule(handoff.PairRule{From: handoff.Anyone, To: handoff.Anyone, Translate: &handoff.Translation{MaxTokens: 5}})},
		{"everybody to everybody with a reveal", "/policy/rules/0/reveal", "both sides", rule(handoff.PairRule{From: handoff.Anyone, To: handoff.Anyone, Reveal: map[redact.Kind][]task.Path{"email": scoped}})},
		{"a path that is none", "/policy/rules/0/allow/1", "write /b", rule(handoff.PairRule{From: "analyst", To: "writer", Allow: []task.Path{"/a", "b"}})},
		{"a block that is none", "/policy/rules/0/block/0", "block everything", rule(handoff.PairRule{From: "analyst", To: "writer", Block: []task.Path{"/**"}})},
		{"all that is allowed is blocked", "/policy/rules/0/block", "also blocks", rule(handoff.PairRule{From: "analyst", To: "writer", Allow: scoped, Block: []task.Path{"A"}})},
		{"parts of what the coordinator writes", "/policy/rules/0/mode", "no parts", rule(handoff.PairRule{From: handoff.Coordinator, To: "writer", Allow: scoped})},
		{"a ceiling that is no label", "/policy/rules/0/maxClassification", "confidential", rule(handoff.PairRule{From: "analyst", To: "writer", Ceiling: new(label.Secret + 1)})},
		{"a kind that does not exist", "/policy/rules/0/redact/kinds/0", `"mac"`, rule(handoff.PairRule{From: "analyst", To: "writer", Redact: handoff.Redaction{Kinds: []redact.Kind{"mak"}}})},
		{"a kind that is always on", "/policy/redact/kinds/0", "leave it out", handoff.Policy{Redact: handoff.Redaction{Kinds: []redact.Kind{"token"}}}},
		{"a pattern that is none", "/policy/redact/patterns/0", "RE2", handoff.Policy{Redact: handoff.Redaction{Patterns: []redact.Pattern{{Name: "case", Regexp: "("}}}}},
		{"a pattern without a name of one", "/policy/redact/patterns/0", `"Staff No": not a name of a pattern`, handoff.Policy{Redact: handoff.Redaction{Patterns: []redact.Pattern{{Name: "Staff No", Regexp: "a"}}}}},
		{"a star revealed", "/policy/rules/0/reveal/email/0", "name the member", rule(handoff.PairRule{From: "analyst", To: "writer", Reveal: map[redact.Kind][]task.Path{"email": {"*"}}})},
		{"a secret revealed", "/policy/rules/0/reveal/token", "is a secret", rule(handoff.PairRule{From: "analyst", To: "writer", Reveal: map[redact.Kind][]task.Path{"token": scoped}})},
		{"nothing revealed", "/policy/rules/0/reveal/email", "names no path", rule(handoff.PairRule{From: "analyst", To: "writer", Reveal: map[redact.Kind][]task.Path{"email": nil}})},
		{"an unknown kind revealed", "/policy/rules/0/reveal/mail", "unknown personal kind", rule(handoff.PairRule{From: "analyst", To: "writer", Reveal: map[redact.Kind][]task.Path{"mail": scoped}})},
		{"revealed at no path", "/policy/rules/0/reveal/email/0", "write /a", rule(handoff.PairRule{From: "analyst", To: "writer", Reveal: map[redact.Kind][]task.Path{"email": {"a"}}})},
		{"revealed by one side", "/policy/rules/0/reveal", "both sides", rule(handoff.PairRule{From: "analyst", To: handoff.Anyone, Reveal: map[redact.Kind][]task.Path{"email": scoped}})},
		{"revealed to the user", "/policy/rules/0/reveal", "one pair of agents", rule(handoff.PairRule{From: "analyst", To: handoff.User, Reveal: map[redact.Kind][]task.Path{"email": scoped}})},
		{"retold to the user", "/policy/rules/0/translate", "as they are", rule(handoff.PairRule{From: "analyst", To: handoff.User, Translate: &handoff.Translation{MaxTokens: 5}})},
		{"minimal and retold", "/policy/rules/0/translate", "nothing to translate", rule(handoff.PairRule{From: "analyst", To: "writer", Mode: handoff.Minimal, Translate: &handoff.Translation{MaxTokens: 5}})},
		{"retold as nothing", "/policy/rules/0/translate", "says nothing", rule(handoff.PairRule{From: "analyst", To: "writer", Translate: &handoff.Translation{}})},
		{"no field kept", "/policy/rules/0/translate/fields", "keeps nothing", rule(handoff.PairRule{From: "analyst", To: "writer", Translate: &handoff.Translation{Fields: []task.Path{}}})},
		{"a field that is no path", "/policy/rules/0/translate/fields/0", "write /a", rule(handoff.PairRule{From: "analyst", To: "writer", Translate: &handoff.Translation{Fields: []task.Path{"a"}}})},
		{"a filter of everything", "/policy/rules/0/translate/filter/0", "block everything", rule(handoff.PairRule{From: "analyst", To: "writer", Translate: &handoff.Translation{Filter: []task.Path{""}}})},
		{"fewer than no tokens", "/policy/rules/0/translate/summarize/maxTokens", "at least 1", rule(handoff.PairRule{From: "analyst", To: "writer", Translate: &handoff.Translation{MaxTokens: -1}})},
		{"a model without a bound", "/policy/rules/0/translate/summarize/maxTokens", "at least 1", rule(handoff.PairRule{From: "analyst", To: "writer", Translate: &handoff.Translation{ByModel: true, Recast: gate.RecastUser}})},
		{"an unknown role", "/policy/rules/0/translate/recast", "user or system", rule(handoff.PairRule{From: "analyst", To: "writer", Translate: &handoff.Translation{Recast: "tool"}})},
		{"anyone into the system prompt", "/policy/rules/0/translate/recast", "both sides", rule(handoff.PairRule{From: handoff.Anyone, To: "writer", Translate: &handoff.Translation{Recast: gate.RecastSystem}})},
		{"two rules for a pair", "/policy/rules/1", "number 1", handoff.Policy{Rules: []handoff.PairRule{{From: "analyst", To: "writer", Mode: handoff.Full}, {From: "analyst", To: "writer", Block: scoped}}}},
		{"two rules for a pair, of a file", "/policy/rules/1", "in line 3", handoff.Policy{Rules: []handoff.PairRule{{From: "analyst", To: "writer", Mode: handoff.Full, Origin: provenance.Position{File: "f", Line: 3, Column: 7}}, {From: "analyst", To: "writer", Block: scoped, Origin: provenance.Position{File: "f", Line: 4, Column: 7}}}}},
		{"two rules for a pair, on one line", "/policy/rules/1", "in column 7 of this line", handoff.Policy{Rules: []handoff.PairRule{{From: "analyst", To: "writer", Mode: handoff.Full, Origin: provenance.Position{File: "f", Line: 3, Column: 7}}, {From: "analyst", To: "writer", Block: scoped, Origin: provenance.Position{File: "f", Line: 3, Column: 70}}}}},
		{"two renewals for a pair", "/policy/renew/1", `"d" is for this pair too`, handoff.Policy{Renew: []handoff.Renewal{{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, TTL: 1}, {Entry: handoff.Entry{Name: "e", From: "analyst", To: "writer", Reason: "r"}, TTL: 1}}}},
		{"a declassifier for everybody", "/policy/declassify/0/to", "an entry of its own", lower(handoff.Declassifier{Entry: handoff.Entry{Name: "d", From: "analyst", To: handoff.Anyone, Reason: "r"}, Paths: scoped})},
		{"a declassifier without a name", "/policy/declassify/0/name", "give it a name", lower(handoff.Declassifier{Entry: handoff.Entry{From: "analyst", To: "writer", Reason: "r"}, Paths: scoped})},
		{"a declassifier without a reason", "/policy/declassify/0/reason", "why it is safe", lower(handoff.Declassifier{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: " "}, Paths: scoped})},
		{"a declassifier of nothing", "/policy/declassify/0/paths", "names no path", lower(handoff.Declassifier{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}})},
		{"a declassifier of the whole", "/policy/declassify/0/paths", "unsafeText", lower(handoff.Declassifier{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, Paths: []task.Path{"/a", ""}})},
		{"a declassifier of the whole in other words", "/policy/declassify/0/paths", "unsafeText", lower(handoff.Declassifier{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, Paths: []task.Path{"/**"}})},
		{"a declassifier of no path", "/policy/declassify/0/paths/0", "write /a", lower(handoff.Declassifier{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, Paths: []task.Path{"a"}})},
		{"a declassifier to secret", "/policy/declassify/0/lowerTo", "below secret", lower(handoff.Declassifier{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, Paths: scoped, LowerTo: label.Secret})},
		{"a declassifier to no label", "/policy/declassify/0/lowerTo", "below secret", lower(handoff.Declassifier{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, Paths: scoped, LowerTo: label.Public - 1})},
		{"two declassifiers for a pair", "/policy/declassify/1", "one of the two", handoff.Policy{Declassify: []handoff.Declassifier{
			{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, Paths: scoped},
			{Entry: handoff.Entry{Name: "e", From: "analyst", To: "writer", Reason: "r"}, Paths: scoped},
		}}},
		{"two entries of one name", "/policy/endorse/0/name", "a name of its own", handoff.Policy{
			Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, Paths: scoped}},
			Endorse:    []handoff.Endorser{{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}}}}},
		{"two endorsers for a pair", "/policy/endorse/1", "one of the two", handoff.Policy{Endorse: []handoff.Endorser{
			{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}},
			{Entry: handoff.Entry{Name: "e", From: "analyst", To: "writer", Reason: "r"}},
		}}},
		{"an endorser for everybody", "/policy/endorse/0/from", "an entry of its own", handoff.Policy{Endorse: []handoff.Endorser{{Entry: handoff.Entry{Name: "d", From: handoff.Anyone, To: "writer", Reason: "r"}}}}},
		{"a renewal of no time", "/policy/renew/0/ttlMs", "at least 1", renew(handoff.Renewal{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}})},
		{"a renewal back in time", "/policy/renew/0/ttlMs", "at least 1", renew(handoff.Renewal{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, TTL: -time.Second})},
		{"two renewals for a pair", "/policy/renew/1", "one of the two", handoff.Policy{Renew: []handoff.Renewal{
			{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, TTL: 1},
			{Entry: handoff.Entry{Name: "e", From: "analyst", To: "writer", Reason: "r"}, TTL: 1},
		}}},
		{"a renewal for everybody", "/policy/renew/0/from", "an entry of its own", renew(handoff.Renewal{Entry: handoff.Entry{Name: "d", From: handoff.Anyone, To: "writer", Reason: "r"}, TTL: 1})},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			good := handoff.PairRule{From: "critic", To: "writer", Mode: handoff.Full}
			tt.give.Rules = append(slices.Clone(tt.give.Rules), good)
			b, err := gate.Compile(&tt.give, parties)
			require.Nil(t, b, "one bad rule, and no rule loads")
			problems, ok := errors.AsType[task.Problems](err)
			require.True(t, ok, "%v", err)
			require.ErrorIs(t, err, handoff.ErrPolicy)
			for _, p := range problems {
				if p.Pointer == tt.pointer {
					require.Contains(t, p.Message+": "+p.Hint, tt.says)
					return
				}
			}
			require.Fail(t, "no such problem", "%s in %v", tt.pointer, problems)
		})
	}
}

// TestAllPolicyProblemsAreReported checks that what is independent is said at once.
//
// Requirement: G2.
func TestAllPolicyProblemsAreReported(t *testing.T) {
	t.Parallel()
	p := handoff.Policy{
		Rules: []handoff.PairRule{
			{From: "analyst", To: "writer", Mode: handoff.Full, Allow: []task.Path{"a"}},
			{From: "analyst", To: "writer", Mode: "fulll"},
			{From: "nobody", To: "writer", Allow: []task.Path{"/a"}, Block: []task.Path{"a"}, Redact: handoff.Redaction{Patterns: []redact.Pattern{{Name: "zz", Regexp: "z9"}}}},
		},
		Redact: handoff.Redaction{Patterns: []redact.Pattern{{Name: "yy", Regexp: "D:zz"}}}, // which would match [REDACTED:zz]
	}
	_, err := gate.Compile(&p, parties)
	problems, ok := errors.AsType[task.Problems](err)
	require.True(t, ok, "%v", err)
	var at []string
	for _, p := range problems {
		at = append(at, p.Pointer)
	}
	require.ElementsMatch(t, []string{
		"/policy/rules/0/allow", "/policy/rules/1/mode", "/policy/rules/1", "/policy/rules/2/from", "/policy/rules/2/block", "/policy/redact",
	}, at)
}

// Requirement: G2.
func TestAgentsDefaultIsAMode(t *testing.T) {
	t.Parallel()
	_, err := gate.Compile(&handoff.Policy{}, []gate.Party{{Name: "writer", Default: "none"}})
	require.ErrorIs(t, err, handoff.ErrPolicy)
	require.ErrorContains(t, err, `unknown mode "none"`)
}

// Every problem is reported, not the first alone.
//
// Requirement: G2.
func TestAllProblemsAtOnce(t *testing.T) {
	t.Parallel()
	p := handoff.Policy{Default: "x", Rules: []handoff.PairRule{{From: "nobody", To: "writer", Mode: "y"}}, Renew: []handoff.Renewal{{Entry: handoff.Entry{From: "nobody"}}}}
	_, err := gate.Compile(&p, parties)
	problems, _ := errors.AsType[task.Problems](err)
	require.Len(t, problems, 8, "%v", problems)
}

// richPolicy has rules of every sort, which overlap, with doubles among the
// one-sided ones.
func richPolicy() handoff.Policy {
	r := func(line int, from, to string, change func(*handoff.PairRule)) handoff.PairRule {
		one := handoff.PairRule{From: from, To: to, Origin: at(line)}
		change(&one)
		return one
	}
	return handoff.Policy{
		Rules: []handoff.PairRule{
			r(1, "analyst", "writer", func(r *handoff.PairRule) { r.Block = []task.Path{"notes"} }),
			r(2, "analyst", "*", func(r *handoff.PairRule) { r.Allow, r.ID = []task.Path{"/a/**", "/b/**"}, "second" }),
			r(3, "analyst", "*", func(r *handoff.PairRule) { r.Allow, r.ID = []task.Path{"/b/**", "/c", "/a/x"}, "first" }),
			r(4, "*", "writer", func(r *handoff.PairRule) { r.Mode, r.Block = handoff.Full, []task.Path{"/a/y"} }),
			r(5, "*", "writer", func(r *handoff.PairRule) { r.Ceiling = new(label.Internal) }),
			r(6, "*", "writer", func(r *handoff.PairRule) { r.Ceiling = new(label.Internal) }),
			r(7, "*", "*", func(r *handoff.PairRule) { r.Block = []task.Path{"ssn"} }),
			r(8, "*", "*", func(r *handoff.PairRule) { r.Redact.Kinds = []redact.Kind{"ip"} }),
			r(9, "*", "*", func(r *handoff.PairRule) { r.Redact.Kinds = []redact.Kind{"mac", "ip"} }),
			r(10, "analyst", "critic", func(r *handoff.PairRule) { r.Mode = handoff.Full }),
			r(11, "critic", "*", func(r *handoff.PairRule) { r.Mode = handoff.Full }),
			r(12, "critic", "*", func(r *handoff.PairRule) { r.Mode = handoff.Scoped }),
			r(13, "critic", "*", func(r *handoff.PairRule) { r.Mode = handoff.Scoped }),
			r(14, "*", "critic", func(r *handoff.PairRule) { r.Translate = &handoff.Translation{MaxTokens: 9} }),
			r(15, "*", "critic", func(r *handoff.PairRule) { r.Translate = &handoff.Translation{MaxTokens: 7, Filter: []task.Path{"z"}} }),
			r(16, "writer", "*", func(r *handoff.PairRule) { r.Mode = handoff.Minimal }),
			r(17, "writer", "*", func(r *handoff.PairRule) { r.Mode = handoff.Minimal }),
			r(18, "*", "*", func(r *handoff.PairRule) { r.Redact.Patterns = []redact.Pattern{{Name: "case", Regexp: `C-\d+`}} }),
			r(19, "*", "*", func(r *handoff.PairRule) { r.Redact.Patterns = []redact.Pattern{{Name: "visit", Regexp: `V-\d+`}} }),
		},
	}
}

// Requirement: G12.
func TestOrderOfRulesDoesNotMatter(t *testing.T) {
	t.Parallel()
	names := []string{"analyst", "writer", "critic", handoff.User, handoff.Coordinator}
	type view struct {
		rule      handoff.Rule
		line      string
		mode      handoff.Mode
		cited     []gate.Citation
		retells   string
		delivers  string
		crossings [4]gate.Admission
		decision  gate.Decision
		payload   envelope.Payload
		redacted  string
	}
	look := func(b *gate.Rulebook) map[string]view {
		seen := map[string]view{}
		for _, from := range names {
			for _, to := range names {
				terms := b.Between(from, to)
				v := view{mode: terms.Mode(), cited: terms.Cited(), retells: terms.Translates()}
				v.rule, v.line = terms.Stated()
				s, err := terms.Delivers([]task.Path{"/a/**", "/b/**", "/d"})
				require.NoError(t, err)
				v.delivers = s.String()
				for i := range v.crossings {
					v.crossings[i] = terms.Admit(label.Public+label.Classification(i), label.Secret, to)
				}
				g := gate.WholeOf(upstream, "")
				g.Terms = terms
				k, err := gate.Negotiate(gate.Request{Session: "s", Task: "t", Classification: label.Confidential, Grants: []gate.Grant{g}},
					&gate.Capabilities{Agent: to, Accepts: label.Confidential, Produces: label.Confidential})
				require.NoError(t, err)
				compartment := gate.Compartment{Contract: k}
				o := offer(t, structured(t, `{"a":{"x":"C-1 V-2","y":2,"ssn":3},"b":["1.2.3.4"],"c":4,"notes":5,"z":6}`), func(h *envelope.Header) { h.Producer, h.Classification = from, label.Internal })
				r := decide(t, &compartment, o)
				v.decision = r.Decision
				if r.IsDelivered() {
					s := seal(t, &compartment, o)
					v.payload, v.redacted = s.Payload(), fmt.Sprint(s.Decision().Redacted)
				}
				seen[from+"→"+to] = v
			}
		}
		return seen
	}
	p := richPolicy()
	b, err := gate.Compile(&p, parties)
	require.NoError(t, err)
	want := look(b)
	random := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		random.Shuffle(len(p.Rules), func(i, j int) { p.Rules[i], p.Rules[j] = p.Rules[j], p.Rules[i] })
		b, err := gate.Compile(&p, parties)
		require.NoError(t, err)
		require.Equal(t, want, look(b))
	}

	to := want["analyst→writer"]
	require.Equal(t, handoff.Scoped, to.mode, "full and scoped compose to scoped")
	require.Equal(t, handoff.Rule("first"), to.rule)
	require.Equal(t, "team.yaml:3", to.line)
	canonical, _ := to.payload.JSON()
	require.Equal(t, `{"a":{"x":"[REDACTED:case] [REDACTED:visit]"},"b":["[REDACTED:ip]"]}`, canonical, "what both lists cover, less every block")
	require.Equal(t, []gate.Citation{{Rule: "analyst→writer", Line: "team.yaml:1"}, {Rule: "first", Line: "team.yaml:3"}, {Rule: "second", Line: "team.yaml:2"},
		{Rule: "*→writer", Line: "team.yaml:4"}, {Rule: "*→writer", Line: "team.yaml:5"}, {Rule: "*→writer", Line: "team.yaml:6"},
		{Rule: "*→*", Line: "team.yaml:18"}, {Rule: "*→*", Line: "team.yaml:19"}, {Rule: "*→*", Line: "team.yaml:7"}, {Rule: "*→*", Line: "team.yaml:8"}, {Rule: "*→*", Line: "team.yaml:9"}}, to.cited)
	require.Equal(t, "team.yaml:5", to.crossings[2].Line, "of two equal ceilings one is cited")
	require.Equal(t, "team.yaml:12", want["critic→analyst"].line, "of two equal rules one is cited")
	require.Equal(t, handoff.Full, want["analyst→critic"].mode, "the rule for the pair states the mode")
	require.Equal(t, "excerpt of at most 7 tokens", want["analyst→critic"].retells)
	require.Equal(t, handoff.Minimal, want["writer→critic"].mode)
}

// Requirement: G12.
func TestDefaultsNarrowAndNeverWiden(t *testing.T) {
	t.Parallel()
	modes := []handoff.Mode{handoff.Minimal, handoff.Scoped, handoff.Full}
	for i, standard := range append(modes, "") {
		for k, own := range append(modes, "") {
			p := handoff.Policy{Default: standard}
			b, err := gate.Compile(&p, []gate.Party{{Name: "analyst"}, {Name: "writer", Default: own}})
			require.NoError(t, err)
			terms := b.Between("analyst", "writer")
			require.Equal(t, modes[min(i, k, 2)], terms.Mode(), "%q and %q", standard, own)
			rule, _ := terms.Stated()
			switch {
			case k < min(i, 2):
				require.Equal(t, gate.RuleAgentDefault, rule)
			case i < 2:
				require.Equal(t, gate.RuleDefault, rule)
			default:
				require.Empty(t, rule)
			}
			require.Equal(t, handoff.Full, b.Between(handoff.User, "writer").Mode(), "inputs are no handoff between agents")
			require.Equal(t, handoff.Full, b.Between("analyst", handoff.User).Mode(), "nor are results")

			if standard != "" {
				require.Equal(t, standard, b.Between("stranger", "nobody").Mode(), "who is unknown gets no more than others")
			}

			p.Rules = []handoff.PairRule{{From: "analyst", To: "writer", Mode: handoff.Full}}
			b, err = gate.Compile(&p, []gate.Party{{Name: "analyst"}, {Name: "writer", Default: own}})
			require.NoError(t, err)
			require.Equal(t, handoff.Full, b.Between("analyst", "writer").Mode(), "a rule goes before defaults")
		}
	}
}

// Requirement: G12.
func TestWildcardsMatchTheirReaders(t *testing.T) {
	t.Parallel()
	block := func(from, to string) *gate.Rulebook {
		return rulebook(t, handoff.Policy{Rules: []handoff.PairRule{{From: from, To: to, Block: []task.Path{"x"}}}})
	}
	for _, tt := range []struct {
		from, to         string
		producer, reader string
		matches          bool
	}{
		{"*", "*", "analyst", "writer", true}, {"*", "*", handoff.User, "writer", true}, {"*", "*", "analyst", handoff.Coordinator, true},
		{"*", "*", "analyst", handoff.User, false}, {"analyst", "*", "analyst", handoff.User, false}, {"*", handoff.User, "analyst", handoff.User, true},
		{"analyst", "*", "analyst", "critic", true}, {"analyst", "*", "writer", "critic", false}, {"*", "critic", "analyst", "critic", true}, {"*", "critic", "analyst", "writer", false},
		{"analyst", "writer", "analyst", "writer", true}, {"analyst", "writer", "writer", "analyst", false}, {"analyst", handoff.User, "analyst", handoff.User, true},
	} {
		terms := block(tt.from, tt.to).Between(tt.producer, tt.reader)
		s, err := terms.Delivers(nil)
		require.NoError(t, err)
		require.Equal(t, tt.matches, s.Blocks(), "%v", tt)
		require.Equal(t, tt.matches, len(terms.Cited()) == 1, "%v", tt)
	}
}

// Requirement: G11.
func TestPolicySharesNothing(t *testing.T) {
	t.Parallel()
	p := handoff.Policy{
		Rules: []handoff.PairRule{{From: "analyst", To: "writer", Allow: []task.Path{"/a"}, Block: []task.Path{"ssn"}, Ceiling: new(label.Internal),
			Reveal: map[redact.Kind][]task.Path{"email": {"/a"}}, Redact: handoff.Redaction{Kinds: []redact.Kind{"ip"}},
			Translate: &handoff.Translation{Fields: []task.Path{"/a"}, Filter: []task.Path{"b"}, MaxTokens: 3}}},
		Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, Paths: []task.Path{"/a"}}},
		Endorse:    []handoff.Endorser{{Entry: handoff.Entry{Name: "e", From: "analyst", To: "writer", Reason: "r"}}},
		Renew:      []handoff.Renewal{{Entry: handoff.Entry{Name: "n", From: "analyst", To: "writer", Reason: "r"}, TTL: 1}},
		Redact:     handoff.Redaction{Kinds: []redact.Kind{"mac"}, Patterns: []redact.Pattern{{Name: "case", Regexp: "x+"}}},
	}
	b := rulebook(t, p)
	written := func() string {
		raw, err := json.Marshal(b.Policy())
		require.NoError(t, err)
		return string(raw)
	}
	digest, kept, terms := b.Digest(), written(), b.Between("analyst", "writer")
	spoil := func(p *handoff.Policy) {
		r := &p.Rules[0]
		r.Allow[0], r.Block[0], *r.Ceiling, r.Reveal["email"][0], r.Redact.Kinds[0] = "/z", "z", label.Secret, "/**", "z"
		r.Reveal["card"] = []task.Path{""}
		r.Translate.Fields[0], r.Translate.Filter[0], r.Translate.MaxTokens = "/z", "z", 99
		p.Declassify[0].Paths[0], p.Declassify[0].LowerTo, p.Endorse[0].To, p.Renew[0].TTL = "/z", label.Public, "critic", time.Hour
		p.Redact.Kinds[0], p.Redact.Patterns[0].Regexp = "z", "z"
		r.From, r.To = "writer", "analyst"
	}
	spoil(&p)
	copied := b.Policy()
	spoil(&copied)
	d := terms.Declassifier()
	d.Paths[0] = "/z"
	cited := terms.Cited()
	cited[0].Rule = "z"
	require.Equal(t, kept, written())
	require.Equal(t, digest, b.Digest())
	require.Equal(t, terms, b.Between("analyst", "writer"))
	require.Equal(t, []task.Path{"/a"}, terms.Declassifier().Paths)
	require.Equal(t, handoff.Rule("analyst→writer"), terms.Cited()[0].Rule)
}

func TestPolicyDigest(t *testing.T) {
	t.Parallel()
	p := exactly(handoff.PairRule{Allow: []task.Path{"/a"}, Origin: at(3)})
	moved := exactly(handoff.PairRule{Allow: []task.Path{"/a"}, Origin: at(7)})
	other := exactly(handoff.PairRule{Allow: []task.Path{"/b"}, Origin: at(3)})
	require.Len(t, rulebook(t, p).Digest(), 64)
	require.Equal(t, rulebook(t, p).Digest(), rulebook(t, moved).Digest(), "wherever it is written")
	require.NotEqual(t, rulebook(t, p).Digest(), rulebook(t, other).Digest())
	var none *gate.Rulebook
	require.Equal(t, rulebook(t, handoff.Policy{}).Digest(), none.Digest())
	require.Equal(t, handoff.Policy{}, none.Policy())
}

func TestTermsStrings(t *testing.T) {
	t.Parallel()
	var none *gate.Terms
	require.Equal(t, handoff.Full, none.Mode())
	require.Empty(t, none.Cited())
	require.Nil(t, none.Declassifier())
	require.Empty(t, none.Reveals())
	require.Empty(t, none.Translates())
	require.Nil(t, none.Contradiction(nil))
	rule, line := none.Stated()
	require.Empty(t, string(rule)+line)
	s, err := none.Delivers(nil)
	require.NoError(t, err)
	require.True(t, s.IsEverything())
	for want, with := range map[string]handoff.Translation{
		"summary of at most 5 tokens, by the reader's agent": {MaxTokens: 5, ByModel: true},
		"excerpt of at most 5 tokens":                        {MaxTokens: 5, Recast: gate.RecastSystem},
		"into the system prompt":                             {Recast: gate.RecastSystem},
		"parts only":                                         {Fields: []task.Path{"/a"}},
	} {
		terms := rulebook(t, exactly(handoff.PairRule{Translate: &with})).Between("analyst", "writer")
		require.Equal(t, want, terms.Translates())
	}
	terms := rulebook(t, exactly(handoff.PairRule{Reveal: map[redact.Kind][]task.Path{"iban": {"/i"}, "card": {"/c"}}})).Between("analyst", "writer")
	require.Equal(t, []redact.Kind{"card", "iban"}, terms.Reveals())
}
