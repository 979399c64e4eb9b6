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
	oneOfRounds := func(up int) int { // the rounds of a task become one
		in := p.Graph.Task(up).Instance
		if in == nil {
			return up
		}
		if _, known := first[in.Pointer]; !known {
			first[in.Pointer] = up
		}
		return first[in.Pointer]
	}
	for i := range p.Graph.Len() {
		for j, up := range p.Graph.Upstream(i) {
			if !isRead(p.Graph.Task(i), j) || isReread(p.Graph.Task(i), j) {
				continue
			}
			_, paths := p.grantOf(i, &delivery{part: partOf{handoff.Condition, int32(j)}})
			if paths = comparedPaths(p.Graph.Task(i), j, paths); len(paths) == 0 {
				continue // only the number of its items counts
			}
			key := branchKey{b.branchName(int(up), paths), oneOfRounds(int(up))}
			if all[key] == nil {
				all[key], order = &branchFlow{source: b.results + key.up, from: p.Graph.Task(key.up).Assignee, task: key.up, paths: paths, label: label.Public}, append(order, key)
			}
			f := all[key]
			f.tasks, f.label = append(f.tasks, int32(i)), f.label.Join(p.Branches[i])
		}
		in := p.Graph.Task(i).Instance
		if in == nil || in.Joins {
			continue
		}
		for _, l := range in.Lists {
			key := branchKey{name: "items of " + listsText(p, []*task.List{l})}
			f := branchFlow{isCount: true, label: label.Public}
			if l.Input == "" {
				up, _ := p.Graph.Index(task.ID(l.Task))
				key.up = oneOfRounds(up)
				f.from, f.task = p.Graph.Task(key.up).Assignee, key.up
			} else {
				key.up = -1 - p.InputIndex[strings.ToLower(l.Input)]
				f.from, f.task = handoff.User, -1
			}
			if all[key] == nil {
				all[key], order = &f, append(order, key)
			}
			all[key].tasks, all[key].label = append(all[key].tasks, int32(i)), all[key].label.Join(p.Branches[i])
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
	source  int    // that it is taken from
	from    string // who makes that
	task    int    // whose result that is; -1 for an input
	isCount bool   // it is the number of items of a list, and nothing that an item says
	paths   []task.Path
	tasks   []int32
	label   label.Classification

	learners []int32 // tasks that learn it without having compared it
}

// addBranch adds one source, and who learns it from which tasks run: answer is the turn in which
// the coordinator answers, or -1.
func (b *flowBuilder) addBranch(name string, f *branchFlow, answer int) {
	p, g, source := b.plan, &b.graph, len(b.graph.Sources)
	g.Sources = append(g.Sources, flow.Source{Kind: handoff.Condition, Name: name, From: f.from, Task: f.task, Label: f.label})
	parts := f.compared()
	g.Sights = append(g.Sights, flow.Sight{Source: source, Reader: b.user, Delivers: pick.Everything(), Rule: gate.RuleWhen})
	if !f.isCount {
		g.Sights = append(g.Sights, flow.Sight{Source: f.source, Reader: b.user, Delivers: parts, Rule: gate.RuleWhen})
	}
	learns := func(at int) {
		if f.isCount {
			return
		}
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
		if !own[i] { // the others have an edge for what they compare
			learns(i)
		}
	}
}

// comparedPaths returns which of the paths that the condition of a task reads of dependency j are
// compared, and not those of the items of its list.
func comparedPaths(t *task.Task, j int, paths []task.Path) []task.Path {
	if t.Instance == nil || t.DependsOn[j].Item == "" {
		return paths
	}
	return slices.DeleteFunc(slices.Clone(paths), func(path task.Path) bool {
		return slices.ContainsFunc(t.Instance.Lists, func(l *task.List) bool {
			return l.Task == t.DependsOn[j].Task && slices.Contains(ItemPaths(l), path)
		})
	})
}

// branchName names what a condition compares, such as /team of "Triage".
func (b *flowBuilder) branchName(up int, paths []task.Path) string {
	names := make([]string, len(paths))
	for k, path := range paths {
		names[k] = string(path)
	}
	slices.Sort(names)
	return strings.Join(names, ", ") + " of " + WrittenTitle(b.plan.Graph.Task(up))
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
