package gate_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// Attempts to pass bytes that nothing grants.

func TestTermsOfAnotherPairGrantNothing(t *testing.T) {
	t.Parallel()
	b := rulebook(t, handoff.Policy{Rules: []handoff.PairRule{{From: "critic", To: "writer", Mode: handoff.Full}}})
	for name, terms := range map[string]*gate.Terms{
		"another producer": b.Between("critic", "writer"), "another reader": b.Between("analyst", "critic"), "the other way": b.Between("writer", "analyst"),
		"anyone": b.Between(handoff.Anyone, handoff.Anyone), "to anyone": b.Between("analyst", handoff.Anyone), "zero": {},
	} {
		g := gate.WholeOf(upstream, "")
		g.Terms = terms
		r := requireWithheld(t, granted(t, []gate.Grant{g}), offer(t, structured(t, `{"CANARY":1}`)), gate.RuleGrant, gate.ReasonRule, gate.CodeWithheld)
		require.Contains(t, r.Detail, "another pair", name)
	}
	// Who offers it does not matter, only who made it.
	o := offer(t, envelope.Text("x"), func(h *envelope.Header) { h.Producer = "critic" })
	o.Assignee = "analyst"
	requireWithheld(t, under(t, handoff.Policy{}), o, gate.RuleGrant, gate.ReasonRule, gate.CodeWithheld)
}

