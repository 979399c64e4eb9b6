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
// the coordinator learn. The parts of the result that it is taken from reach them too.
func (b *flowBuilder) addBranches() {
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
				b.graph.Sights = append(b.graph.Sights, flow.Sight{Source: source, Reader: b.user, Delivers: pick.Everything(), Rule: gate.RuleWhen})
			}
			b.wholeEdge(source, i, gate.RuleWhen)
			parts, _ := pick.Everything().Only(paths...)
			for next, follows := range p.followers(i) {
				if follows {
					b.wholeEdge(source, next, gate.RuleWhen)
					b.graph.Edges = append(b.graph.Edges, flow.Edge{Source: b.results + int(up), Task: next, Delivers: parts, Rule: gate.RuleWhen, Structured: true})
				}
			}
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
	return strings.Join(names, ", ") + " of " + b.plan.Graph.Task(up).Title
}
