package gate_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

// The table of modes: what is delivered for each mode, allow list, block list and
// need, for a text, a text that is JSON, a structured value, and both.

// leaves are the leaves of the value of the table, in the order of its keys.
var leaves = []string{"/a", "/b/c", "/b/d", "/e"}

// covered says which leaves each path of the table names.
var covered = map[task.Path][]string{
	task.Whole: leaves, "/a": {"/a"}, "/b/**": {"/b/c", "/b/d"}, "/e": {"/e"}, // allow and need
	"/b/c": {"/b/c"}, "a": {"/a"}, "/b": {"/b/c", "/b/d"}, // block
}

// written is the value with these leaves only, in canonical form.
func written(kept []string) string {
	var top, b []string
	for _, leaf := range kept {
		if name, inside := strings.CutPrefix(leaf, "/b/"); inside {
			b = append(b, fmt.Sprintf("%q:%q", name, "value of "+leaf))
			continue
		}
		top = append(top, fmt.Sprintf("%q:%q", leaf[1:], "value of "+leaf))
	}
	if len(b) > 0 {
		top = append(top, `"b":{`+strings.Join(b, ",")+"}")
	}
	slices.Sort(top)
	return "{" + strings.Join(top, ",") + "}"
}

// A cell is one line of the table: nil lists are those that are not stated.
type cell struct {
	mode               handoff.Mode
	allow, block, need []task.Path
}

func (c cell) String() string {
	return fmt.Sprintf("%s allow %q block %q need %q", c.mode, c.allow, c.block, c.need)
}

// whole is what the table says of a text, and of bytes that stay the same.
func (c cell) whole() bool {
	states := func(list []task.Path) bool { return list == nil || slices.Contains(list, task.Whole) }
	return states(c.allow) && states(c.need) && c.block == nil
}

// kept is what the table says of parts: (allow ∩ need) − block.
func (c cell) kept() []string {
	in := func(list []task.Path, leaf string) bool {
		return slices.ContainsFunc(list, func(p task.Path) bool { return slices.Contains(covered[p], leaf) })
	}
	var kept []string
	for _, leaf := range leaves {
		if (c.allow == nil || in(c.allow, leaf)) && (c.need == nil || in(c.need, leaf)) && !in(c.block, leaf) {
			kept = append(kept, leaf)
		}
	}
	return kept
}

// refused says which lines are load errors, by the rule alone or with the need.
func (c cell) refused() (alone, with bool) {
	alone = c.allow != nil && (c.mode == handoff.Full || c.mode == handoff.Minimal) ||
		c.allow != nil && len(cell{allow: c.allow, block: c.block}.kept()) == 0
	switch {
	case c.mode == handoff.Minimal:
		return alone, c.need != nil
	case c.mode == handoff.Scoped && c.allow == nil && c.need == nil:
		return alone, true
	}
	return alone, len(c.kept()) == 0
}

func cells() (all []cell) {
	for _, mode := range []handoff.Mode{"", handoff.Full, handoff.Scoped, handoff.Minimal} {
		for _, allow := range [][]task.Path{nil, {task.Whole}, {"/a", "/b/**"}, {"/e"}, {task.Whole, "/a"}} {
			for _, block := range [][]task.Path{nil, {"/b/c"}, {"a"}, {"/b", "a"}} {
				for _, need := range [][]task.Path{nil, {task.Whole}, {"/a", "/e"}, {"/b/**"}, {"/e", task.Whole}} {
					if mode != "" || allow != nil || block != nil { // such a rule says nothing
						all = append(all, cell{mode, allow, block, need})
					}
				}
			}
		}
	}
	return all
}