// Requirement: G8.
func TestEachProducerHasRulesOfItsOwn(t *testing.T) {
	t.Parallel()
	const n = 40 // more than are searched one by one
	var p handoff.Policy
	var names []gate.Party
	for i := range n {
		names = append(names, gate.Party{Name: fmt.Sprintf("a%d", i)})
		p.Rules = append(p.Rules, handoff.PairRule{From: names[i].Name, To: "writer", Allow: []task.Path{task.Path(fmt.Sprintf("/k%d", i))}})
	}
	b, err := gate.Compile(&p, append(names, gate.Party{Name: "writer"}))
	require.NoError(t, err)
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"k%d":%d`, i, i))
	}
	give := "{" + strings.Join(all, ",") + "}"
	for _, few := range []int{3, n} {
		for _, backwards := range []bool{false, true} {
			grants := make([]gate.Grant, few)
			for i := range few {
				at := i
				if backwards {
					at = few - 1 - i
				}
				grants[at] = gate.WholeOf(gate.Source{Kind: handoff.Dependency, Name: names[i].Name}, "")
				grants[at].Terms = b.Between(names[i].Name, "writer")
			}
			compartment := granted(t, grants)
			for i := range few {
				o := offer(t, structured(t, give), func(h *envelope.Header) { h.Producer = names[i].Name })
				o.Source.Name = names[i].Name
				canonical, _ := sealed(t, compartment, o).Payload().JSON()
				require.Equal(t, "{"+all[i]+"}", canonical)
				o.Source.Name = names[(i+1)%few].Name // offered as what another one made
				require.Equal(t, gate.Withheld, decide(t, compartment, o).Verdict)
			}
		}
	}
}

// Requirement: G11.
func TestContractCannotBeChanged(t *testing.T) {
	t.Parallel()
	paths := []task.Path{"/a"}
	reveal := map[redact.Kind][]task.Path{}
	r := request()
	r.Grants = []gate.Grant{{Source: upstream, Paths: paths, Reveal: reveal}}
	compartment := gate.Compartment{Contract: negotiate(t, r, writer())}
	paths[0], r.Grants[0].Paths = "", []task.Path{""}
	reveal["email"] = []task.Path{""}
	compartment.Contract.Grants[0].Paths[0] = "/**"
	o := offer(t, structured(t, `{"a":"a@example.com","b":"CANARY"}`))
	canonical, _ := sealed(t, &compartment, o).Payload().JSON()
	require.Equal(t, `{"a":"[REDACTED:email]"}`, canonical)
}

// Requirement: G10.
func TestNamesThatLookLikeOthersAreRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, give, want string
		rule             handoff.PairRule
	}{
		{"a key that is a star", `{"*":1,"a":2}`, `{"*":1,"a":2}`, handoff.PairRule{Allow: []task.Path{"/*"}}},
		{"a key of stars", `{"**":{"x":1},"a":2}`, `{"a":2}`, handoff.PairRule{Allow: []task.Path{"/a", "/b/**"}}},
		{"a key with a slash", `{"a/b":1,"a":{"b":2}}`, `{"a":{"b":2}}`, handoff.PairRule{Allow: []task.Path{"/a/b"}}},
		{"its escape", `{"a/b":1,"a":{"b":2}}`, `{"a/b":1}`, handoff.PairRule{Allow: []task.Path{"/a~1b"}}},
		{"a key with an escape", `{"a~1b":1,"a/b":2}`, `{"a~1b":1}`, handoff.PairRule{Allow: []task.Path{"/a~01b"}}},
		{"no name", `{"":1,"a":{"":2}}`, `{"":1}`, handoff.PairRule{Allow: []task.Path{"/"}}},
		{"no name blocked", `{"":1,"a":{"":2,"b":3}}`, `{"":1,"a":{"b":3}}`, handoff.PairRule{Block: []task.Path{"/a/"}}},
		{"a number for a key", `{"0":1,"a":[2,3]}`, `{"a":[3]}`, handoff.PairRule{Block: []task.Path{"/a/0", "/0"}}},
		{"bidi and joiners", "{\"in\\u202eternal\":1,\"inter\\u200dnal\":2,\"fine\":3}", `{"fine":3}`, handoff.PairRule{Block: []task.Path{"internal"}}},
		{"a key as long as a path", `{"a/b/c":{"d":1},"a":{"b":{"c":2}}}`, `{"a":{"b":{"c":2}}}`, handoff.PairRule{Allow: []task.Path{"/a/b/c"}}},
	} {
		for _, p := range []envelope.Payload{structured(t, tt.give), envelope.Text(tt.give), structured(t, tt.give).WithText("CANARY"), structured(t, tt.give).WithText(`{"a":"CANARY","b":{"c":"CANARY"}}`)} {
			for _, as := range []task.Payload{task.Output, "", task.Structured, task.Both} {
				o := offer(t, p)
				if o.As = as; (as == task.Structured || as == task.Both) && !o.Envelope.Structured() {
					continue
				}
				if tt.name == "a key that is a star" && p.Text() != "" && !o.Envelope.Structured() {
					continue // the whole is covered, and a text is delivered only if the whole is granted
				}
				s := sealed(t, under(t, exactly(tt.rule)), o)
				canonical, _ := s.Payload().JSON()
				require.Equal(t, tt.want, canonical, tt.name)
				require.Empty(t, s.Payload().Text(), "the text beside a filtered value stays behind")
				require.Equal(t, p.Text() != "" && o.Envelope.Structured(), s.Decision().Parts().TextDropped)
			}
		}
	}
}

// Requirement: G19.
func TestTextsThatAreNearlyJSONAreWithheld(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", jsonvalue.MaxDepth+1) + strings.Repeat("]", jsonvalue.MaxDepth+1)
	long := `{"a":"` + strings.Repeat("x", jsonvalue.MaxBytes) + `"}`
	for name, give := range map[string]string{
		"a key twice":           `{"a":1,"a":"CANARY"}`,
		"a key twice, escaped":  `{"a":1,"\u0061":"CANARY"}`,
		"deeper":                `{"x":{"a":1,"a":"CANARY"},"a":1}`,
		"something after":       `{"a":1} CANARY`,
		"a second value":        `{"a":1}{"b":"CANARY"}`,
		"something before":      `CANARY {"a":1}`,
		"a comment":             "{\"a\":1} // CANARY",
		"a fence and words":     "CANARY\n```json\n{\"a\":1}\n```",
		"a lone surrogate":      `{"a":"\ud800"}`,
		"too deep":              `{"a":` + deep + `}`,
		"too long":              long,
		"not a number":          `{"a":NaN}`,
		"beyond numbers":        `{"a":1e999}`,
		"a byte order mark":     "\ufeff" + `{"a":1}`,
		"a control character":   "{\"a\":\"\x01\"}",
		"nothing":               "",
		"blanks":                " \n ",
		"a fence around two":    "```\n{\"a\":1}\n{\"a\":2}\n```",
		"a string of an object": `"{\"a\":1}"`,
	} {
		o := offer(t, envelope.Text(give))
		r := requireWithheld(t, under(t, exactly(handoff.PairRule{Allow: []task.Path{"/a/**"}})), o, "analyst→writer", gate.ReasonRule, gate.CodeWithheld)
		require.NotContains(t, r.Err().Error(), "CANARY", name)
	}
}

