package task

import (
	"github.com/runteam/runteam/internal/condition"
)

// A Condition says whether a task runs. It compares single values of structured results that
// have ended before the task could start. [Equals] and the functions beside it make conditions:
//
//	task.Spec{Title: "Refund", When: task.Equals("Triage", "/team", "billing"), …}
//
// The task is granted these values, and no prompt has them: whether the task runs tells its
// reader about them, so they pass the gate to its agent, and they are part of its label and of
// that of every task that depends on it. The outputSchema of the other task must bound them.
type Condition = condition.Condition

// Equals holds if the value at a path of the result of a task, such as /team, is a text, a
// number, true, false or nil. The task is named as in a [Ref]; the path is a JSON Pointer to one
// value. A value that the result does not have equals nothing.
func Equals(task string, path Path, value any) *Condition {
	return leaf(condition.Equals, task, path, value)
}

// In holds if the value is one of several; see [Equals].
func In(task string, path Path, values ...any) *Condition {
	return leaf(condition.In, task, path, values...)
}

// AtLeast holds if the value is a number and not less than n; see [Equals].
func AtLeast(task string, path Path, n float64) *Condition {
	return leaf(condition.AtLeast, task, path, n)
}

// AtMost holds if the value is a number and not more than n; see [Equals].
func AtMost(task string, path Path, n float64) *Condition {
	return leaf(condition.AtMost, task, path, n)
}

// Exists holds if the result has a value at the path, which may be null; see [Equals].
func Exists(task string, path Path) *Condition { return leaf(condition.Exists, task, path) }

// All holds if every condition does.
func All(of ...*Condition) *Condition { return combined(condition.All, of) }

// Any holds if one of the conditions does.
func Any(of ...*Condition) *Condition { return combined(condition.Any, of) }

// Not holds if the condition does not.
func Not(c *Condition) *Condition { return combined(condition.Not, []*Condition{c}) }

// Otherwise holds if the conditions of all other tasks that compare the same value do not. They
// must compare one and the same value of one task.
func Otherwise() *Condition { return &Condition{Op: condition.Else} }

// leaf returns a comparison. Values that JSON cannot have are reported when the task is resolved.
func leaf(op condition.Op, task string, path Path, values ...any) *Condition {
	c, err := condition.Leaf(op, task, string(path), values...)
	if err != nil {
		c.Values = append(c.Values, "")
	}
	return c
}

func combined(op condition.Op, of []*Condition) *Condition {
	c := &Condition{Op: op}
	for _, one := range of {
		if one != nil {
			c.Of = append(c.Of, *one)
		}
	}
	return c
}
