package gate_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/slowtest"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Properties of every policy and value.

func init() { slowtest.Checks(50) }

var keys = []string{"a", "b", "A", "ssn", "x/y"}

// value draws a JSON value in which every leaf has a number of its own.
func value(t *rapid.T) any {
	leaf := 0
	var draw func(depth int) any
	draw = func(depth int) any {
		kind := rapid.IntRange(0, 3).Draw(t, "kind")
		switch {
		case depth < 3 && kind == 0:
			list := []any{}
			for range rapid.IntRange(0, 3).Draw(t, "elements") {
				list = append(list, draw(depth+1))
			}
			return list
		case depth < 3 && kind < 3 || depth == 0:
			members := map[string]any{}
			for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 0, 4, rapid.ID[string]).Draw(t, "keys") {
				members[key] = draw(depth + 1)
			}
			return members
		}
		leaf++
		return leaf
	}
	return draw(0)
}

func allows() *rapid.Generator[[]task.Path] {
	return rapid.SliceOfN(rapid.SampledFrom([]task.Path{"", "/a", "/a/**", "/*", "/*/**", "/b/*", "/b/*/a", "/a/b", "/a/*/**", "/x~1y/**", "/A"}), 1, 3)
}

func blocks() *rapid.Generator[[]task.Path] {
	return rapid.SliceOfN(rapid.SampledFrom([]task.Path{"ssn", "/a/b", "/b/0", "/*/a", "/**/x~1y", "/a/ssn"}), 0, 2)
}

// side draws a rule that is not for everybody and everybody.
func rules(t *rapid.T, from, to string) handoff.PairRule {
	r := handoff.PairRule{From: from, To: to, Block: blocks().Draw(t, "block")}
	switch rapid.IntRange(0, 4).Draw(t, "what") {
	case 0, 1:
		r.Allow = allows().Draw(t, "allow")
	case 2:
		r.Mode = rapid.SampledFrom([]handoff.Mode{handoff.Full, handoff.Full, handoff.Scoped, handoff.Minimal}).Draw(t, "mode")
	case 3:
		r.Translate = &handoff.Translation{Fields: allows().Draw(t, "fields"), Filter: blocks().Draw(t, "filter")}
	}
	if len(r.Block) == 0 && r.Allow == nil && r.Mode == "" && r.Translate == nil {
		r.Block = []task.Path{"ssn"}
	}
	return r
}

// drawPolicy draws rules of every rank; those that do not load are left out.
func drawPolicy(t *rapid.T) handoff.Policy {
	var p handoff.Policy
	if rapid.Bool().Draw(t, "exact") {
		p.Rules = append(p.Rules, rules(t, "analyst", "writer"))
	}
	for range rapid.IntRange(0, 2).Draw(t, "one-sided") {
		from, to := "analyst", handoff.Anyone
		if rapid.Bool().Draw(t, "by reader") {
			from, to = handoff.Anyone, "writer"
		}
		p.Rules = append(p.Rules, rules(t, from, to))
	}
	p.Rules = slices.DeleteFunc(p.Rules, func(r handoff.PairRule) bool {
		_, err := gate.Compile(&handoff.Policy{Rules: []handoff.PairRule{r}}, parties)
		return err != nil
	})
	return p
}

func drawNeed(t *rapid.T) []task.Path {
	if rapid.Bool().Draw(t, "needs") {
		return allows().Draw(t, "need")
	}
	return nil
}

// ask decides about a value under a policy and a need.
func ask(t *rapid.T, p handoff.Policy, need []task.Path, o *gate.Offer) (gate.Ruling, envelope.Payload) {
	compartment := under(t, p)
	if need != nil {
		compartment = needing(t, p, need...)
	}
	line := *o
	line.Optional = true
	s, err := compartment.GateOutbound(t.Context(), &line, noon)
	require.NoError(t, err)
	return decide(t, compartment, &line), s.Payload()
}

// numbers are the leaves of what is delivered, by path.
func numbers(t *rapid.T, p envelope.Payload) map[int][]string {
	found := map[int][]string{}
	raw, ok := p.JSON()
	if !ok {
		raw = p.Text()
	}
	if raw == "" {
		return found
	}
	var v any
	require.NoError(t, json.Unmarshal([]byte(raw), &v))
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		switch v := v.(type) {
		case map[string]any:
			for key, one := range v {
				walk(one, append(slices.Clone(path), key))
			}
		case []any:
			for _, one := range v {
				walk(one, append(slices.Clone(path), "*"))
			}
		case float64:
			found[int(v)] = path
		}
	}
	walk(v, nil)
	return found
}

func drawOffer(t *rapid.T) *gate.Offer {
	raw, err := json.Marshal(value(t))
	require.NoError(t, err)
	if rapid.Bool().Draw(t, "as a text") {
		return offer(t, envelope.Text(string(raw)))
	}
	return offer(t, structured(t, string(raw)))
}