// Requirement: G7.
func TestTable(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for _, c := range cells() {
		p := exactly(handoff.PairRule{Mode: c.mode, Allow: c.allow, Block: c.block})
		b, err := gate.Compile(&p, []gate.Party{{Name: "analyst"}, {Name: "writer"}})
		alone, with := c.refused()
		if alone {
			require.ErrorIs(t, err, handoff.ErrPolicy, "%v", c)
			seen["refused to load"]++
			continue
		}
		require.NoError(t, err, "%v", c)
		g := gate.WholeOf(upstream, "dependsOn")
		if g.Terms = b.Between("analyst", "writer"); c.need != nil {
			g.Paths = c.need
		}
		compartment := granted(t, []gate.Grant{g})
		r := g.Terms.Contradiction(c.need)
		require.Equal(t, with, r != nil, "%v: %v", c, r)
		switch {
		case c.mode == handoff.Minimal:
			seen["minimal"]++
			requireMinimal(t, compartment, c)
		case with:
			seen["contradiction"]++
			require.NotEmpty(t, r.Hint)
			for name, o := range forms(t) {
				require.Equal(t, gate.Withheld, decide(t, compartment, o).Verdict, "%v %s: and the gate holds what no check let start", c, name)
			}
		default:
			seen["delivers"]++
			requireTable(t, compartment, c)
		}
	}
	for _, what := range []string{"refused to load", "contradiction", "minimal", "delivers"} {
		require.Greater(t, seen[what], 4, what)
	}
}

// forms are offers of the value of the table in each of its forms.
func forms(t *testing.T) map[string]*gate.Offer {
	raw := written(leaves)
	both := offer(t, structured(t, raw).WithText("some words"))
	both.As = task.Both
	asked := offer(t, structured(t, raw).WithText("some words"))
	asked.As = task.Structured
	return map[string]*gate.Offer{
		"text":          offer(t, envelope.Text("some words")),
		"JSON text":     offer(t, envelope.Text(raw)),
		"fenced":        offer(t, envelope.Text("```json\n"+raw+"\n```\n")),
		"structured":    offer(t, structured(t, raw)),
		"as structured": asked,
		"both":          both,
	}
}

func requireTable(t *testing.T, compartment *gate.Compartment, c cell) {
	for name, o := range forms(t) {
		r := decide(t, compartment, o)
		if name == "text" && !c.whole() {
			require.Equal(t, gate.Withheld, r.Verdict, "%v: a text is delivered whole or not at all", c)
			continue
		}
		require.Equal(t, gate.Passed, r.Verdict, "%v %s: %s", c, name, r.Detail)
		got := sealed(t, compartment, o).Payload()
		canonical, structured := got.JSON()
		switch {
		case !c.whole():
			require.True(t, structured, "%v %s", c, name)
			require.Equal(t, written(c.kept()), canonical, "%v %s", c, name)
			require.Empty(t, got.Text(), "%v %s: the text beside it stays behind", c, name)
			require.True(t, r.Parts().Narrowed)
		case name == "both":
			require.Equal(t, o.Envelope.Open(), got, "%v: same bytes", c)
		case name == "as structured":
			require.Equal(t, written(leaves), canonical)
			require.Empty(t, got.Text())
		default:
			require.Equal(t, o.Envelope.Open(), got, "%v %s: same bytes", c, name)
			require.False(t, r.Parts().Narrowed)
		}
	}
}

func requireMinimal(t *testing.T, compartment *gate.Compartment, c cell) {
	for name, o := range forms(t) {
		r := decide(t, compartment, o)
		require.Equal(t, gate.Minimized, r.Verdict, "%v %s", c, name)
		require.Equal(t, gate.ReasonMinimal, r.Reason)
		require.Zero(t, r.BytesAfter)
		require.NoError(t, r.Err(), "minimal is not held")
		s, err := compartment.GateOutbound(t.Context(), o, noon)
		require.NoError(t, err, "and needs no optional")
		require.True(t, s.Withheld())
		require.Zero(t, s.Payload())
		require.Equal(t, "Analyse", s.Title())
		require.Equal(t, task.Completed, s.Status())
	}
}

