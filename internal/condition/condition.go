// Package condition says whether the condition of a task holds, and which values a set of
// conditions leaves without a task.
package condition

import (
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/jsonvalue"
)

// An Op is what a condition does.
type Op string

// The operators. The first five compare one value of a result, and the others combine conditions.
const (
	Equals  Op = "equals"
	In      Op = "in"
	AtLeast Op = "gte"
	AtMost  Op = "lte"
	Exists  Op = "exists"

	All  Op = "all"
	Any  Op = "any"
	Not  Op = "not"
	Else Op = "else" // the values that the conditions of the other tasks leave
)

// A Condition compares a value of a structured result, or combines conditions.
type Condition struct {
	Op     Op
	Task   string      // whose result it reads: a title, a key or an ID
	Path   string      // of the value in it, a JSON Pointer
	Values []string    // that it compares with, as canonical JSON; one, or any number for In, or none for Exists
	Of     []Condition // one for Not, any number for All and Any
}

// IsLeaf reports whether a condition compares a value.
func (c *Condition) IsLeaf() bool {
	switch c.Op {
	case Equals, In, AtLeast, AtMost, Exists:
		return true
	}
	return false
}

// Leaf returns a condition that compares a value with others.
func Leaf(op Op, task, path string, values ...any) (*Condition, error) {
	c := &Condition{Op: op, Task: task, Path: path}
	for _, v := range values {
		text, err := canonical(v)
		if err != nil {
			return c, fmt.Errorf("%v is no value of JSON: %w", v, err)
		}
		c.Values = append(c.Values, text)
	}
	return c, nil
}

// Leaves calls visit for each comparison, and may change it.
func (c *Condition) Leaves(visit func(*Condition)) {
	if c == nil {
		return
	}
	if c.IsLeaf() {
		visit(c)
	}
	for i := range c.Of {
		c.Of[i].Leaves(visit)
	}
}

// PathOf returns the way to one of the comparisons, as [Condition.Check] does, and false if there
// is no such comparison.
func (c *Condition) PathOf(leaf *Condition) (path []any, ok bool) {
	if c == leaf {
		return nil, true
	}
	if c == nil {
		return nil, false
	}
	for i := range c.Of {
		if path, ok := c.Of[i].PathOf(leaf); ok {
			return append([]any{string(c.Op), i}, path...), true
		}
	}
	return nil, false
}

// Clone returns a copy that shares nothing.
func (c *Condition) Clone() *Condition {
	if c == nil {
		return nil
	}
	own := *c
	own.Values, own.Of = slices.Clone(c.Values), slices.Clone(c.Of)
	for i := range own.Of {
		own.Of[i] = *own.Of[i].Clone()
	}
	return &own
}

// Holds evaluates a condition. read returns the value at the path of a comparison as canonical
// JSON, and "" if the result has none. A value of another type is unlike any other, and neither
// more nor less.
func (c *Condition) Holds(read func(c *Condition) string) bool {
	holds := func(of *Condition) bool { return of.Holds(read) }
	switch c.Op {
	case All:
		return !slices.ContainsFunc(c.Of, func(of Condition) bool { return !holds(&of) })
	case Any:
		return slices.ContainsFunc(c.Of, func(of Condition) bool { return holds(&of) })
	case Not:
		return !holds(&c.Of[0])
	}
	return c.compare(read(c))
}

// compare evaluates a comparison with a value.
func (c *Condition) compare(value string) bool {
	if value == "" {
		return false
	}
	switch c.Op {
	case Exists:
		return true
	case Equals, In:
		return slices.Contains(c.Values, value)
	case AtLeast, AtMost:
		a, ok := number(value)
		b, okay := number(c.Values[0])
		return ok && okay && (a.Cmp(b) >= 0 && c.Op == AtLeast || a.Cmp(b) <= 0 && c.Op == AtMost)
	}
	return false
}

// canonical returns a value as canonical JSON.
func canonical(v any) (string, error) {
	raw, err := marshal(v)
	if err != nil {
		return "", err
	}
	value, err := jsonvalue.Parse(raw)
	return value.Canonical(), err
}

// number returns a number of canonical JSON. Integers that no float represents are texts there.
func number(canonical string) (*big.Rat, bool) {
	text, quoted := strings.CutPrefix(canonical, `"`)
	x, ok := new(big.Rat).SetString(strings.TrimSuffix(text, `"`))
	if !ok || quoted && (!x.IsInt() || x.Num().BitLen() <= 53) {
		return nil, false
	}
	return x, true
}

