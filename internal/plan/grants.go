package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/listformat"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/task"
)

// What tasks need and rules allow is compared with what is known of the values before a
// run.

// A pathCheck compares the paths of tasks and of the policy with what is known of values
// before a run.
type pathCheck struct {
	*checker
	unseen  map[string]bool          // inputs above the caller that the caller was warned of
	cache   map[[2]string][]governed // by the pair of a rule
	checked map[grantKey]bool        // grants to and of instances
}

// A grantKey identifies what is checked alike for all instances of a task.
type grantKey struct {
	to, from string // where the tasks are written, or the name of an input
	need     string
}

// isChecked reports whether the same grant of another instance was checked. What is wrong with it is
// wrong with each, and is reported once.
func (c *pathCheck) isChecked(to, from *task.Task, input string, need []task.Path) bool {
	if to.Instance == nil && (from == nil || from.Instance == nil) {
		return false
	}
	key := grantKey{to: writtenAt(to), from: input, need: gate.PathsString(need)}
	if from != nil {
		key.from = writtenAt(from)
	}
	if c.checked == nil {
		c.checked = map[grantKey]bool{}
	}
	again := c.checked[key]
	c.checked[key] = true
	return again
}

// writtenAt identifies where a task is written.
func writtenAt(t *task.Task) string {
	if t.Instance != nil {
		return t.Instance.Pointer
	}
	return string(t.ID)
}

// checkGrants reports needs and reveals of task i that cannot be meant.
func (c *pathCheck) checkGrants(i int) {
	t := c.plan.Graph.Task(i)
	for j := range t.DependsOn {
		if !isRead(t, j) { // checkBranches says more of those
			c.checkDependencyGrant(i, j)
		}
	}
	for j := range t.Uses {
		c.checkInputGrant(i, j)
	}
	c.checkFilesGrants(i)
}

func (c *pathCheck) checkDependencyGrant(i, j int) {
	g, p := c.plan.Graph, c.plan
	d, up := &g.Task(i).DependsOn[j], int(g.Upstream(i)[j])
	if c.isChecked(g.Task(i), g.Task(up), "", d.Need) {
		return
	}
	grant := p.DependencyGrant(i, j, up)
	if d.Need == nil && grant.Terms == nil {
		return // the whole result is delivered, and no rule says otherwise
	}
	at := func() subject { return dependency(c.checker, i, j) } // most have no problem
	if c.contradicts(at, &grant, g.Task(up).Assignee, g.Task(i).Assignee, d.Need) {
		return
	}
	c.checkOpaque(i, j, up, &grant)
	if r := grant.Terms.Unendorsed(); r != nil {
		c.advise(at(), fmt.Sprintf("the result of %q will be withheld: %s", g.Task(up).Title, r.Reason), r.Hint)
	}
	in := content{schema: p.Schemas[up], what: fmt.Sprintf("the result of %q", g.Task(up).Title), shared: c.inherits(i, j)}
	if d.Item != "" {
		in = in.items(task.Path(d.Item[:strings.LastIndexByte(string(d.Item), '/')]))
	}
	if c.checkNeed(i, j, d.Need, &in) {
		c.checkPaths(at, &grant, d.Need, func() content { return in })
	}
}

