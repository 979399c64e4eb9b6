package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/condition"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/task"
)

// ErrConditions marks a problem that depends on which tasks have conditions.
var ErrConditions = errors.New("it depends on the conditions of tasks")

// A value is one that conditions compare.
type value struct{ task, path string }

// valueOf returns the value that a condition compares, if it is one.
func valueOf(when *task.Condition) (at value, single bool) {
	if when == nil {
		return at, false
	}
	at.task, at.path, single = when.Value()
	return at, single
}

// A taskCase is a task whose condition may be a case of a value, or the tasks for the items of a list,
// which have a condition together.
type taskCase struct {
	when *task.Condition
	task int    // the first of them
	key  string // where the condition is written
	of   string // the same for all rounds and items of a task, or of the tasks for an item; empty outside of these
}

// casesOf returns the conditions of a task, and of the list of tasks that it is written in.
func casesOf(i int, t *task.Task) (cases []taskCase) {
	in := t.Instance
	if t.When != nil {
		one := taskCase{when: t.When, task: i, key: "when"}
		if in != nil {
			one.of = in.Pointer
		}
		cases = append(cases, one)
	}
	if in != nil && in.When != nil {
		cases = append(cases, taskCase{in.When, i, "guard", in.GuardAt})
	}
	return cases
}

// isAgain reports whether a condition is that of another round or item of a task that was met, and
// compares the same value: what a round compares of its own results is another value.
func (t taskCase) isAgain(met map[string]bool) bool {
	if t.of == "" {
		return false
	}
	of, path, _ := t.when.Value()
	key := t.of + " " + of + " " + path
	again := met[key]
	met[key] = true
	return again
}

// checkHolds reports a condition on one value that holds for none that a schema allows.
func (c *checker) checkHolds(at value, of taskCase) {
	up, _ := c.plan.Graph.Index(task.ID(at.task))
	domain := c.plan.Schemas[up].Domain(pick.Tokens(task.Path(at.path)))
	if slices.ContainsFunc(domain.Cases([]*condition.Condition{of.when}), func(one condition.Case) bool { return one.Meets(of.when) }) {
		return
	}
	about := c.task(of.task).at(of.key)
	from := fmt.Sprintf("%s of the result of %q", at.path, c.plan.Graph.Task(up).Title)
	if spec := c.specs[of.task].When; of.key == "when" && spec != nil && spec.Op == condition.Else {
		c.advise(about, "it never runs: other tasks take all values of "+from, "")
		return
	}
	about.report("its condition never holds: the outputSchema allows no such value for "+from, "correct the condition, or remove the task", task.ErrInvalid)
}

// checkCases reports values for which none of several tasks runs: somebody who wrote several
// cases meant all of them. A single condition may leave values.
func (c *checker) checkCases(at value, cases []taskCase) {
	if len(cases) < 2 || c.options.Replay.omitsTasks() {
		return
	}
	up, _ := c.plan.Graph.Index(task.ID(at.task))
	left := c.casesLeft(c.plan.Schemas[up], at, cases)
	if len(left) == 0 {
		return
	}
	c.task(cases[0].task).at(cases[0].key).report(
		fmt.Sprintf("no task runs if %s of the result of %q is %s", at.path, c.plan.Graph.Task(up).Title, strings.Join(left, " or ")),
		"give a task this case, or one with when: else", task.ErrInvalid)
}

// casesLeft returns the values in which none of several tasks runs.
func (c *checker) casesLeft(s *schema.Schema, at value, cases []taskCase) (names []string) {
	conditions := make([]*condition.Condition, len(cases))
	for k := range cases {
		conditions[k] = cases[k].when
	}
	domain := s.Domain(pick.Tokens(task.Path(at.path)))
	for _, one := range domain.Cases(conditions) {
		if !slices.ContainsFunc(conditions, one.Meets) && !slices.Contains(names, one.Name) {
			names = append(names, one.Name)
		}
	}
	return names
}