// Requirement: G12.
func TestMoreRulesNeverDeliverMore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, need, o := drawPolicy(t), drawNeed(t), drawOffer(t)
		_, before := ask(t, p, need, o)
		more := p
		more.Rules = slices.Clone(p.Rules)
		name := rapid.SampledFrom([]string{"a block", "a one-sided rule", "a rule for everybody", "a ceiling", "a need", "a declassifier", "a default"}).Draw(t, "added")
		switch name {
		case "a block":
			if len(more.Rules) == 0 {
				t.Skip()
			}
			i := rapid.IntRange(0, len(more.Rules)-1).Draw(t, "rule")
			more.Rules[i].Block = append(slices.Clone(more.Rules[i].Block), "/a", "b")
		case "a one-sided rule":
			more.Rules = append(more.Rules, rules(t, "analyst", handoff.Anyone))
		case "a rule for everybody":
			more.Rules = append(more.Rules, handoff.PairRule{From: handoff.Anyone, To: handoff.Anyone, Block: []task.Path{"b"}})
		case "a ceiling":
			more.Rules = append(more.Rules, handoff.PairRule{From: handoff.Anyone, To: handoff.Anyone, Ceiling: new(levels().Draw(t, "ceiling"))})
		case "a need":
			if need != nil || slices.ContainsFunc(p.Rules, func(r handoff.PairRule) bool { return r.Mode == handoff.Scoped && r.Allow == nil }) {
				t.Skip("such a rule waits for a need")
			}
			need = allows().Draw(t, "need")
		case "a declassifier":
			more.Declassify = []handoff.Declassifier{{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, Paths: []task.Path{"/a"}}}
		case "a default":
			more.Default = handoff.Minimal
		}
		if _, err := gate.Compile(&more, parties); err != nil {
			t.Skip("it does not load")
		}
		_, after := ask(t, more, need, o)
		had := numbers(t, before)
		for leaf := range numbers(t, after) {
			require.Contains(t, had, leaf, "%s delivers more: %v", name, more.Rules)
		}
	})
}

// Requirement: G5.
func TestOnlyGrantedPartsAreDelivered(t *testing.T) {
	t.Parallel()
	delivered := 0
	rapid.Check(t, func(t *rapid.T) {
		p, need, o := drawPolicy(t), drawNeed(t), drawOffer(t)
		r, crossed := ask(t, p, need, o)
		delivered += len(numbers(t, crossed))
		if !r.IsDelivered() {
			require.Zero(t, crossed)
			return
		}
		exact := slices.ContainsFunc(p.Rules, func(r handoff.PairRule) bool {
			return r.To == "writer" && r.From == "analyst" && (r.Mode != "" || r.Allow != nil)
		})
		for leaf, path := range numbers(t, crossed) {
			covers := func(list []task.Path) bool {
				return slices.ContainsFunc(list, func(one task.Path) bool { return pick.Covers(one, path) })
			}
			require.True(t, need == nil || covers(need), "leaf %d at %q: need %q", leaf, path, need)
			for _, rule := range p.Rules {
				counts := !exact || rule.From != handoff.Anyone && rule.To != handoff.Anyone // for modes and lists
				require.True(t, !counts || rule.Allow == nil || covers(rule.Allow), "leaf %d at %q: allow %q", leaf, path, rule.Allow)
				require.False(t, counts && rule.Mode == handoff.Minimal, "minimal delivers nothing")
				requireUnblocked(t, path, rule.Block)
				if rule.Translate != nil {
					require.True(t, covers(rule.Translate.Fields), "leaf %d at %q: fields %q", leaf, path, rule.Translate.Fields)
					requireUnblocked(t, path, rule.Translate.Filter)
				}
			}
		}
	})
	require.Greater(t, delivered, 10, "the law was put to the test")
}

// requireUnblocked reads blocks as simply as they can be read.
func requireUnblocked(t *rapid.T, path []string, list []task.Path) {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for _, block := range list {
		name, anywhere := strings.CutPrefix(string(block), "/**/")
		if anywhere || !strings.Contains(name, "/") {
			for _, key := range path {
				require.False(t, strings.EqualFold(key, unescape.Replace(name)), "%q is delivered in spite of %q", path, block)
			}
			continue
		}
		segments := strings.Split(string(block)[1:], "/")
		same := len(segments) <= len(path) && !strings.Contains(string(block), "0") // of elements other than the first one cannot tell here
		for i := 0; same && i < len(segments); i++ {
			same = segments[i] == "*" || path[i] != "*" && strings.EqualFold(unescape.Replace(segments[i]), path[i])
		}
		require.False(t, same, "%q is delivered in spite of %q", path, block)
	}
}

