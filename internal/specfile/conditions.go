package specfile

import (
	"encoding/json"
	"slices"
	"strconv"

	"github.com/runteam/runteam/internal/condition"
	"github.com/runteam/runteam/task"
)

// whenElse is the condition that takes the values which other tasks leave.
const whenElse = string(condition.Else)

// conditionHint is the hint for a value that is no condition, and whenHint where it may also be else.
const (
	conditionHint = "write {task: Triage, path: /team, equals: billing}, or a list of conditions that must all hold"
	whenHint      = "write {task: Triage, path: /team, equals: billing}, a list of conditions that must all hold, or else"
)

// comparisons are the keys of a condition that compare a value.
var comparisons = []string{"equals", "in", "gte", "lte", "exists"}

// A conditionPlace is where a condition is written, and its parts in the order of those of the
// condition.
type conditionPlace struct {
	n  *node
	of []conditionPlace
}

// find returns the value that a pointer from the condition names.
func (c conditionPlace) find(parts []string) (*node, *source, int) {
	for len(parts) > 1 {
		i, err := strconv.Atoi(parts[1])
		if err != nil || i < 0 || i >= len(c.of) {
			break
		}
		c, parts = c.of[i], parts[2:]
	}
	n, src, at := walk(c.n, parts)
	return n, src, at
}

// A conditionReader reads the condition of a task or a loop.
type conditionReader struct {
	*report
	key string // under which it is written
}

// condition reads a condition: a mapping, a list of conditions that hold together, or else. It is
// nil if something is wrong with it.
func (r conditionReader) condition(n *node) (*task.Condition, conditionPlace) {
	if n == nil {
		return nil, conditionPlace{}
	}
	before := r.problems
	c, at := r.read(n)
	if r.problems > before {
		return nil, at
	}
	return &c, at
}

func (r conditionReader) read(n *node) (task.Condition, conditionPlace) {
	switch n.is {
	case isText:
		return *task.Otherwise(), conditionPlace{n: n}
	case isList:
		return r.combined(condition.All, n)
	}
	f := r.fields(n, "condition", nil)
	all, places := r.comparisons(f)
	compares := len(all) > 0
	if of := f.own("any"); of != nil {
		c, at := r.combined(condition.Any, of)
		all, places = append(all, c), append(places, at)
	}
	if of := f.own("not"); of != nil {
		c, at := r.read(of)
		all, places = append(all, *task.Not(&c)), append(places, conditionPlace{of, []conditionPlace{at}})
	}
	r.checkKeys(f, compares)
	if len(all) == 1 {
		return all[0], places[0]
	}
	return task.Condition{Op: condition.All, Of: all}, conditionPlace{n, places}
}

// combined reads a list of conditions.
func (r conditionReader) combined(op condition.Op, n *node) (task.Condition, conditionPlace) {
	c, place := task.Condition{Op: op}, conditionPlace{n: n}
	for _, item := range n.parts() {
		one, at := r.read(item)
		c.Of, place.of = append(c.Of, one), append(place.of, at)
	}
	return c, place
}

// comparisons reads the comparisons of a mapping.
func (r conditionReader) comparisons(f *fields) (all []task.Condition, places []conditionPlace) {
	from, path := text(f.own("task")), text(f.own("path"))
	for i, op := range [...]condition.Op{condition.Equals, condition.In, condition.AtLeast, condition.AtMost, condition.Exists} {
		n := f.own(comparisons[i])
		if n == nil {
			continue
		}
		c, err := condition.Leaf(op, from, path, valuesOf(n, op)...)
		if err != nil {
			r.bad(n, "", "%s: %v", n.key, err)
		}
		place := conditionPlace{n: f.node}
		if op == condition.Exists && n.text == "false" {
			c, place = task.Not(c), conditionPlace{f.node, []conditionPlace{place}}
		}
		all, places = append(all, *c), append(places, place)
	}
	return all, places
}

// valuesOf returns what a comparison compares with.
func valuesOf(n *node, op condition.Op) []any {
	switch op {
	case condition.Exists:
		return nil
	case condition.In:
		values := make([]any, n.len())
		for i, item := range n.parts() {
			values[i] = valueOf(item)
		}
		return values
	}
	return []any{valueOf(n)}
}

