package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/condition"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// checkBranches reports conditions on values that no schema bounds, or that are never true, cases
// that no task takes, and readers who may not know which tasks run.
func (c *checker) checkBranches() {
	if c.plan.Branches == nil {
		return
	}
	c.certain, c.compared = map[certainKey]bool{}, comparedValues{}
	cases, written := map[value][]taskCase{}, map[string]bool{}
	for i := range c.plan.Graph.Len() {
		t, guarded := c.plan.Graph.Task(i), true
		if t.Instance != nil {
			for k, list := range t.Instance.Lists {
				c.checkListReads(i, k, list)
			}
			for _, until := range append(t.Instance.Until, t.Instance.Guard) {
				until.Leaves(func(l *condition.Condition) { guarded = c.checkLeaf(i, l) && guarded })
			}
		}
		ok := true
		t.When.Leaves(func(l *condition.Condition) { ok = c.checkLeaf(i, l) && ok })
		for _, one := range casesOf(i, t) {
			if at, single := valueOf(one.when); single && ok && guarded && !one.isAgain(written) {
				cases[at] = append(cases[at], one)
				c.checkHolds(at, one)
			}
		}
	}
	for i := range c.plan.Graph.Len() {
		for _, one := range casesOf(i, c.plan.Graph.Task(i)) {
			if at, single := valueOf(one.when); single && len(cases[at]) > 0 && cases[at][0] == one {
				c.checkCases(at, cases[at])
			}
		}
		c.checkAlternatives(i)
		c.checkObservers(i)
	}
}

// checkLeaf reports what is wrong with one comparison of task i, and whether nothing is.
func (c *checker) checkLeaf(i int, l *condition.Condition) (ok bool) {
	p := c.plan
	up, _ := p.Graph.Index(task.ID(l.Task))
	of, at := p.Graph.Task(up), func(key ...any) subject { return c.comparisonAt(i, l, key) }
	path, s := task.Path(l.Path), p.Schemas[up]
	terms := c.team.Terms(of.Assignee, p.Graph.Task(i).Assignee)
	delivers, err := terms.Delivers([]task.Path{path})
	there := c.compared.at(s, l)
	switch {
	case s == nil:
		c.reportOnce(at("path"), fmt.Sprintf("the result of %q has no outputSchema, so nothing bounds %s", of.Title, path), "give that task an outputSchema in which this is an enum, a boolean or a number", task.ErrInvalid)
		return false
	case there.lacking:
		at("path").report(fmt.Sprintf("the outputSchema of %q has no %s", of.Title, path), pathHint(s, path), task.ErrUnknown)
		return false
	case there.unbounded != nil:
		c.reportOnce(at("path"), fmt.Sprintf("the result of %q: %v", of.Title, there.unbounded), "", task.ErrInvalid)
		return false
	case terms.Mode() == handoff.Minimal, terms.Summarizes(), err != nil, !delivers.MayPass(pick.Tokens(path)):
		at("path").report(fmt.Sprintf("%s of the result of %q is not delivered to %q, by the rules for the two", path, of.Title, p.Graph.Task(i).Assignee), "allow the path in a rule for the pair, or compare another value", task.ErrInvalid)
		return false
	}
	domain := there.domain
	if (l.Op == condition.AtLeast || l.Op == condition.AtMost) && !domain.HasNumber() {
		at(string(l.Op)).report(fmt.Sprintf("%s of the result of %q is never a number", path, of.Title), suggestValue("", domain.Values)+" with equals or in", task.ErrUnknown)
		return false
	}
	if domain.Texts || domain.Numbers {
		return true
	}
	ok = true
	for k, v := range l.Values {
		if l.Op != condition.AtLeast && l.Op != condition.AtMost && !slices.Contains(domain.Values, v) {
			key := []any{string(l.Op)}
			if l.Op == condition.In {
				key = append(key, k)
			}
			at(key...).report(fmt.Sprintf("%s of the result of %q is never %s", path, of.Title, v), suggestValue(v, domain.Values), task.ErrUnknown)
			ok = false
		}
	}
	return ok
}

// A comparedPath is a path of a result that a condition compares.
type comparedPath struct {
	schema *schema.Schema
	path   string
	exists bool // the condition compares only whether there is a value
}

// A comparedValue is what a schema says of a path.
type comparedValue struct {
	lacking   bool
	unbounded error
	domain    condition.Domain
}

// comparedValues is what schemas say of the paths that conditions compare. The rounds and items of a
// task share a schema and compare the same paths, so each path is examined once.
type comparedValues map[comparedPath]comparedValue

