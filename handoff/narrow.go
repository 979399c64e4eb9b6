package handoff

import (
	"cmp"
	"slices"
	"strings"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/pick"
	"github.com/runteam/runteam/task"
)

// narrow picks parts of the structured value; where there is none, of the JSON
// value that a text consists of. Any other text crosses whole or not at all.
func (c *Compartment) narrow(g *Grant, s pick.Selection, p envelope.Payload, d *Ruling) (envelope.Payload, Verdict) {
	d.Narrowed = true
	by := cmp.Or(d.Rule, RuleGrant)
	value, ok := decoded(p)
	if _, text := value.(string); !ok || text { // a text in quotes is a text
		d.Dropped = []task.Path{task.Whole}
		d.hold(by, ReasonRule, "a text crosses whole or not at all, and only parts are granted: "+s.String())
		return envelope.Payload{}, Held
	}
	picked := s.Apply(value)
	named := names{g, s}
	d.Dropped, d.Kept, d.Unmatched = named.shown(picked.Dropped), named.shown(picked.Kept), picked.Unmatched
	if _, structured := p.JSON(); structured && p.Text() != "" {
		d.TextDropped = true
	}
	if !picked.Any {
		d.hold(by, ReasonRule, "none of the granted parts is in it: "+s.String())
		return envelope.Payload{}, Held
	}
	v, err := envelope.EncodeJSON(picked.Value)
	if err != nil {
		d.hold(by, ReasonRule, "what is left of it has no canonical form")
		return envelope.Payload{}, Held
	}
	return envelope.Payload{}.WithStructured(v), Passed
}

// decoded returns the structured value of a payload, or the one strict JSON
// value that its text consists of.
func decoded(p envelope.Payload) (any, bool) {
	if canonical, ok := p.JSON(); ok {
		v, err := envelope.DecodeJSON(canonical)
		return v, err == nil
	}
	v, err := envelope.FindValue(p.Text())
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

// joined takes each segment from whichever of two forms of a path has it in clear.
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