// Check says what is wrong with a condition itself, or nil. The path leads to the part of it.
func (c *Condition) Check() (path []any, err error) {
	n := len(c.Values)
	switch c.Op {
	case Equals, AtLeast, AtMost, Exists, In:
		if c.Path == "" || strings.Contains(c.Path+"/", "/*/") || strings.Contains(c.Path+"/", "/**/") || c.Path[0] != '/' {
			return []any{"path"}, errors.New("write the path of one value, such as /team")
		}
		if err := c.checkValues(n); err != nil {
			return []any{string(c.Op)}, err
		}
		return nil, nil
	case All, Any:
		if len(c.Of) == 0 {
			return nil, fmt.Errorf("%s has no conditions", c.Op)
		}
	case Not:
		if len(c.Of) != 1 {
			return nil, fmt.Errorf("not has %d conditions: write one", len(c.Of))
		}
	case Else:
		return nil, nil
	default:
		return nil, fmt.Errorf("unknown operator %q", string(c.Op))
	}
	for i := range c.Of {
		if c.Of[i].Op == Else {
			return []any{string(c.Op), i}, errors.New("else is the whole condition of a task")
		}
		if path, err := c.Of[i].Check(); err != nil {
			return append([]any{string(c.Op), i}, path...), err
		}
	}
	return nil, nil
}

// checkValues says what is wrong with the values of a comparison.
func (c *Condition) checkValues(n int) error {
	switch {
	case c.Op == Exists && n > 0, c.Op == Equals && n != 1, (c.Op == AtLeast || c.Op == AtMost) && n != 1:
		return fmt.Errorf("%s has %d values", c.Op, n)
	case c.Op == In && n == 0:
		return errors.New("in has no values: write those of the case")
	}
	for _, v := range c.Values {
		if v == "" || v[0] == '{' || v[0] == '[' {
			return fmt.Errorf("%s compares texts, numbers, true, false and null", c.Op)
		}
		if _, ok := number(v); (c.Op == AtLeast || c.Op == AtMost) && (!ok || v[0] == '"') {
			return fmt.Errorf("%s compares numbers, and %s is none", c.Op, v)
		}
	}
	return nil
}

// Value returns the value that a condition compares; ok is false if it compares several.
func (c *Condition) Value() (task, path string, ok bool) {
	ok = true
	c.Leaves(func(l *Condition) {
		ok = ok && (path == "" || l.Task == task && l.Path == path)
		task, path = l.Task, l.Path
	})
	return task, path, ok && path != ""
}

// String returns a condition as people read it, such as `/team of "Route" is "billing"`.
func (c *Condition) String() string {
	if c.IsLeaf() {
		return fmt.Sprintf("%s of %q %s", c.Path, c.Task, c.words())
	}
	parts := make([]string, len(c.Of))
	for i := range c.Of {
		if parts[i] = c.Of[i].String(); !c.Of[i].IsLeaf() && len(c.Of[i].Of) > 1 {
			parts[i] = "(" + parts[i] + ")"
		}
	}
	switch c.Op {
	case All:
		return strings.Join(parts, " and ")
	case Any:
		return strings.Join(parts, " or ")
	case Not:
		if values := c.Of[0].values(); len(values) > 0 {
			task, path, _ := c.Value()
			return fmt.Sprintf("%s of %q is not %s", path, task, strings.Join(values, " or "))
		}
		return "not " + strings.Join(parts, "")
	}
	return string(c.Op)
}

// values returns the values of which a condition says that one value is one of them, and nil if it
// says something else.
func (c *Condition) values() (all []string) {
	switch c.Op {
	case Equals, In:
		return c.Values
	case Any:
		if _, _, ok := c.Value(); !ok {
			return nil
		}
		for i := range c.Of {
			values := c.Of[i].values()
			if values == nil {
				return nil
			}
			all = append(all, values...)
		}
	}
	return all
}

// words returns the comparison without what it reads.
func (c *Condition) words() string {
	switch c.Op {
	case Exists:
		return "exists"
	case AtLeast:
		return "is at least " + c.Values[0]
	case AtMost:
		return "is at most " + c.Values[0]
	}
	return "is " + strings.Join(c.Values, " or ")
}