func TestAllowListWithTheWholeStillNeedsEveryOther(t *testing.T) {
	t.Parallel()
	p := handoff.Policy{Rules: []handoff.PairRule{{From: "analyst", To: handoff.Anyone, Allow: []task.Path{"", "/a"}}, {From: handoff.Anyone, To: "writer", Allow: []task.Path{"/a", "/b"}}}}
	requireWithheld(t, under(t, p), offer(t, envelope.Text("words")), "analyst→*", gate.ReasonRule, gate.CodeWithheld)
	canonical, _ := sealed(t, under(t, p), offer(t, structured(t, `{"a":1,"b":2,"c":3}`))).Payload().JSON()
	require.Equal(t, `{"a":1,"b":2}`, canonical)
	canonical, _ = sealed(t, needing(t, p, "", "/b"), offer(t, structured(t, `{"a":1,"b":2,"c":3}`))).Payload().JSON()
	require.Equal(t, `{"a":1,"b":2}`, canonical)
}

func TestTranslationFollowsTheRulesOfItsEdge(t *testing.T) {
	t.Parallel()
	byModel := &handoff.Translation{MaxTokens: 10, ByModel: true}
	above := func(level label.Classification) func(*envelope.Header) { return labelled(level) }
	p := exactly(handoff.PairRule{Mode: handoff.Full, Translate: byModel, Ceiling: new(label.Internal)})
	o := offer(t, envelope.Text("a long story"), labelled(label.Internal))
	o.Translated = translationOf(t, o, "x", above(label.Confidential))
	requireWithheld(t, under(t, p), o, "analyst→writer", gate.ReasonRule, gate.CodeWithheld)

	// An entry lowers what was made, and not what a model made of it.
	p = exactly(handoff.PairRule{Mode: handoff.Full, Translate: byModel})
	p.Declassify = lowering().Declassify
	o = offer(t, structured(t, `{"score":1,"notes":"CANARY"}`))
	o.Translated = translationOf(t, o, "x", above(label.Internal))
	s := seal(t, under(t, p, cleared(label.Internal)), o)
	require.Equal(t, label.Internal, s.Decision().After)
	o.Translated = translationOf(t, o, "x", above(label.Confidential))
	requireWithheld(t, under(t, p, cleared(label.Internal)), o, gate.RuleClearance, gate.ReasonClearance, gate.CodeWithheld)
	for _, tt := range []struct {
		level, translated label.Classification
		change            func(*gate.Contract)
		ceiling           label.Classification
		rule              handoff.Rule
		reason            string
	}{
		{label.Secret, label.Secret, cleared(label.Secret), label.Secret, gate.RuleSecret, gate.ReasonRule},                                                             // no rule for the pair, and what the entry lowers is not this
		{label.Confidential, label.Confidential, cleared(label.Secret), label.Internal, "analyst→*", gate.ReasonRule},                                                   // nor where only a ceiling is below it
		{label.Internal, label.Confidential, func(k *gate.Contract) { k.MaxInput = label.Internal }, label.Secret, gate.RuleClearance, gate.ReasonClearance},            // above the contract
		{label.Internal, label.Secret, func(k *gate.Contract) { k.Clearance, k.MaxInput = label.Secret, label.Secret }, label.Secret, gate.RuleSecret, gate.ReasonRule}, // secret by itself
	} {
		p := handoff.Policy{Rules: []handoff.PairRule{{From: "analyst", To: handoff.Anyone, Translate: byModel, Ceiling: &tt.ceiling}}, Declassify: lowering().Declassify}
		o := offer(t, structured(t, `{"score":1}`), labelled(tt.level))
		o.Translated = translationOf(t, o, "x", labelled(label.Internal))
		require.Equal(t, label.Internal, sealed(t, under(t, p, tt.change), o).Decision().After)
		o.Translated = translationOf(t, o, "x", labelled(tt.translated))
		requireWithheld(t, under(t, p, tt.change), o, tt.rule, tt.reason, gate.CodeWithheld)
	}
	// An empty translation delivers nothing.
	o = offer(t, envelope.Text("CANARY"))
	o.Translated = translationOf(t, o, "")
	s = seal(t, under(t, p), o)
	require.Zero(t, s.Payload().Size())
	// Nor does the structured part of one.
	e, err := envelope.New(envelope.Header{ID: "e-2", Producer: "writer", CreatedAt: noon, Classification: label.Confidential, DerivedFrom: []envelope.ID{"e-up"}}, structured(t, `{"CANARY":1}`).WithText("short"))
	require.NoError(t, err)
	o.Translated = e
	s = seal(t, under(t, p), o)
	require.Equal(t, envelope.Text("short"), s.Payload())
}