func (c *pathCheck) checkInputGrant(i, j int) {
	t := c.plan.Graph.Task(i)
	u := &t.Uses[j]
	if c.isChecked(t, nil, u.Name, u.Need) {
		return
	}
	grant := c.plan.InputGrant(i, j)
	at := func() subject { return c.task(i).at("uses", j) }
	isEmpty := listOf(t, u) != nil && ListOf(c.plan, listOf(t, u)).Items == 0
	if !c.contradicts(at, &grant, handoff.User, t.Assignee, u.Need) && !isEmpty {
		c.checkPaths(at, &grant, u.Need, func() content {
			in := c.plan.Input(*u)
			known := contentOf(in)
			if l := listOf(t, u); l != nil && in.Folder == nil {
				known = known.items(l.Path)
			}
			if known.hidden = c.hides(in); known.hidden {
				c.adviseUnseen(in)
			}
			return known
		})
		if r := grant.Terms.Unendorsed(); r != nil {
			at().report(r.Reason, r.Hint, task.ErrInvalid)
		}
	}
	where := c.task(i).at("uses", j, "reveal")
	invalid := gate.CheckReveal(grant.Reveal)
	if len(invalid) == 0 && listOf(t, u) == nil {
		reveal := maps.Clone(grant.Reveal)
		if in := c.plan.Input(*u); !c.hides(in) {
			known := contentOf(in)
			for kind := range reveal { // checkPaths has said that nothing is at the others
				reveal[kind] = slices.DeleteFunc(slices.Clone(reveal[kind]), func(p task.Path) bool { return known.excludes(p) != "" })
			}
		}
		adviseReveals(where, reveal, grant.Terms, u.Need, false, &c.findings)
	}
	for _, r := range invalid {
		where := where
		where.pointer += strings.TrimSuffix(r.Pointer(), "/")
		where.report(r.Message, r.Hint, task.ErrInvalid)
	}
}

// contradicts reports a need that the terms of the pair do not allow.
func (c *pathCheck) contradicts(at func() subject, g *gate.Grant, from, to string, need []task.Path) bool {
	if need != nil && len(need) == 0 {
		at().report("an empty need grants nothing", "write paths, or leave need out for the whole", task.ErrInvalid)
		return true
	}
	if r := g.Terms.Contradiction(need); r != nil {
		at().report(fmt.Sprintf("%q to %q: %s", from, to, r.Reason), r.Hint, r)
		return true
	}
	_, err := g.Terms.Delivers(need)
	if err != nil {
		at().report(err.Error(), "", err)
	}
	return err != nil
}

// checkOpaque reports a result that is certain to be a text where only parts
// of a value may pass: it would be withheld.
func (c *pathCheck) checkOpaque(i, j, up int, grant *gate.Grant) {
	// A text may be one strict JSON value, so this is only a warning.
	s, _ := grant.Terms.Delivers(c.plan.Graph.Task(i).DependsOn[j].Need)
	if s.Whole() || grant.Terms.Mode() == handoff.Minimal || c.plan.Schemas[up] != nil {
		return
	}
	c.advise(dependency(c.checker, i, j), fmt.Sprintf("only parts of the result of %q may be delivered, and it has no outputSchema: a reply that is not one JSON value will be withheld", c.plan.Graph.Task(up).Title),
		"give that task an outputSchema")
}

// checkNeed reports the parts that a task needs of a result and that no such
// result can have. It returns false if it reported any. A needToKnow is for
// every dependency, so one of them that can have a part is enough.
func (c *pathCheck) checkNeed(i, j int, need []task.Path, in *content) bool {
	ok := true
	for k, p := range need {
		if in.excludes(p) == "" || in.schema.Has(pick.Tokens(p)) != schema.No {
			c.adviseUnnamed(i, j, k, p, in)
			continue
		}
		at, message := dependency(c.checker, i, j), fmt.Sprintf("%s can have nothing at %q", in.what, string(in.written(p)))
		if !isRead(c.plan.Graph.Task(i), j) {
			at = at.at("need", k)
		}
		about := []governed{{schema: in.schema}}
		if in.shared {
			about = about[:0]
			for _, up := range c.plan.Graph.Upstream(i) {
				about = append(about, governed{schema: c.plan.Schemas[up]})
			}
			if j > 0 || slices.ContainsFunc(about, func(g governed) bool { return grants(g.schema, p) != schema.No }) {
				continue // another one has it, or the first one has reported it
			}
			at, message = c.task(i).at("needToKnow", k), fmt.Sprintf("no result that it depends on matches %q", string(p))
		}
		at.report(message, cmp.Or(nearestPath(about, p, grants).below(in.item).hint(), "name members that it has"), task.ErrUnknown)
		ok = false
	}
	return ok
}