// The lines of the table in words, one by one.
//
// Requirement: G7.
func TestLines(t *testing.T) {
	t.Parallel()
	const held = ""
	raw := written(leaves)
	for _, tt := range []struct {
		name             string
		rule             handoff.PairRule
		need             []task.Path
		text, structured string
	}{
		{"full", handoff.PairRule{Mode: handoff.Full}, nil, "words", raw},
		{"full, block", handoff.PairRule{Mode: handoff.Full, Block: []task.Path{"/b"}}, nil, held, written([]string{"/a", "/e"})},
		{"full, need", handoff.PairRule{Mode: handoff.Full}, []task.Path{"/e"}, held, written([]string{"/e"})},
		{"full, need of the whole", handoff.PairRule{Mode: handoff.Full}, []task.Path{""}, "words", raw},
		{"full, block, need of the whole", handoff.PairRule{Mode: handoff.Full, Block: []task.Path{"e"}}, []task.Path{""}, held, written([]string{"/a", "/b/c", "/b/d"})},
		{"scoped to the whole", handoff.PairRule{Mode: handoff.Scoped, Allow: []task.Path{""}}, nil, "words", raw},
		{"scoped to the whole, block", handoff.PairRule{Allow: []task.Path{""}, Block: []task.Path{"E"}}, nil, held, written([]string{"/a", "/b/c", "/b/d"})},
		{"scoped to parts", handoff.PairRule{Allow: []task.Path{"/a", "/b/**"}, Block: []task.Path{"/b/d"}}, nil, held, written([]string{"/a", "/b/c"})},
		{"scoped to parts, need", handoff.PairRule{Allow: []task.Path{"/a", "/b/**"}}, []task.Path{"/b/c", "/e"}, held, written([]string{"/b/c"})},
		{"scoped to a container without /**", handoff.PairRule{Allow: []task.Path{"/a", "/b"}}, nil, held, written([]string{"/a"})},
		{"scoped by task", handoff.PairRule{Mode: handoff.Scoped}, []task.Path{"/a"}, held, written([]string{"/a"})},
		{"scoped by task, the whole", handoff.PairRule{Mode: handoff.Scoped}, []task.Path{""}, "words", raw},
		{"scoped by task, the whole, block", handoff.PairRule{Mode: handoff.Scoped, Block: []task.Path{"b"}}, []task.Path{""}, held, written([]string{"/a", "/e"})},
		{"scoped by nobody", handoff.PairRule{Mode: handoff.Scoped}, nil, held, held},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			compartment := under(t, exactly(tt.rule))
			if tt.need != nil {
				compartment = needing(t, exactly(tt.rule), tt.need...)
			}
			for _, give := range []struct {
				payload envelope.Payload
				want    string
			}{{envelope.Text("words"), tt.text}, {structured(t, raw), tt.structured}} {
				o := offer(t, give.payload)
				if give.want == held {
					r := requireWithheld(t, compartment, o, decide(t, compartment, o).Rule, gate.ReasonRule, gate.CodeWithheld)
					require.NotEmpty(t, r.Parts().Dropped)
					continue
				}
				p := sealed(t, compartment, o).Payload()
				canonical, _ := p.JSON()
				require.Equal(t, give.want, p.Text()+canonical)
			}
		})
	}
}

