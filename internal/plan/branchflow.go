package plan

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// addBranches adds what decides which tasks run: a source for each value that conditions compare,
// which the tasks whose conditions compare it, everything that follows from them, the user and
// the answer of the coordinator learn. The parts of the result that it is taken from reach them too.
func (b *flowBuilder) addBranches(answer int) {
	p := b.plan
	if p.Branches == nil {
		return
	}
	var order []branchKey
	all, first := map[branchKey]*branchFlow{}, map[string]int{}
	for i := range p.Graph.Len() {
		for j, up := range p.Graph.Upstream(i) {
			if !isRead(p.Graph.Task(i), j) || isReread(p.Graph.Task(i), j) {
				continue
			}
			_, paths := p.grantOf(i, &delivery{part: partOf{handoff.Condition, int32(j)}})
			key := branchKey{b.branchName(int(up), paths), int(up)}
			if in := p.Graph.Task(int(up)).Instance; in != nil { // its rounds become one
				if _, known := first[in.Pointer]; !known {
					first[in.Pointer] = int(up)
				}
				key.up = first[in.Pointer]
			}
			if all[key] == nil {
				all[key], order = &branchFlow{source: b.results + key.up, from: p.Graph.Task(key.up).Assignee, task: key.up, paths: paths, label: label.Public}, append(order, key)
			}
			f := all[key]
			f.tasks, f.label = append(f.tasks, int32(i)), f.label.Join(p.Branches[i])
		}
		if in := p.Graph.Task(i).Instance; in != nil && !in.Joins {
			for _, l := range in.Lists {
				if l.Input == "" {
					continue
				}
				input := p.InputIndex[strings.ToLower(l.Input)]
				key := branchKey{"items of " + listsText(p, []*task.List{l}), -1 - input}
				if all[key] == nil {
					all[key], order = &branchFlow{source: input, from: handoff.User, task: -1, paths: itemPaths(l), label: label.Public}, append(order, key)
				}
				all[key].tasks, all[key].label = append(all[key].tasks, int32(i)), all[key].label.Join(inputListLabel(p, i))
			}
		}
	}
	for _, key := range order {
		b.addBranch(key.name, all[key], answer)
	}
	addRepeats(b, answer)
}

// A branchKey identifies what conditions compare of one result: in two loops, tasks with one title
// may have it.
type branchKey struct {
	name string
	up   int // of a list in an input, below zero
}

// A branchFlow is what conditions compare of one result, or how many items an input has, and the
// tasks which that decides about.
type branchFlow struct {
	source int    // that it is taken from
	from   string // who makes that
	task   int    // whose result that is; -1 for an input
	paths  []task.Path
	tasks  []int32
	label  label.Classification

	learners []int32 // tasks that learn it without having compared it
}

// addBranch adds one source, and who learns it from which tasks run: answer is the turn in which
// the coordinator answers, or -1.
func (b *flowBuilder) addBranch(name string, f *branchFlow, answer int) {
	p, g, source := b.plan, &b.graph, len(b.graph.Sources)
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.Condition, Name: name, From: f.from, Task: f.task, Label: f.label})
	parts := f.compared()
	g.Sights = append(g.Sights,
		flow.Sight{Source: source, Reader: b.user, Delivers: pick.Everything(), Rule: gate.RuleWhen},
		flow.Sight{Source: f.source, Reader: b.user, Delivers: parts, Rule: gate.RuleWhen})
	learns := func(at int) {
		g.Edges = append(g.Edges, flow.Edge{Source: f.source, Task: at, Delivers: parts, Rule: gate.RuleWhen, Structured: true})
	}
	if answer >= 0 {
		b.wholeEdge(source, answer, gate.RuleWhen)
		learns(answer)
	}
	own := make([]bool, p.Graph.Len())
	for _, i := range f.tasks {
		own[i] = true
	}
	follow := p.followers(slices.Concat(f.tasks, f.learners)...)
	for _, i := range f.learners {
		follow[i] = true
	}
	for i := range follow {
		if !follow[i] && !own[i] {
			continue
		}
		b.wholeEdge(source, i, gate.RuleWhen)
		if !own[i] || f.task < 0 { // the others have an edge for what they compare
			learns(i)
		}
	}
}

// branchName names what a condition compares, such as /team of "Triage".
func (b *flowBuilder) branchName(up int, paths []task.Path) string {
	names := make([]string, len(paths))
	for k, path := range paths {
		names[k] = string(path)
	}
	slices.Sort(names)
	of := b.plan.Graph.Task(up)
	if of.Instance != nil {
		return strings.Join(names, ", ") + " of " + of.Instance.Title
	}
	return strings.Join(names, ", ") + " of " + of.Title
}

// followers returns which tasks follow from one of some tasks.
func (p *Plan) followers(from ...int32) []bool {
	seen := make([]bool, p.Graph.Len())
	for queue := slices.Clone(from); len(queue) > 0; queue = queue[1:] {
		for _, next := range p.Graph.Downstream(int(queue[0])) {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return seen
}
