package plan

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A rule whose path can name nothing has no effect, and a block without effect
// lets through what it was written to stop. So each path of the policy is compared
// with the schemas of what its producer makes.

// A governed value is one that a rule of the policy is about: a result, or an input or a
// message, which is known. Without a schema, it may contain anything.
type governed struct {
	schema *schema.Schema
	known  bool
}

// known returns the schema of the value that a text consists of, or nil unless it is an
// object or an array.
func known(text string) *schema.Schema {
	if len(text) > jsonvalue.MaxBytes {
		return nil
	}
	v, err := jsonvalue.FindValue(text)
	switch v.(type) {
	case map[string]any, []any:
		if err == nil {
			return schema.Of(v)
		}
	}
	return nil
}

// An answer says what the values of a schema can have of a path.
type answer func(*schema.Schema, task.Path) schema.Answer

// grants says whether an allow path can grant something.
func grants(s *schema.Schema, p task.Path) schema.Answer { return s.Has(pick.Tokens(p)) }

// checkPolicyPaths reports the paths of the policy at which no value that they
// govern can have anything, and warns of those that no schema names.
func (c *pathCheck) checkPolicyPaths() {
	policy := c.team.Config.Policy
	if policy == nil || c.options.Replay != nil { // a replay may leave out the tasks that a rule is about
		return
	}
	for i := range policy.Rules {
		r := &policy.Rules[i]
		at := pathPlace{subject: fmt.Sprintf("rule %s→%s", r.From, r.To), from: r.From, to: r.To}
		c.all(at, r.Block, (*schema.Schema).Blocks, "rules", i, "block")
		c.all(at, r.Allow, grants, "rules", i, "allow")
		if t := r.Translate; t != nil {
			c.all(at, t.Filter, (*schema.Schema).Blocks, "rules", i, "translate", "filter")
			c.all(at, t.Fields, grants, "rules", i, "translate", "fields")
		}
		for _, kind := range slices.Sorted(maps.Keys(r.Reveal)) {
			c.all(at, r.Reveal[kind], grants, "rules", i, "reveal", string(kind))
		}
	}
	for i := range policy.Declassify {
		d := &policy.Declassify[i]
		at := pathPlace{subject: fmt.Sprintf("%q", d.Name), from: d.From, to: d.To}
		c.all(at, d.Paths, grants, "declassify", i, "paths")
	}
}

// A pathPlace is the rule that has a path.
type pathPlace struct{ subject, from, to string }

// all checks a list of paths at a pointer below the policy.
func (c *pathCheck) all(at pathPlace, paths []task.Path, ask answer, tokens ...any) {
	for k, p := range paths {
		if p == task.Whole {
			continue
		}
		c.one(at, p, ask, naming.Pointer(slices.Concat([]any{"policy"}, tokens, []any{k})...))
	}
}

func (c *pathCheck) one(at pathPlace, p task.Path, ask answer, pointer string) {
	list := c.governs(at.from, at.to)
	if len(list) == 0 {
		return
	}
	best, values := schema.No, false
	for _, g := range list {
		if g.schema == nil {
			return // it may have anything
		}
		best, values = max(best, ask(g.schema, p)), values || g.known
	}
	near := nearestPath(list, p, ask)
	problem := task.Problem{Pointer: pointer, Subject: at.subject, Hint: near.question()}
	result, schemas, bounds := "result of "+produced(at.from), "outputSchema of "+produced(at.from), "the outputSchema of the producer allows"
	if f := c.team.Config.tool(at.to); f != nil {
		result, schemas = fmt.Sprintf("argument of tool %q", f.Name), fmt.Sprintf("schema of parameters of tool %q", f.Name)
		bounds = "the parameters of the tool allow"
	}
	switch {
	case best == schema.No && !values:
		problem.Message, problem.Err = fmt.Sprintf("no %s matches %q", result, string(p)), task.ErrUnknown
		problem.Hint = cmp.Or(near.hint(), "write a path that "+bounds)
		if c.impossible == nil {
			c.impossible = map[string]bool{}
		}
		c.impossible[pointer], c.impossible[string(p)] = true, true
		c.add(problem)
	case best == schema.No: // an input is one value of many: another one may have it
		problem.Message = fmt.Sprintf("no value matches %q", string(p))
		c.advice = append(c.advice, problem)
	case best == schema.Maybe:
		problem.Message = fmt.Sprintf("no %s names %q", schemas, string(p))
		if problem.Hint == "" {
			problem.Hint = `name it under "properties", or close the schema with "additionalProperties": false`
		}
		c.advice = append(c.advice, problem)
	}
}

// produced names a producer.
func produced(from string) string {
	if from == handoff.Anyone {
		return "any agent"
	}
	return fmt.Sprintf("%q", from)
}