// at returns what a schema says of the path of a comparison.
func (m comparedValues) at(s *schema.Schema, l *condition.Condition) comparedValue {
	if s == nil {
		return comparedValue{}
	}
	key := comparedPath{s, l.Path, l.Op == condition.Exists}
	v, known := m[key]
	if !known {
		if v.lacking = lacks(s, l); !v.lacking {
			v.unbounded, v.domain = boundedFor(s, l), s.Domain(pick.Tokens(task.Path(l.Path)))
		}
		m[key] = v
	}
	return v
}

// reportOnce reports a problem that is to be corrected in one place, however many conditions have it.
func (c *checker) reportOnce(at subject, message, hint string, err error) {
	if !slices.ContainsFunc(c.found, func(p task.Problem) bool { return p.Message == message }) {
		at.report(message, hint, err)
	}
}

// checkListReads reports that the items of task i are of no list.
func (c *checker) checkListReads(i, k int, list *task.List) {
	if list.Index > 0 { // what is wrong for one item is wrong for each
		return
	}
	c.checkItemKey(i, k, list)
	if list.Input != "" {
		c.checkInputTerms(i, k, list)
		return
	}
	up, _ := c.plan.Graph.Index(task.ID(list.Task))
	of, at := c.plan.Graph.Task(up), c.task(i).at("forEach", k, "path")
	terms := c.team.Terms(of.Assignee, c.plan.Graph.Task(i).Assignee)
	switch s := c.plan.Schemas[up]; {
	case withholdsItems(terms, list, false):
		at.report(fmt.Sprintf("nothing in %s of the result of %q is delivered to %q, by the rules for the two", list.Path, of.Title, c.plan.Graph.Task(i).Assignee), "allow the path in a rule for the pair, or name another list", task.ErrInvalid)
	case s == nil:
		at.report(fmt.Sprintf("the result of %q has no outputSchema, so it has no list", of.Title), "give that task an outputSchema with an array at "+string(list.Path), task.ErrInvalid)
	case s.Has(pick.Tokens(list.Path)) != schema.Yes, s.Has(append(pick.Tokens(list.Path), "0")) == schema.No:
		near := nearestPath([]governed{{schema: s}}, list.Path, grants)
		at.report(fmt.Sprintf("the result of %q has no list at %s", of.Title, list.Path), cmp.Or(near.question(), "write the path of an array of its outputSchema"), task.ErrUnknown)
	}
}

// lacks reports whether a schema does not have the path of a comparison. A comparison of whether
// there is a value needs no schema that says so.
func lacks(s *schema.Schema, l *condition.Condition) bool {
	has := s.Has(pick.Tokens(task.Path(l.Path)))
	return l.Path != "" && (has == schema.No || has == schema.Maybe && l.Op != condition.Exists)
}

// pathHint says which path of a schema to write instead of one that it does not have.
func pathHint(s *schema.Schema, p task.Path) string {
	near, add := nearestPath([]governed{{schema: s}}, p, grants), `add it under "properties"`
	if near.meant == "" && len(near.known) > 0 {
		return near.hint() + ", or " + add
	}
	return cmp.Or(near.question(), add)
}

// boundedFor returns why a schema does not bound what a comparison tells, or nil. Whether there is a
// value tells little, whatever it is.
func boundedFor(s *schema.Schema, l *condition.Condition) error {
	path := task.Path(l.Path)
	if err := pick.CheckAllow(path); l.Op == condition.Exists && err == nil && s.Has(pick.Tokens(path)) != schema.No {
		return nil
	}
	return s.Bounded(path)
}

// comparisonAt returns the place of a key of a comparison of task i. A task that takes what others
// leave has none of its own.
func (c *checker) comparisonAt(i int, l *condition.Condition, key []any) subject {
	path, own := c.plan.Graph.Task(i).When.PathOf(l)
	if in := c.plan.Graph.Task(i).Instance; !own && in != nil && strings.HasSuffix(in.GuardAt, "/when") {
		if path, ofList := pathOfSame(in.When, l); ofList {
			return c.task(i).at("guard").at(append(path, key...)...)
		}
	}
	if !own {
		at, written := readingPlace(c.plan, i, l.Task)
		c.plan.Graph.Task(at).When.Leaves(func(of *condition.Condition) {
			if of.Task == l.Task && of.Path == l.Path { // the tasks of a loop have its condition
				path, own = c.plan.Graph.Task(at).When.PathOf(of)
			}
		})
		if i = at; !own {
			return c.task(at).at(written...)
		}
	}
	if c.specs[i].When.Op == condition.Else {
		return c.task(i).at("when")
	}
	return c.task(i).at("when").at(append(path, key...)...)
}