func TestMinimalDeliversNothingInAnyForm(t *testing.T) {
	t.Parallel()
	p := exactly(handoff.PairRule{Mode: handoff.Minimal})
	for _, level := range []label.Classification{label.Public, label.Confidential, label.Secret} {
		for _, as := range []task.Payload{task.Output, task.Structured, task.Both} {
			o := offer(t, structured(t, `{"a":"CANARY"}`).WithText("CANARY"), labelled(level))
			o.As = as
			for _, compartment := range []*gate.Compartment{under(t, p), needing(t, p, "/a"), needing(t, p, "")} {
				s, err := compartment.GateOutbound(t.Context(), o, noon)
				require.NoError(t, err)
				require.Zero(t, s.Payload())
				for _, cut := range []gate.Sealed{s.Lower(10), s.Excerpt(10)} {
					require.Zero(t, cut.Payload())
				}
			}
		}
	}
}

// The line that opens a code fence is text: only the short name of a language
// stands there unread.
//
// Requirement: G23.
func TestLineOfACodeFenceIsRedacted(t *testing.T) {
	t.Parallel()
	secret := "gh" + "p_" + strings.Repeat("aB3dE6", 6)
	for _, tt := range []struct{ give, want string }{
		{"```json " + secret + "\n{\"a\":1}\n```", "```json [REDACTED:token]\n{\"a\":1}\n```"},
		{"```" + secret + "\n{\"a\":1}\n```", "```[REDACTED:token]\n{\"a\":1}\n```"},
		{"```json jane.doe@example.com 4111 1111 1111 1111\n[1]\n```", "```json [REDACTED:email] [REDACTED:card]\n[1]\n```"},
		{"```\tpassword=hunter2horse9\n{\"a\":1}\n```\n", "```\tpassword=[REDACTED:password]\n{\"a\":1}\n```\n"},
		{"```json\n{\"password\":\"correct horse\"}\n```", "```json\n{\"password\":\"[REDACTED:password]\"}\n```"},
	} {
		for _, as := range []task.Payload{"", task.Output} {
			o := offer(t, envelope.Text(tt.give))
			o.As = as
			require.Equal(t, tt.want, sealed(t, newCompartment(t), o).Payload().Text())
		}
	}
}