// adviseUnnamed warns that a task needs a part of a result that its schema allows but does not name, if
// another name is near.
func (c *pathCheck) adviseUnnamed(i, j, k int, p task.Path, in *content) {
	if in.shared || isRead(c.plan.Graph.Task(i), j) || in.schema.Has(pick.Tokens(p)) != schema.Maybe {
		return
	}
	if near := nearestPath([]governed{{schema: in.schema}}, p, grants).below(in.item); near.meant != "" {
		c.advise(dependency(c.checker, i, j).at("need", k), fmt.Sprintf("no outputSchema names %q of %s", string(in.written(p)), in.what), near.question())
	}
}

// inherits reports whether a dependency has its need from the task's needToKnow.
func (c *pathCheck) inherits(i, j int) bool {
	at, _ := written(&c.specs[i], j)
	deps := c.specs[i].DependsOn
	return at < len(deps) && deps[at].Need == nil
}

// ErrInputValue marks a problem that depends on the text of an input. A
// Coordinator must not see such a problem: by the flow table it reads no input.
var ErrInputValue = record.ErrInputValue

// content says what a value can contain, as far as that is known before a run.
type content struct {
	what   string
	schema *schema.Schema // nil for a text
	input  bool           // it is an input
	why    string         // why an input counts as a text, if it looks like something else
	hidden bool           // it is an input that the caller may not see: no problem may tell what is in it
	shared bool           // what is needed of it is needed of other results too
	item   task.Path      // the path of the items of a list, if it is one of them that is granted
	table  bool           // it is an input that is a table
}

// items returns what is known of the items of a list at a path.
func (s content) items(list task.Path) content {
	s.what, s.item = "an item of "+s.what, list+"/*"
	return s
}

// written returns a path as a task writes it.
func (s *content) written(p task.Path) task.Path {
	return task.Path(strings.TrimPrefix(string(p), string(s.item)))
}

// isText reports whether it is an input that is a text.
func (s *content) isText() bool { return s.input && s.schema == nil }

// contentOf is what is known of an input.
func contentOf(in *Input) content {
	s := content{what: fmt.Sprintf("input %q", in.Name), schema: in.schema(), input: in.Text != "", table: in.ListFormat == listformat.CSV}
	if _, body, _ := jsonvalue.Unfence(in.Text); s.isText() && (strings.HasPrefix(body, "{") || strings.HasPrefix(body, "[")) {
		if _, err := jsonvalue.Decode(body); err != nil {
			s.why = " (" + err.Error() + ")"
		}
	}
	return s
}

// hides reports whether an input is above the caller. What the check says is read by
// the caller, in the plan, events and results, and must not tell what is in such an input.
func (c *pathCheck) hides(in *Input) bool { return in.Classification > *c.options.UserAccepts }

// adviseUnseen says once that paths are not compared with an input above the caller.
func (c *pathCheck) adviseUnseen(in *Input) {
	if c.unseen[in.Name] {
		return
	}
	if c.unseen == nil {
		c.unseen = map[string]bool{}
	}
	c.unseen[in.Name] = true
	c.advise(c.about(fmt.Sprintf("input %q", in.Name), "inputs", in.Name), fmt.Sprintf("paths of tasks and rules are not compared with its members: it is %v, and the caller may see %v", in.Classification, *c.options.UserAccepts), "")
}

// nothingThere says that a value can have nothing at a path.
const nothingThere = "nothing can be there"

// excludes says why an allow path grants nothing of the value, or "": nothing can
// be there, or only an object or a list, which needs a path of its own.
func (s *content) excludes(p task.Path) string {
	tokens := pick.Tokens(p)
	switch {
	case s.schema.Has(tokens) == schema.No:
		return nothingThere
	case p != task.Whole && !strings.HasSuffix(string(p), "/**") && s.schema.Has(append(tokens, "*")) == schema.Yes:
		return fmt.Sprintf("an object or a list is there, which %s/** grants", p)
	}
	return ""
}