// pathOfSame returns the path of a comparison in the condition of a list, which has a copy of it.
func pathOfSame(when, l *condition.Condition) (path []any, ok bool) {
	when.Leaves(func(of *condition.Condition) {
		if !ok && of.Task == l.Task && of.String() == l.String() {
			path, ok = when.PathOf(of)
		}
	})
	return path, ok
}

// readingPlace returns which task of the plan, at which key, is the reason why task i reads a result
// without a dependency: its condition or one of its lists, or the condition or the end of a loop that
// it is in.
func readingPlace(p *Plan, i int, id string) (at int, key []any) {
	compares := func(t *task.Task) (found bool) {
		t.When.Leaves(func(l *condition.Condition) { found = found || l.Task == id })
		return found
	}
	if in := p.Graph.Task(i).Instance; in != nil && !compares(p.Graph.Task(i)) {
		if k := slices.IndexFunc(in.Lists, func(l *task.List) bool { return l.Task == id }); k >= 0 {
			return i, []any{"forEach", k, "path"}
		}
	}
	read, _ := p.Graph.Index(task.ID(id))
	for at = i; ; {
		t := p.Graph.Task(at)
		if of := p.Graph.Task(read).Instance; Joins(t) && of != nil && of.Loop == t.Title {
			if t.Instance.Quorum > 0 {
				return at, []any{"verify"}
			}
			return at, []any{"repeat", "until"}
		}
		if t.Instance == nil || t.Instance.Loop == "" || compares(t) {
			if t.Instance != nil && t.Instance.GuardAt != "" && !compares(t) {
				return at, []any{"guard"}
			}
			return at, []any{"when"}
		}
		at, _ = p.Graph.Index(task.NewID(t.Instance.Loop))
	}
}

// suggestValue returns a hint for a value that none of the known is, as canonical JSON.
func suggestValue(value string, known []string) string {
	if near, ok := naming.Nearest(value, known); ok {
		return "did you mean " + near + "?"
	}
	return "write one of " + strings.Join(known, ", ")
}

// checkObservers reports that the caller, or the coordinator, is not cleared for what decides
// whether a task runs: both see the status of each task.
func (c *checker) checkObservers(i int) {
	t, level := c.plan.Graph.Task(i), c.plan.Branches[i]
	if t.Reads == 0 && (t.Instance == nil || len(t.Instance.Lists) == 0) {
		return
	}
	refuse := func(who string, accepts label.Classification) {
		if at, hint, own := c.decidedAt(i, accepts); own {
			at.report(fmt.Sprintf("whether it runs is %v, and %s sees the status of tasks and may see %v", level, who, accepts), hint, task.ErrInvalid)
		}
	}
	if accepts := *c.options.UserAccepts; level > accepts {
		refuse("the caller", accepts)
	}
	if c.options.Answer == nil || c.team.Config.Coordinator == nil {
		return
	}
	if caps := c.team.Coordinator(&c.options); level > caps.Clearance() {
		refuse("the coordinator", caps.Clearance())
	}
}

// decidedAt returns the place of what task i itself reads that makes its status more sensitive than a
// level, and what to do; own is false if only the status of a task before it does.
func (c *checker) decidedAt(i int, level label.Classification) (at subject, hint string, own bool) {
	p, ups := c.plan, c.plan.Graph.Upstream(i)
	for _, part := range p.deliveries(nil, i) {
		if j := int(part.part.n); part.part.kind == handoff.Condition && part.Classification > level && p.Branches[ups[j]] <= level {
			return dependency(c, i, j), "declassify the value for this task, or raise the clearance", true
		}
	}
	if in := p.Graph.Task(i).Instance; inputListLabel(p, i) > level {
		k := slices.IndexFunc(in.Lists, func(l *task.List) bool { return l.Input != "" })
		return c.task(i).at("forEach", k, "input"), "raise the clearance", true
	}
	for j := len(ups) - Rereads(p.Graph.Task(i)); j < len(ups); j++ {
		if rereadLabel(p, i, j) > level && p.Branches[ups[j]] <= level {
			return dependency(c, i, j), "write onRepeat: continue, or raise the clearance", true
		}
	}
	return at, "", false
}