// governs returns what a rule for a pair is about: what its producers make in
// this plan, or, of a goal that is not planned yet, what their agents make.
func (c *pathCheck) governs(from, to string) []governed {
	pair := [2]string{from, to}
	list, made := c.cache[pair]
	if made {
		return list
	}
	if f := c.team.Config.tool(to); f != nil {
		s := c.team.Parameters[f.Name]
		if isDeclared(f) {
			s = nil
		}
		return []governed{{schema: s}}
	}
	values := governedValues{seen: map[*schema.Schema]bool{}, accepts: *c.options.UserAccepts}
	matches := func(name, word string) bool { return word == handoff.Anyone || word == name }
	busy := map[int32]bool{}
	if c.plan != nil {
		for i, m := range c.plan.Members {
			if matches(c.team.Capabilities[m].Agent, from) {
				busy[m] = true
				values.add(c.plan.Schemas[i])
			}
		}
	}
	for m := range c.team.Capabilities {
		if name := c.team.Capabilities[m].Agent; matches(name, from) && !busy[int32(m)] && (c.plan == nil || name == from) {
			values.add(c.team.Schemas[m])
		}
	}
	if len(values.list) > 0 && (c.options.Bus != nil || c.options.Memory != nil) {
		values.add(nil) // what comes over these has no schema
	}
	for k := range c.options.Messages {
		if m := &c.options.Messages[k]; matches(m.From, from) {
			values.addKnown(func() *schema.Schema { return known(m.Text) }, m.Classification)
		}
	}
	for k := range c.options.Conversation {
		if matches(c.options.Conversation[k].From, from) {
			values.add(nil)
		}
	}
	if matches(handoff.User, from) {
		for i := range c.options.Inputs {
			if in := &c.options.Inputs[i]; c.reads(in.Name, to) {
				if c.hides(in) {
					c.adviseUnseen(in)
				}
				values.addKnown(in.schema, in.Classification)
			}
		}
	}
	if c.cache == nil {
		c.cache = map[[2]string][]governed{}
	}
	c.cache[pair] = values.list
	return values.list
}

// governedValues collects the values that rules for a pair are about.
type governedValues struct {
	list    []governed
	seen    map[*schema.Schema]bool
	accepts label.Classification // of the caller
}

// add adds the values of a schema; nil is any value.
func (g *governedValues) add(s *schema.Schema) {
	if !g.seen[s] {
		g.seen[s] = true
		g.list = append(g.list, governed{schema: s})
	}
}

// addKnown adds a value that is known, unless it is above the caller: what it contains must not
// show.
func (g *governedValues) addKnown(of func() *schema.Schema, level label.Classification) {
	if level <= g.accepts {
		if s := of(); s != nil {
			g.list = append(g.list, governed{s, true})
			return
		}
	}
	g.add(nil)
}

// reads reports whether a task of a reader uses an input; of a goal that is not
// planned yet, any may.
func (c *pathCheck) reads(input, to string) bool {
	if c.plan == nil {
		return true
	}
	for i := range c.plan.Graph.Len() {
		t := c.plan.Graph.Task(i)
		if to != handoff.Anyone && to != t.Assignee {
			continue
		}
		if slices.ContainsFunc(t.Uses, func(u task.Use) bool { return u.Name == input }) {
			return true
		}
	}
	return false
}

// A nearPath is what was most likely meant by a path that values do not have.
type nearPath struct {
	meant string   // the path with the nearest name; empty if none is near
	known []string // otherwise, the paths that values have in place of the first unknown one
}

// nearestPath returns what was most likely meant by a path.
func nearestPath(list []governed, p task.Path, ask answer) (near nearPath) {
	body, deep := strings.CutSuffix(string(p), "/**")
	prefix, anywhere := strings.CutPrefix(body, "/**/")
	if anywhere || !strings.HasPrefix(body, "/") {
		if name, ok := naming.Nearest(prefix, namesOf(list, (*schema.Schema).MemberNames)); ok {
			near.meant = body[:len(body)-len(prefix)] + escaped(name)
		}
		return near
	}
	tokens := pick.Tokens(p)
	for k := range tokens {
		upTo := task.Path(naming.Pointer(anyOf(tokens[:k+1])...))
		if slices.ContainsFunc(list, func(g governed) bool { return ask(g.schema, upTo) == schema.Yes }) {
			continue
		}
		names := namesOf(list, func(s *schema.Schema) []string { return s.Members(tokens[:k]) })
		name, ok := naming.Nearest(tokens[k], names)
		if !ok {
			for _, name := range names {
				near.known = append(near.known, naming.Pointer(anyOf(append(slices.Clone(tokens[:k]), name))...))
			}
			return near
		}
		tokens[k] = name
		if near.meant = naming.Pointer(anyOf(tokens)...); deep {
			near.meant += "/**"
		}
		return near
	}
	return near
}

// below returns the paths as they are written in what is at a path.
func (n nearPath) below(at task.Path) nearPath {
	n.meant = strings.TrimPrefix(n.meant, string(at))
	for k := range n.known {
		n.known[k] = strings.TrimPrefix(n.known[k], string(at))
	}
	return n
}

// question asks whether the nearest path was meant; empty if none is near.
func (n nearPath) question() string {
	if n.meant == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", n.meant)
}

// hint says which path to write; empty if that is not known.
func (n nearPath) hint() string {
	if n.meant == "" && len(n.known) > 0 {
		return "write one of " + naming.List(n.known)
	}
	return n.question()
}

// namesOf returns names of the values, each once.
func namesOf(list []governed, names func(*schema.Schema) []string) (all []string) {
	for _, g := range list {
		all = append(all, names(g.schema)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func anyOf(tokens []string) []any {
	out := make([]any, len(tokens))
	for i, t := range tokens {
		out[i] = t
	}
	return out
}

// escaped writes a name as a segment of a path.
func escaped(name string) string { return strings.TrimPrefix(naming.Pointer(name), "/") }