// checkPaths reports grants that match nothing in the value, and warns about single
// paths of need and reveal that match nothing.
func (c *pathCheck) checkPaths(at func() subject, g *gate.Grant, need []task.Path, what func() content) {
	s, _ := g.Terms.Delivers(need)
	if g.Terms.Mode() == handoff.Minimal || s.Whole() && len(g.Reveal) == 0 {
		return
	}
	in := what()
	marked := func(err error) error {
		if in.input {
			return errors.Join(err, ErrInputValue)
		}
		return err
	}
	lists, _ := s.Paths()
	if in.hidden && !s.Whole() {
		nothing := func(list []task.Path) bool {
			return len(list) > 0 && !slices.ContainsFunc(list, func(p task.Path) bool { return in.excludes(p) == "" })
		}
		if in.isText() || slices.ContainsFunc(lists, nothing) {
			at().report(fmt.Sprintf("nothing of %s can be delivered by %s", in.what, s.String()), "name members that it has, or grant it whole if it is a text", marked(task.ErrUnknown))
		}
		return
	}
	if in.isText() && !s.Whole() {
		at().report(fmt.Sprintf("%s is a text, which is delivered whole or not at all, and only parts may be: %s%s", in.what, s.String(), in.why), "remove need or the rule, or give it as one JSON object or list", marked(task.ErrInvalid))
		return
	}
	for _, list := range lists {
		if len(list) > 0 && !slices.ContainsFunc(list, func(p task.Path) bool { return c.impossible[string(p)] || in.excludes(p) == "" }) {
			at, message := at(), ""
			if slices.Equal(list, need) && !in.shared {
				at, message = at.at("need", 0), in.lacks(need)
			} else {
				_, line := g.Terms.Stated()
				message = fmt.Sprintf("nothing of %s can be delivered by %s, by the rule at %s: %s", in.what, gate.PathsString(list), line, in.excludes(list[0]))
			}
			at.report(message, cmp.Or(in.nearest(list[0]), "name members that it has"), marked(task.ErrUnknown))
			return
		}
	}
	if !in.hidden {
		c.adviseVain(at(), g, need, lists, &in)
	}
}

// adviseVain warns of single paths that a task needs, or a rule allows or reveals, and
// that name nothing.
func (c *pathCheck) adviseVain(at subject, g *gate.Grant, need []task.Path, lists [][]task.Path, in *content) {
	warn := func(at subject, p task.Path, why string) {
		if no := in.excludes(p); no != "" {
			c.advise(at, fmt.Sprintf("%s %s of %s: %s", why, in.written(p), in.what, no), in.nearest(p))
		}
	}
	for k, p := range need {
		if !in.shared && (g.Item == "" || !slices.Contains(need, p+"/**")) { // an item is granted as what it is
			warn(at.at("need", k), p, "need")
		}
	}
	if rule, line := g.Terms.Stated(); rule != "" {
		for _, list := range lists {
			for _, p := range list {
				if !slices.Contains(need, p) {
					warn(at, p, "allow ("+cmp.Or(line, string(rule))+")")
				}
			}
		}
	}
	for _, kind := range slices.Sorted(maps.Keys(g.Reveal)) {
		for _, p := range g.Reveal[kind] {
			warn(at, p, "reveal "+string(kind)+" at")
		}
	}
}

// lacks says that a value has none of the paths that a task needs.
func (s *content) lacks(need []task.Path) string {
	paths := make([]task.Path, len(need))
	for k, p := range need {
		paths[k] = s.written(p)
	}
	by, why := gate.PathsString(paths), s.excludes(need[0])
	switch {
	case why != nothingThere:
		return fmt.Sprintf("nothing of %s can be delivered by %s: %s", s.what, by, why)
	case s.item != "":
		return "no " + strings.TrimPrefix(s.what, "an ") + " has " + by
	}
	return s.what + " has no " + by
}

// nearest is a hint that says which path was most likely meant, and which columns a table has; or "".
func (s *content) nearest(p task.Path) string {
	if s.schema == nil {
		return ""
	}
	near := nearestPath([]governed{{schema: s.schema}}, p, grants).below(s.item)
	if !s.table {
		return near.hint()
	}
	return columnHint(near.question(), s.schema.Members([]string{"*"}))
}

// columnHint says which columns a table has, after a question whether one of them was meant.
func columnHint(question string, columns []string) string {
	list := naming.List(columns)
	if question != "" {
		return question + " the columns are " + list
	}
	return "the columns by line 1 are " + list + "; if that is no header, add one"
}
