package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/listformat"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// The caller knows the instances of a task by a key of their items. Keys are parts of a result or of
// an input that the caller is delivered, so they have a row of their own in the flow table.

// KeyPaths returns the path of the keys of all items of a list.
func KeyPaths(l *task.List) []task.Path { return []task.Path{l.Path + "/*" + l.Key} }

// KeyName returns the name of the member that is the key of an item.
func KeyName(l *task.List) string {
	tokens := pick.Tokens(l.Key)
	return tokens[len(tokens)-1]
}

// KeyText names the keys of a list, such as key /email of input leads.
func KeyText(p *Plan, l *task.List) string {
	return fmt.Sprintf("key %s of %s", l.Key, ListText(p, l))
}

// ListText names a list, such as /people of Plan.
func ListText(p *Plan, l *task.List) string { return listsText(p, []*task.List{l}) }

// SeesKeys reports whether the caller may be delivered the keys of a list. If not, the check has
// said so.
func SeesKeys(p *Plan, l *task.List) bool {
	s := keySightOf(p, l)
	return s.sees(l)
}

// KeyClearance is the highest label of a key that the caller may see. Names are in events, and in
// the clear in a journal.
func KeyClearance(accepts label.Classification) label.Classification {
	return min(accepts, label.Confidential)
}

// ListsOf returns the lists that task i is for an item of each, the innermost one last. A loop has
// those of its rounds.
func ListsOf(p *Plan, i int) []*task.List {
	for Joins(p.Graph.Task(i)) {
		i = int(p.Graph.Upstream(i)[0])
	}
	if in := p.Graph.Task(i).Instance; in != nil {
		return in.Lists
	}
	return nil
}

// A keySight is what the caller sees of the keys of a list.
type keySight struct {
	from  string // who makes what the list is in
	task  int    // whose result that is; -1 for an input
	label label.Classification
	terms *gate.Terms
	part  delivery
}

// keySightOf returns what the caller sees of the keys of a list.
func keySightOf(p *Plan, l *task.List) (s keySight) {
	s.from, s.task = handoff.User, -1
	least := label.Public
	if l.Input != "" {
		s.label = p.Input(task.Use{Name: l.Input}).Classification
		least = s.label
	} else {
		s.task, _ = p.Graph.Index(task.ID(l.Task))
		s.from, s.label, least = p.Graph.Task(s.task).Assignee, p.Labels[s.task], p.least[s.task]
	}
	s.terms = p.Roster().Terms(s.from, handoff.User)
	s.part = deliveryOf(s.terms, least, s.label, true, &gate.Capabilities{Agent: handoff.User, Accepts: KeyClearance(*p.Options().UserAccepts)})
	return s
}

// sees reports whether the caller may be delivered a key.
func (s *keySight) sees(l *task.List) bool {
	delivers, err := s.terms.Delivers(KeyPaths(l))
	return err == nil && s.terms.Mode() != handoff.Minimal && !s.terms.Summarizes() && (!s.part.Withheld || s.part.plain) && delivers.MayPass(pick.Tokens(KeyPaths(l)[0]))
}

// addItemKeys adds the keys of items as sources, and the caller as their reader. The caller sees
// them of the input that a list is in, too.
func (b *flowBuilder) addItemKeys() {
	p, g, known := b.plan, &b.graph, map[[2]string]bool{}
	for i := range p.Graph.Len() {
		for _, l := range ListsOf(p, i) {
			id := [2]string{l.Pointer, l.Task}
			if l.Key == "" || known[id] {
				continue
			}
			known[id] = true
			s, of := keySightOf(p, l), p.InputIndex[strings.ToLower(l.Input)]
			if s.task >= 0 {
				of = b.results + s.task
			}
			e := b.passage(of, s.terms, KeyPaths(l), &s.part)
			sight := flow.Sight{Source: of, Reader: b.user, Withheld: !s.sees(l), Rule: e.Rule, Line: e.Line, Note: e.Note, Lowers: e.Lowers, Delivers: e.Delivers}
			g.Sights = append(g.Sights, sight)
			sight.Source, sight.Delivers = len(g.Sources), pick.Everything()
			g.Sights = append(g.Sights, sight)
			name := KeyText(p, l)
			g.Sources = append(g.Sources, flow.Source{Kind: handoff.Condition, Name: name, From: s.from, Task: s.task, Label: s.label})
		}
	}
}

// checkItemKey reports a key of task i that is not a text or a number of each item, and one by
// which nothing is named, since the caller may not see it.
func (c *checker) checkItemKey(i, k int, l *task.List) {
	if l.Key == "" {
		return
	}
	at := c.task(i).at("forEach", k, "key")
	if l.Input == "" {
		up, _ := c.plan.Graph.Index(task.ID(l.Task))
		if s := c.plan.Schemas[up]; s != nil && s.Has(pick.Tokens(l.Path)) == schema.Yes {
			if what := keyFault(s, l); what != "" {
				near := nearestPath([]governed{{schema: s}}, KeyPaths(l)[0], grants).below(l.Path + "/*")
				at.report(fmt.Sprintf("the result of %q: %s is %s", c.plan.Graph.Task(up).Title, KeyPaths(l)[0], what),
					cmp.Or(near.question(), `write it in "properties" of the items as a string, a number or an integer, and in their "required"`), task.ErrInvalid)
				return
			}
		}
	}
	if s := keySightOf(c.plan, l); !s.sees(l) {
		c.advise(at, "its items are known by position, since the caller is not delivered the key", "")
	}
}

// keyFault says what is wrong with the keys of a list in results with a schema; empty for nothing.
func keyFault(s *schema.Schema, l *task.List) string {
	path := pick.Tokens(KeyPaths(l)[0])
	domain := s.Domain(path)
	isOther := func(value string) bool {
		return !strings.HasPrefix(value, `"`) && strings.Trim(value, "0123456789.-+eE") != ""
	}
	switch {
	case s.Has(path) != schema.Yes:
		return "no member of the items by the outputSchema"
	case slices.ContainsFunc(domain.Values, isOther), s.Has(append(path, "*")) != schema.No:
		return "not only a text or a number by the outputSchema"
	case domain.Absent:
		return "not required by the outputSchema"
	}
	return ""
}

// A noKeyError reports an item of an input without its key.
type noKeyError struct{ text, hint string }

func (e *noKeyError) Error() string { return e.text }

// checkKeys returns a [*noKeyError] about the first item of an input without a key.
func checkKeys(in *Input, l *task.List, items []any) error {
	for n, item := range items {
		switch of, _ := jsonvalue.At(item, pick.Tokens(l.Key)); of.(type) {
		case string, json.Number:
			continue
		}
		near := nearestPath([]governed{{schema: schema.Of(item)}}, l.Key, grants)
		if in.ListFormat == listformat.CSV {
			return &noKeyError{fmt.Sprintf("input %q has no column %s", in.Name, l.Key), columnHint(near.question(), schema.Of(item).Members(nil))}
		}
		return &noKeyError{fmt.Sprintf("input %q: %s has no text and no number at %s", in.Name, itemPlace(in, n), l.Key), cmp.Or(near.hint(), keyHint)}
	}
	return nil
}

// itemPlace says where item n of an input is, by the lines of its text if its format has lines.
func itemPlace(in *Input, n int) string {
	if line := listformat.LineOf(in.ListFormat, in.Text, n); line > 0 {
		return fmt.Sprintf("line %d", line)
	}
	return fmt.Sprintf("item %d", n+1)
}

// keyHint says what to write so that each item has a key.
const keyHint = "write the path of a member that each item has, such as /email"