// Requirement: G6.
func TestTextIsOneValue(t *testing.T) {
	t.Parallel()
	for _, give := range []string{"category: billing", `Here it is: {"category":"billing"}`, `{"category":"billing"} and more`, `{"category":"billing","category":"x"}`,
		"```json\n{\"category\":\"billing\"}\n```\n```json\n{\"category\":\"x\"}\n```", "{\"category\":\"billing\"}{}", "", "\ufeff{\"category\":\"billing\"}", `{"category":"billing",}`, `{'category':'billing'}`} {
		for name, compartment := range map[string]*gate.Compartment{
			"need":  needing(t, handoff.Policy{}, "/category"),
			"allow": under(t, exactly(handoff.PairRule{Allow: []task.Path{"/category", "/*/**"}})),
			"block": under(t, exactly(handoff.PairRule{Block: []task.Path{"/other"}})),
		} {
			o := offer(t, envelope.Text(give))
			r := requireWithheld(t, compartment, o, decide(t, compartment, o).Rule, gate.ReasonRule, gate.CodeWithheld)
			require.Equal(t, []task.Path{task.Whole}, r.Parts().Dropped, "%s %q", name, give)
			require.True(t, r.Parts().InPart)
			require.False(t, r.Parts().Narrowed, "it is held as a whole")
		}
	}
	for _, root := range []string{`"billing"`, "12", "true", "null", `["category"]`, "[]", "{}"} { // at the path "", not at /category
		o := offer(t, structured(t, root))
		requireWithheld(t, needing(t, handoff.Policy{}, "/category"), o, gate.RuleGrant, gate.ReasonRule, gate.CodeWithheld)
		canonical, ok := sealed(t, needing(t, handoff.Policy{}, ""), o).Payload().JSON()
		require.True(t, ok)
		require.Equal(t, root, canonical)
	}
}

// Requirement: G5.
func TestPathsAtAnyDepth(t *testing.T) {
	t.Parallel()
	const give = `{"items":[{"id":1,"ssn":"a","deep":{"SSN":"b","x":[1,2]}},{"id":2},{"name":"n"}],"meta":{"a":{"b":{"c":[[1,{"k":"v"}]]}}},"ssn":3,"empty":{},"none":[]}`
	for _, tt := range []struct {
		name      string
		rule      handoff.PairRule
		want      string
		unmatched []task.Path
	}{
		{"an element's member", handoff.PairRule{Allow: []task.Path{"/items/*/id"}}, `{"items":[{"id":1},{"id":2}]}`, nil},
		{"gaps close", handoff.PairRule{Allow: []task.Path{"/items/*/name"}}, `{"items":[{"name":"n"}]}`, nil},
		{"a subtree", handoff.PairRule{Allow: []task.Path{"/items/*/deep/**"}}, `{"items":[{"deep":{"SSN":"b","x":[1,2]}}]}`, nil},
		{"a bare name at any depth", handoff.PairRule{Block: []task.Path{"ssn", "meta"}}, `{"empty":{},"items":[{"deep":{"x":[1,2]},"id":1},{"id":2},{"name":"n"}],"none":[]}`, nil},
		{"the same with a pointer", handoff.PairRule{Block: []task.Path{"/**/ssn", "/meta", "/empty", "/none"}}, `{"items":[{"deep":{"x":[1,2]},"id":1},{"id":2},{"name":"n"}]}`, nil},
		{"one element", handoff.PairRule{Allow: []task.Path{"/items/**"}, Block: []task.Path{"/items/0", "/items/2"}}, `{"items":[{"id":2}]}`, nil},
		{"arrays in arrays", handoff.PairRule{Allow: []task.Path{"/meta/a/b/c/*/*/k"}}, `{"meta":{"a":{"b":{"c":[[{"k":"v"}]]}}}}`, nil},
		{"a star for a member", handoff.PairRule{Allow: []task.Path{"/*/a/**", "/ssn"}}, `{"meta":{"a":{"b":{"c":[[1,{"k":"v"}]]}}},"ssn":3}`, nil},
		{"what is not there", handoff.PairRule{Allow: []task.Path{"/ssn", "/nothing", "/items/*/gone"}}, `{"ssn":3}`, []task.Path{"/items/*/gone", "/nothing"}},
		{"a container needs /**", handoff.PairRule{Allow: []task.Path{"/ssn", "/meta"}}, `{"ssn":3}`, []task.Path{"/meta"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, p := range []envelope.Payload{structured(t, give), envelope.Text(give)} {
				s := sealed(t, under(t, exactly(tt.rule)), offer(t, p))
				canonical, _ := s.Payload().JSON()
				require.Equal(t, tt.want, canonical)
				require.Equal(t, tt.unmatched, s.Decision().Parts().Unmatched)
			}
		})
	}
	for _, rule := range []handoff.PairRule{{Allow: []task.Path{"/items/0/id"}}, {Allow: []task.Path{"items"}}, {Allow: []task.Path{"/**/ssn"}}, {Block: []task.Path{""}}, {Block: []task.Path{"/**"}}, {Block: []task.Path{"*"}}} {
		p := exactly(rule)
		_, err := gate.Compile(&p, []gate.Party{{Name: "analyst"}, {Name: "writer"}})
		require.ErrorIs(t, err, handoff.ErrPolicy, "%v", rule)
	}
}