// A schema bounds the parts of a result, and nothing else: what only looks like
// one is not lowered, however it was granted.
//
// Requirement: G14.
func TestOnlyValidatedPartsOfAResultAreLowered(t *testing.T) {
	t.Parallel()
	unsafe := func(d *handoff.Declassifier) { d.UnsafeText = true }
	text, value := envelope.Text(`{"score":"CANARY"}`), structured(t, `{"score":"CANARY"}`)
	for _, kind := range []handoff.SourceKind{handoff.Memory, handoff.Message, handoff.Fault, handoff.Input, handoff.Dependency} {
		for _, p := range []envelope.Payload{text, value, value.WithText("CANARY")} {
			_, structured := p.JSON()
			s := gate.Source{Kind: kind, Name: upstream.Name}
			for _, trusted := range []bool{false, true} {
				policy := lowering()
				if trusted {
					policy = lowering(unsafe)
				}
				g := gate.WholeOf(s, "")
				g.Terms = rulebook(t, policy).Between("analyst", "writer")
				o := offer(t, p)
				o.Source = s
				compartment := granted(t, []gate.Grant{g}, cleared(label.Internal))
				if !trusted && !(kind == handoff.Dependency && structured) {
					r := requireWithheld(t, compartment, o, "score-only", gate.ReasonRule, gate.CodeWithheld)
					require.Contains(t, r.Detail, "only the validated parts of a result are lowered", kind)
					require.Empty(t, r.Entries)
					require.NotContains(t, r.Err().Error(), "CANARY")
					continue
				}
				if kind == handoff.Fault { // what an agent said when it failed has no parts
					requireWithheld(t, compartment, o, "score-only", gate.ReasonRule, gate.CodeWithheld)
					continue
				}
				require.Equal(t, label.Internal, sealed(t, compartment, o).Decision().After, kind)
			}
		}
	}
}

// The names under which the gate itself decides are no names for rules or
// entries: a record would say that the gate had ruled, and with which code.
//
// Requirement: G44.
func TestNoRuleHasANameOfTheGates(t *testing.T) {
	t.Parallel()
	names := namesOfTheGate(t)
	require.Contains(t, names, "structured size")
	require.Greater(t, len(names), 20)
	for _, name := range names {
		rule := exactly(handoff.PairRule{ID: handoff.Rule(name), Mode: handoff.Full})
		lower := lowering(func(d *handoff.Declassifier) { d.Name = name })
		for pointer, p := range map[string]handoff.Policy{
			"/policy/rules/0/name": rule, "/policy/declassify/0/name": lower,
			"/policy/endorse/0/name": {Endorse: []handoff.Endorser{{Entry: handoff.Entry{Name: name, From: "analyst", To: "writer", Reason: "r"}}}},
			"/policy/renew/0/name":   {Renew: []handoff.Renewal{{Entry: handoff.Entry{Name: name, From: "analyst", To: "writer", Reason: "r"}, TTL: 1}}},
		} {
			_, err := gate.Compile(&p, parties)
			problems, ok := errors.AsType[task.Problems](err)
			require.True(t, ok, name)
			require.Len(t, problems, 1)
			require.Equal(t, pointer, problems[0].Pointer)
			require.Contains(t, problems[0].Error(), "the gate itself uses this name")
		}
	}
	_, err := gate.Compile(&handoff.Policy{Rules: []handoff.PairRule{{ID: "clearance of analysts", From: "analyst", To: "writer", Mode: handoff.Full}}}, parties)
	require.NoError(t, err)
}

// namesOfTheGate reads the constants of type Rule from the sources, so that a
// new one is not forgotten.
func namesOfTheGate(t *testing.T) (names []string) {
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			g, ok := d.(*ast.GenDecl)
			if !ok || g.Tok != token.CONST || strings.HasSuffix(name, "_test.go") {
				continue
			}
			for _, s := range g.Specs {
				v := s.(*ast.ValueSpec)
				if kind, ok := v.Type.(*ast.SelectorExpr); ok && kind.Sel.Name == "Rule" {
					value, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
					require.NoError(t, err)
					names = append(names, value)
				}
			}
		}
	}
	return names
}