func valueOf(n *node) any {
	switch n.is {
	case isText:
		return n.text
	case isBool:
		return n.text == "true"
	case isNumber:
		return numberOf(n)
	}
	return nil
}

// checkKeys reports a mapping that compares nothing, or of which the keys do not say what it
// compares.
func (r conditionReader) checkKeys(f *fields, compares bool) {
	if f == nil {
		return
	}
	written := func(key string) bool { return f.node.writes(key, "condition") }
	if !compares && slices.ContainsFunc(f.node.kids, func(n node) bool { _, known := f.place.index[n.key]; return !known }) {
		return // an unknown key, which is reported, is what compares
	}
	asks := compares || slices.ContainsFunc(comparisons, written)
	for _, key := range [...]string{"task", "path"} {
		switch has := written(key); {
		case asks && !has:
			r.bad(f.node, "write "+key+": "+exampleOf(f.place, key), "%s: %s: it is missing", r.key, key)
		case has && !asks:
			r.bad(f.node, "write equals, in, gte, lte or exists", "%s: the condition compares nothing", r.key)
			return
		}
	}
	if !asks && !written("any") && !written("not") {
		r.bad(f.node, "write equals, in, gte, lte or exists", "%s: the condition compares nothing", r.key)
	}
}

// checkWhen reports a text other than else, and what is no condition.
func checkWhen(r *report, key string, n *node) {
	if n.is == isText && n.text != whenElse {
		r.bad(n, whenHint, "%s: unknown word %s", key, quote(n.text))
	}
	checkConditions(r, key, n)
}

// checkConditions reports an empty list, and items that are no conditions.
func checkConditions(r *report, key string, n *node) {
	if n.is != isList {
		return
	}
	checkNotEmpty(r, key, n)
	for i, item := range n.parts() {
		switch {
		case item.is == isText && item.text == whenElse:
			r.bad(item, "write else in place of the whole condition of a task", "%s[%d]: else beside other conditions", key, i)
		case item.is != isObject && item.is != isList:
			r.bad(item, "write {task: Triage, path: /team, equals: billing}", "%s[%d]: %s where a condition belongs", key, i, item.describe())
		}
		checkConditions(r, key, item)
	}
}

// isComparable reports whether a value is one that conditions compare with.
func isComparable(n *node) bool {
	_, number := n.float()
	return n.is == isText || n.is == isBool || n.is == isNull || number
}

// checkValues reports an empty list, and items that conditions do not compare with.
func checkValues(r *report, key string, n *node) {
	checkNotEmpty(r, key, n)
	for i, item := range n.parts() {
		if !isComparable(item) {
			r.bad(item, "write texts, numbers, true, false and null", "%s[%d]: %s where a value belongs", key, i, item.describe())
		}
	}
}

// checkAlternatives reports a list of fewer than two names.
func checkAlternatives(r *report, key string, n *node) {
	if !r.passes(checkNotEmpty, key, n) || !r.passes(checkTexts, key, n) {
		return
	}
	if n.len() == 1 {
		r.bad(n, "write task: "+quote(n.kids[0].text), "%s: there is one alternative", key)
	}
}

// comparable is the JSON Schema of a value that conditions compare with.
var comparable = object{{"type", []any{"string", "number", "boolean", "null"}}}

// nestedCondition is the JSON Schema of a condition but else.
var nestedCondition = anyOf(ref("condition"), filledListOf(ref("condition/properties/not")))

// conditionRules are what the JSON Schema of a condition says about its keys together.
func conditionRules() object {
	both, compares := object{}, []object{}
	for _, key := range comparisons {
		both = append(both, member{key, []string{"task", "path"}})
		compares = append(compares, required(key))
	}
	one := anyOf(compares...)
	return object{
		{"dependentRequired", both}, {"dependentSchemas", object{{"task", one}, {"path", one}}},
		{"anyOf", append(slices.Clone(compares), required("any"), required("not"))},
	}
}

// conditionNode writes a condition.
func conditionNode(c *task.Condition) (*node, error) {
	if c == nil {
		return nil, nil
	}
	if _, err := c.Check(); err != nil {
		return nil, err
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return nil, err
	}
	n, _, err := parseJSON(newSource("", "", string(raw)))
	return n, err
}
