package flowtest

import (
	"slices"

	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

// An instanceFlow is the flow of a plan in which each round of a loop and each item of a list is a
// task of its own.
type instanceFlow struct {
	edgeLists
	graph *graph.Graph
}

// sources returns the sources that a canary is planted in, one for each instance of its task.
func (f *instanceFlow) sources(x *canary, writes func(t int) bool) (sources []int) {
	is := isSource(x, writes)
	for i, s := range f.Sources {
		if is(s) {
			sources = append(sources, i)
		}
	}
	return sources
}

// isLoop reports whether a task of the graph is a loop.
func (f *instanceFlow) isLoop(t int) bool { return t < f.graph.Len() && plan.Joins(f.graph.Task(t)) }

// grantsItem reports whether an edge may deliver a canary that is planted in a list: to the task for
// each item, it delivers that item.
func (f *instanceFlow) grantsItem(g *allowance, e *flow.Edge) bool {
	if e.Task >= f.graph.Len() || !g.own[e.Source] {
		return true
	}
	t := f.graph.Task(e.Task)
	if t.Instance == nil || t.MemoryScope == task.ScopeAll {
		return true
	}
	for _, list := range t.Instance.Lists {
		from, ok := f.graph.Index(task.ID(list.Task))
		if !ok || !f.isResultOf(f.Sources[e.Source].Task, from) {
			continue
		}
		grants := func(item bool) int {
			return slices.IndexFunc(t.DependsOn, func(d task.Ref) bool { return d.Task == list.Task && (d.Item != "") == item })
		}
		own := grants(true)
		if own < 0 || grants(false) >= 0 {
			return true
		}
		item, keys := pick.Tokens(t.DependsOn[own].Item), g.canary.keys
		return len(keys) >= len(item) && slices.EqualFunc(item, keys[:len(item)], func(a, b string) bool { return a == b || b == "*" })
	}
	return true
}

// isResultOf reports whether the result of a task can be that of another one: it is the same, or a
// round of the loop that the other one is.
func (f *instanceFlow) isResultOf(t, of int) bool {
	return t == of || f.isLoop(of) && slices.ContainsFunc(f.graph.Upstream(of), func(up int32) bool { return f.isResultOf(t, int(up)) })
}
