package gate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// narrow picks parts of the structured value; where there is none, of the JSON
// value that a text consists of. Any other text is delivered whole or not at all.
func (c *Compartment) narrow(g *Grant, s pick.Selection, p envelope.Payload, d *Ruling) (_ envelope.Payload, ok bool) {
	n := &Narrowing{InPart: true}
	d.Narrowing = n
	by, line := g.narrowing(d)
	if l := d.lowers; l != nil && by == RuleGrant {
		by, line = handoff.Rule(l.Name), cmp.Or(l.Origin.String(), d.Line)
	}
	withhold := func(why string) (envelope.Payload, bool) {
		d.withholdValue(by, why)
		d.Line = line
		return envelope.Payload{}, false
	}
	value, ok := g.List.decoded(p)
	if _, text := value.(string); !ok || text || g.Source.Kind == handoff.Fault { // a text in quotes is a text, and so is what an agent said when it failed
		n.Dropped = []task.Path{task.Whole}
		return withhold("a text is delivered whole or not at all, and only parts are granted: " + s.String())
	}
	all, from := value, value
	if g.Item != "" {
		if value, ok = onlyItem(all, pick.Tokens(g.Item), false); !ok {
			return withhold("the list has no such item")
		}
		if from = value; numbers(s) {
			from, _ = onlyItem(all, pick.Tokens(g.Item), true)
		}
	}
	picked := s.Apply(from)
	named := names{g, s}
	n.Dropped, n.Kept, n.Unmatched = named.shown(picked.Dropped), named.shown(picked.Kept), picked.Unmatched
	if g.Source.Kind == handoff.Condition && !picked.Any { // it reads that there is no such value
		picked.Any, picked.Value = true, map[string]any{}
	}
	if !picked.Any {
		return withhold("none of the granted parts is in it: " + s.String())
	}
	v, err := jsonvalue.Encode(picked.Value)
	if err != nil {
		return withhold("what is left of it has no canonical form")
	}
	whole, err := jsonvalue.Encode(value)
	if err != nil {
		return withhold("it has no canonical form")
	}
	_, structured := p.JSON()
	n.TextDropped = structured && p.Text() != "" && (g.Item != "" || !writes(p.Text(), whole))
	n.Narrowed = n.TextDropped || whole.Canonical() != v.Canonical()
	if by != RuleGrant { // what the task itself did not ask for is explained by its rule
		d.Rule, d.Line = by, line
	}
	return envelope.Payload{}.WithStructured(v), true
}

// writes reports whether a text is a value and nothing else, as a reply that a
// structured result was read from.
func writes(text string, value jsonvalue.Value) bool {
	before, body, after := jsonvalue.Unfence(text)
	if !fence.MatchString(before) || !fence.MatchString(after) {
		return false
	}
	v, err := jsonvalue.Decode(body)
	if err != nil {
		return false
	}
	same, err := jsonvalue.Encode(v)
	return err == nil && same.Canonical() == value.Canonical()
}

// narrowing returns the rule that makes parts of a whole, and its line: the one
// that states the mode, else one that takes parts away, else the grant.
func (g *Grant) narrowing(d *Ruling) (handoff.Rule, string) {
	switch t := g.Terms; {
	case d.Rule != "":
		return d.Rule, d.Line
	case t != nil && t.narrows.Rule != "" && slices.Contains(g.Paths, task.Whole):
		return t.narrows.Rule, cmp.Or(t.narrows.Line, d.Line)
	}
	return RuleGrant, d.Line
}

// decoded returns the structured value of a payload, or the one strict JSON
// value that its text consists of.
func decoded(p envelope.Payload) (any, bool) {
	if canonical, ok := p.JSON(); ok {
		v, err := jsonvalue.Decode(canonical)
		return v, err == nil
	}
	v, err := jsonvalue.FindValue(p.Text())
	return v, err == nil
}

// names writes paths for people: keys that the grant, its terms or a schema
// name, and * for any other.
type names struct {
	grant     *Grant
	selection pick.Selection
}

func (n names) shown(paths []task.Path) []task.Path {
	if len(paths) == 0 {
		return nil
	}
	known := writtenIn(n.selection)
	out := make([]task.Path, 0, len(paths))
	for _, p := range paths {
		shown := known.of(p)
		if n.grant.Names != nil {
			shown = joined(shown, n.grant.Names.Shown(p))
		}
		if !slices.Contains(out, shown) {
			out = append(out, shown)
		}
	}
	slices.Sort(out) // where a key stood among others would say something about it
	return out
}

// written are the keys that paths of a selection name.
type written map[string]bool

func writtenIn(s pick.Selection) written {
	lists, blocks := s.Paths()
	w := written{}
	for _, list := range append(lists, blocks) {
		for _, p := range list {
			for segment := range strings.SplitSeq(string(p), "/") {
				w[segment] = true
			}
		}
	}
	return w
}

// of returns the path with every key that is not written anywhere as *.
func (w written) of(p task.Path) task.Path {
	segments := strings.Split(string(p), "/")
	for i := 1; i < len(segments); i++ {
		if !w[segments[i]] {
			segments[i] = "*"
		}
	}
	return task.Path(strings.Join(segments, "/"))
}

// joined takes each segment of a path from the one of two forms that shows it.
func joined(a, b task.Path) task.Path {
	as, bs := strings.Split(string(a), "/"), strings.Split(string(b), "/")
	if len(as) != len(bs) {
		return a
	}
	for i := range as {
		if as[i] == "*" {
			as[i] = bs[i]
		}
	}
	return task.Path(strings.Join(as, "/"))
}

// topLevel lists what of a withheld payload could have been delivered: one path for each
// member of an object, the keys unnamed because no schema vouches for them.
func topLevel(p envelope.Payload) []task.Path {
	canonical, ok := p.JSON()
	if !ok {
		return []task.Path{task.Whole}
	}
	v, err := jsonvalue.Parse(canonical)
	if err != nil {
		return []task.Path{task.Whole}
	}
	members, ok := v.Value().(map[string]any)
	if !ok || len(members) == 0 {
		return []task.Path{task.Whole}
	}
	return slices.Repeat([]task.Path{"/*"}, len(members))
}
