package plan

import (
	"slices"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
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
	sources := map[string]int{}
	for i := range p.Graph.Len() {
		for j, up := range p.Graph.Upstream(i) {
			if !isRead(p.Graph.Task(i), j) {
				continue
			}
			paths := p.Graph.Task(i).DependsOn[j].Need
			name := b.branchName(int(up), paths)
			source, known := sources[name]
			if !known {
				source = len(b.graph.Sources)
				sources[name] = source
				b.graph.Sources = append(b.graph.Sources, flow.Source{
					Kind: handoff.Condition, Name: name, From: p.Graph.Task(int(up)).Assignee, Task: int(up), Label: p.Branches[i],
				})
				parts, _ := pick.Everything().Only(paths...)
				b.graph.Sights = append(b.graph.Sights,
					flow.Sight{Source: source, Reader: b.user, Delivers: pick.Everything(), Rule: gate.RuleWhen},
					flow.Sight{Source: b.results + int(up), Reader: b.user, Delivers: parts, Rule: gate.RuleWhen})
			}
			b.wholeEdge(source, i, gate.RuleWhen)
			b.tellBranch(source, int(up), i, answer, paths)
		}
	}
}

// tellBranch adds who but the user learns from the status of task i what its condition compares of
// the result of task up.
func (b *flowBuilder) tellBranch(source, up, i, answer int, paths []task.Path) {
	parts, _ := pick.Everything().Only(paths...)
	learn := func(at int) {
		b.wholeEdge(source, at, gate.RuleWhen)
		b.graph.Edges = append(b.graph.Edges, flow.Edge{Source: b.results + up, Task: at, Delivers: parts, Rule: gate.RuleWhen, Structured: true})
	}
	for next, follows := range b.plan.followers(i) {
		if follows {
			learn(next)
		}
	}
	if answer >= 0 {
		learn(answer)
	}
}

// branchName names what a condition compares, such as /team of "Triage".
func (b *flowBuilder) branchName(up int, paths []task.Path) string {
	names := make([]string, len(paths))
	for k, path := range paths {
		names[k] = string(path)
	}
	slices.Sort(names)
	return strings.Join(names, ", ") + " of " + b.plan.Graph.Task(up).Title
}

// followers returns which tasks follow from a task.
func (p *Plan) followers(i int) []bool {
	seen := make([]bool, p.Graph.Len())
	for queue := []int32{int32(i)}; len(queue) > 0; queue = queue[1:] {
		for _, next := range p.Graph.Downstream(int(queue[0])) {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, next)
			}
		}
	}
	return seen
}
