package plan

import (
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Whether a task runs tells what decided it. So the label of what its condition reads is part of
// its own label, and of that of each task that depends on it, in whichever way.

// BranchLabels are the labels of what decides whether each task runs, at most; nil if all tasks
// run.
type BranchLabels []label.Classification

// Of returns the label of what decides whether task i runs.
func (b BranchLabels) Of(i int) label.Classification {
	if b == nil {
		return label.Public
	}
	return b[i]
}

// isRead reports whether dependency j of a task is only read by its condition.
func isRead(t *task.Task, j int) bool { return j >= len(t.DependsOn)-t.Reads }

// MayBeLeftOut reports whether a task has a condition, or waits for one of several tasks, as the count of
// judges does.
func MayBeLeftOut(t *task.Task) bool {
	return t.Reads > 0 || Joins(t) || t.CountsJudges() || t.Instance != nil && len(t.Instance.Lists) > 0 ||
		slices.ContainsFunc(t.DependsOn, func(d task.Ref) bool { return len(d.OneOf) > 0 || d.Each != "" })
}

// ConditionText returns the condition of a task as people read it, with titles; empty without one.
func ConditionText(p *Plan, i int) string {
	return conditionText(p, ownCondition(p.Graph.Task(i)), func(t *task.Task) string { return t.Title })
}

// ownCondition returns the condition of a task, with that of the list of tasks that it is written in.
func ownCondition(t *task.Task) *task.Condition {
	switch {
	case t.Instance == nil || t.Instance.When == nil:
		return t.When
	case t.When == nil:
		return t.Instance.When
	}
	return task.All(t.Instance.When, t.When)
}

// conditionText returns a condition as people read it.
func conditionText(p *Plan, when *task.Condition, title func(t *task.Task) string) string {
	if when == nil {
		return ""
	}
	when = when.Clone()
	when.Leaves(func(c *task.Condition) {
		up, _ := p.Graph.Index(task.ID(c.Task))
		c.Task = title(p.Graph.Task(up))
	})
	return when.String()
}

// alternatives returns the tasks of which a dependency is one; nil if it is no alternative.
func alternatives(d *task.Ref) (ids []task.ID) {
	for _, id := range d.OneOf {
		ids = append(ids, task.ID(id))
	}
	return ids
}

// propagateBranch computes the branch label of a task from its dependencies.
func (c *labelCheck) propagateBranch(i int, parts []delivery) label.Classification {
	p := c.plan
	if p.Branches == nil {
		if !MayBeLeftOut(p.Graph.Task(i)) {
			return label.Public
		}
		p.Branches = slices.Repeat(BranchLabels{label.Public}, p.Graph.Len())
	}
	level := label.Public
	for k := range parts {
		if parts[k].part.kind == handoff.Condition {
			level = level.Join(parts[k].Classification)
		}
	}
	level = level.Join(inputListLabel(p, i))
	for j, up := range p.Graph.Upstream(i) {
		level = level.Join(p.Branches[up])
		if isReread(p.Graph.Task(i), j) {
			level = level.Join(rereadLabel(p, i, j))
		}
	}
	p.Branches[i] = level
	return level
}

// branchRaiser returns what gave a task its label: by, or the dependency that may not be needed.
func (c *labelCheck) branchRaiser(i int, by partOf) partOf {
	p := c.plan
	if by.kind != "" || p.Branches == nil || p.Branches[i] != p.Labels[i] || p.Labels[i] == p.Graph.Task(i).Classification {
		return by
	}
	for j, up := range p.Graph.Upstream(i) {
		if p.Branches[up] == p.Labels[i] || isReread(p.Graph.Task(i), j) && rereadLabel(p, i, j) == p.Labels[i] {
			return partOf{handoff.Dependency, int32(j)}
		}
	}
	return by
}

// dependency returns the place where dependency j of task i is written: what reads the result, or
// a reference, which may name alternatives.
func dependency(c *checker, i, j int) subject {
	if isReread(c.plan.Graph.Task(i), j) {
		return repeatPlace(c, i, j)
	}
	if isRead(c.plan.Graph.Task(i), j) {
		at, key := readingPlace(c.plan, i, c.plan.Graph.Task(i).DependsOn[j].Task)
		return c.task(at).at(key...)
	}
	at, one := written(&c.specs[i], j)
	if one < 0 {
		return c.task(i).at("dependsOn", at)
	}
	return c.task(i).at("dependsOn", at, "oneOf", one)
}

// written returns which reference dependency j of a task is, and which of its alternatives, or -1.
func written(s *task.Spec, j int) (at, one int) {
	for at, d := range s.DependsOn {
		switch n := len(d.OneOf); {
		case n == 0 && j == 0:
			return at, -1
		case j < n:
			return at, j
		default:
			j -= max(n, 1)
		}
	}
	return len(s.DependsOn), -1
}