// Requirement: G46.
func TestRulingTwiceIsEqual(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p, need, o := drawPolicy(t), drawNeed(t), drawOffer(t)
		give, genuine := o.Envelope.Open(), o.Envelope.Digest()
		r1, p1 := ask(t, p, need, o)
		r2, p2 := ask(t, p, need, o) // a policy compiled anew, another contract
		require.Equal(t, r1.Decision, r2.Decision)
		require.Equal(t, p1, p2)
		require.Equal(t, give, o.Envelope.Open(), "and the value stays as it was")
		require.Equal(t, genuine, o.Envelope.Digest())
		require.NoError(t, o.Envelope.Genuine())
		require.Equal(t, p1.Size(), r1.BytesAfter, "what is asked beforehand is what is delivered")
		require.Equal(t, r1.Verdict == gate.Passed && p1.Size() > 0, p1.Size() > 0)
	})
}

// Only Seal can reach what a ruling delivers.
//
// Requirement: G46.
func TestRulingDeliversNothing(t *testing.T) {
	t.Parallel()
	var seen []string
	for field := range reflect.TypeFor[gate.Ruling]().Fields() {
		if field.IsExported() {
			seen = append(seen, field.Name)
		}
	}
	require.Equal(t, []string{"Decision", "Translate"}, seen)
	c, o := newCompartment(t), offer(t, envelope.Text("CANARY"))
	r := decide(t, c, o)
	raw, err := json.Marshal(r)
	require.NoError(t, err)
	require.NotContains(t, string(raw)+fmt.Sprintf("%+v %#v", r, &r), "CANARY")
	_, _, err = c.GateInbound(gate.Reply{ID: "e", Text: "x"}, nil, nil, noon)
	require.NoError(t, err, "asking does not use up the contract")
}

// If a label passes, every lower label passes too. The static check relies on this,
// since it looks only at the highest possible label.
//
// Requirement: G48.
func TestLowerLabelPassesWhereAHigherPasses(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		p.Declassify = []handoff.Declassifier{{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, Paths: []task.Path{"/*/**"}, LowerTo: rapid.SampledFrom([]label.Classification{label.Public, label.Internal, label.Confidential}).Draw(t, "to")}}
		p.Rules = append(p.Rules, handoff.PairRule{From: handoff.Anyone, To: handoff.Anyone, Ceiling: new(levels().Draw(t, "ceiling"))})
		terms, clearance := rulebook(t, p).Between("analyst", "writer"), levels().Draw(t, "clearance")
		delivered := func(level label.Classification) bool {
			x := terms.Admit(level, clearance, "writer")
			return !x.Withheld()
		}
		for level := label.Internal; level <= label.Secret; level++ {
			if delivered(level) {
				require.True(t, delivered(level-1), "%v is delivered, and %v is not", level, level-1)
			}
		}
	})
}

// Admit predicts what the gate does with a label.
//
// Requirement: G46.
func TestAdmissionPredictsTheGate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := drawPolicy(t)
		if rapid.Bool().Draw(t, "lowers") {
			p.Declassify = []handoff.Declassifier{{Entry: handoff.Entry{Name: "d", From: "analyst", To: "writer", Reason: "r"}, Paths: []task.Path{"/*/**"}, LowerTo: rapid.SampledFrom([]label.Classification{label.Public, label.Internal, label.Confidential}).Draw(t, "to")}}
		}
		if rapid.Bool().Draw(t, "bounded") {
			p.Rules = append(p.Rules, handoff.PairRule{From: handoff.Anyone, To: handoff.Anyone, Ceiling: new(levels().Draw(t, "ceiling"))})
		}
		level, clearance := levels().Draw(t, "level"), levels().Draw(t, "clearance")
		x := rulebook(t, p).Between("analyst", "writer").Admit(level, clearance, "writer")
		r := decide(t, under(t, p, cleared(clearance)), offer(t, structured(t, `{"a":{"b":1}}`), labelled(level)))
		require.LessOrEqual(t, x.After, level, "nothing rises")
		if r.Verdict == gate.Minimized { // nothing that is labelled is delivered, so the label does not count
			require.Equal(t, level, r.After)
			return
		}
		if x.Withheld() {
			require.Equal(t, gate.Withheld, r.Verdict)
			require.Equal(t, []string{string(x.Rule), string(x.Reason), x.Detail}, []string{string(r.Rule), string(r.Reason), r.Detail})
			require.Equal(t, level, r.After)
			return
		}
		require.LessOrEqual(t, x.After, clearance)
		require.Equal(t, x.Lowers != nil, x.After < level)
		if r.IsDelivered() {
			require.Equal(t, x.After, r.After, fmt.Sprint(p.Rules))
		}
	})
}