// Requirement: G10.
func TestGrantsCompareExactlyBlocksLoosely(t *testing.T) {
	t.Parallel()
	spellings := []string{"ssn", "SSN", "Ssn", "s\u00adsn", "ss\u200bn", "ｓｓｎ", "\u2060ssn", "ſsn"}
	block := under(t, exactly(handoff.PairRule{Block: []task.Path{"ssn"}}))
	allow := under(t, exactly(handoff.PairRule{Allow: []task.Path{"/ssn", "/fine"}}))
	for _, name := range spellings {
		o := offer(t, structured(t, fmt.Sprintf(`{"fine":1,%q:"123"}`, name)))
		canonical, _ := sealed(t, block, o).Payload().JSON()
		require.Equal(t, `{"fine":1}`, canonical, "%+q is blocked", name)
		canonical, _ = sealed(t, allow, o).Payload().JSON()
		require.Equal(t, name == "ssn", strings.Contains(canonical, "123"), "%+q is granted only as it is written", name)
	}
	accented := under(t, exactly(handoff.PairRule{Allow: []task.Path{"/caf\u00e9"}}))
	canonical, _ := sealed(t, accented, offer(t, structured(t, "{\"cafe\u0301\":1,\"x\":2}"))).Payload().JSON()
	require.Equal(t, "{\"cafe\u0301\":1}", canonical, "two ways to write one character are one name")
}

func TestWithheldTextNamesTheBlockingRule(t *testing.T) {
	t.Parallel()
	p := handoff.Policy{Rules: []handoff.PairRule{
		{From: handoff.Anyone, To: handoff.Anyone, Block: []task.Path{"ssn"}, Origin: at(7)}, {From: handoff.Anyone, To: handoff.Anyone, Block: []task.Path{"iban"}, Origin: at(5)},
		{From: handoff.Anyone, To: handoff.Anyone, Ceiling: new(label.Secret), Origin: at(1)}, {From: "analyst", To: handoff.Anyone, Ceiling: new(label.Secret), Origin: at(2)},
	}}
	o := offer(t, envelope.Text("words"))
	r := requireWithheld(t, under(t, p), o, "*→*", gate.ReasonRule, gate.CodeWithheld)
	require.Equal(t, "team.yaml:5", r.Line)
	r = requireWithheld(t, needing(t, p, "/a"), o, gate.RuleGrant, gate.ReasonRule, gate.CodeWithheld)
	require.Equal(t, "team.yaml:12 dependsOn", r.Line, "the need alone would hold it")
	p.Rules = append(p.Rules, handoff.PairRule{From: "analyst", To: "writer", Translate: &handoff.Translation{Filter: []task.Path{"x"}}, Origin: at(9)})
	r = requireWithheld(t, under(t, p), o, "analyst→writer", gate.ReasonRule, gate.CodeWithheld)
	require.Equal(t, "team.yaml:9", r.Line)
	require.Contains(t, rulebook(t, p).Between("analyst", "writer").Contradiction([]task.Path{"/x"}).Reason, "analyst→writer (team.yaml:9)")
	p.Rules = append(p.Rules, handoff.PairRule{From: handoff.Anyone, To: "writer", Mode: handoff.Full, Origin: at(11)})
	r = requireWithheld(t, under(t, p), o, "*→writer", gate.ReasonRule, gate.CodeWithheld)
	require.Equal(t, "team.yaml:11", r.Line, "what states the mode is named first")
}