// checkAlternatives reports alternatives of which two may run: the dependent would get one of
// them only. Those whose conditions do not compare one and the same value are not compared, but none
// of them may run in any case.
func (c *checker) checkAlternatives(i int) {
	p, t := c.plan, c.plan.Graph.Task(i)
	if Joins(t) { // of its rounds, several may run
		return
	}
	for j := 0; j < len(t.DependsOn); j += max(len(t.DependsOn[j].OneOf), 1) {
		n := len(t.DependsOn[j].OneOf)
		if n == 0 {
			continue
		}
		tasks := make([]int, n)
		same, first := true, value{}
		for k, up := range p.Graph.Upstream(i)[j : j+n] {
			at, single := valueOf(p.Graph.Task(int(up)).When)
			same = same && single && (k == 0 || at == first)
			tasks[k], first = int(up), at
		}
		if same {
			c.checkExclusive(dependency(c, i, j), first, tasks)
		} else if k := slices.IndexFunc(tasks, func(up int) bool { return c.runsWith(up, t.Instance) }); k >= 0 && !c.options.Replay.omitsTasks() {
			dependency(c, i, j+k).report(fmt.Sprintf("%q runs in any case, and only one of the alternatives is granted", p.Graph.Task(tasks[k]).Title),
				"give it a condition such as when: else, or depend on each with optional: true", errors.Join(task.ErrInvalid, ErrConditions))
		}
	}
}

// A certainKey is a task, and the round and the item that its reader is in; nil outside of these.
type certainKey struct {
	task   int
	reader *task.Instance
}

// runsWith reports whether a task runs whenever the round and the item do that a reader is in: neither
// it nor a task that it needs has a condition of its own.
func (c *checker) runsWith(i int, reader *task.Instance) bool {
	key := certainKey{i, reader}
	if certain, known := c.certain[key]; known {
		return certain
	}
	t, ups := c.plan.Graph.Task(i), c.plan.Graph.Upstream(i)
	certain := t.When == nil && isUnguarded(t.Instance, reader)
	for j := 0; certain && j < len(ups)-t.Reads; j += max(len(t.DependsOn[j].OneOf), 1) {
		needed := ups[j : j+max(len(t.DependsOn[j].OneOf), 1)]
		certain = t.DependsOn[j].Optional || slices.ContainsFunc(needed, func(up int32) bool { return c.runsWith(int(up), reader) })
	}
	c.certain[key] = certain
	return certain
}

// isUnguarded reports whether a task needs no other round and no other item than a reader does.
func isUnguarded(in, reader *task.Instance) bool {
	switch {
	case in == nil || in.Guard == nil && len(in.Lists) == 0 && len(in.Again) == 0:
		return true
	case reader == nil || in.GuardAt != reader.GuardAt || in.Round != reader.Round || in.Loop != reader.Loop:
		return false
	}
	return slices.EqualFunc(in.Lists, reader.Lists, func(a, b *task.List) bool { return a.Pointer == b.Pointer && a.Task == b.Task && a.Index == b.Index })
}

// checkExclusive reports a case in which two of the tasks run.
func (c *checker) checkExclusive(at subject, of value, tasks []int) {
	up, _ := c.plan.Graph.Index(task.ID(of.task))
	domain := c.plan.Schemas[up].Domain(pick.Tokens(task.Path(of.path)))
	conditions := make([]*condition.Condition, len(tasks))
	for k, i := range tasks {
		conditions[k] = c.plan.Graph.Task(i).When
	}
	for _, one := range domain.Cases(conditions) {
		var both []string
		for k, when := range conditions {
			if one.Meets(when) {
				both = append(both, fmt.Sprintf("%q", c.plan.Graph.Task(tasks[k]).Title))
			}
		}
		if len(both) > 1 {
			at.report(fmt.Sprintf("%s run if %s is %s, and only one of them is granted", strings.Join(both, " and "), of.path, one.Name), "make their conditions exclude each other, or depend on each with optional: true", task.ErrInvalid)
			return
		}
	}
}
