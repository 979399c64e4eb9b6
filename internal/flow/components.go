package flow

// components returns the strongly connected component of each task, and their
// number (Tarjan's algorithm, with a stack of its own, since chains may be long).
// Components that a component leads to have lower numbers. Without a shared memory every task is a component of its own.
func (w *ways) components() (of []int32, n int) {
	t := tarjan{ways: w, at: make([]int32, len(w.g.Tasks)), low: make([]int32, len(w.g.Tasks)), of: make([]int32, len(w.g.Tasks))}
	for i := range w.g.Tasks {
		if t.at[i] == 0 {
			t.visit(int32(i))
		}
	}
	return t.of, int(t.found)
}

type tarjan struct {
	*ways
	at    []int32 // when a task was visited, counted from 1; 0 for not yet
	low   []int32 // the earliest task on the stack that it is known to lead to
	of    []int32 // its component; -1 while it is open
	clock int32
	found int32
	open  []int32 // tasks that have no component yet
	calls []call
}

// A call is a task whose followers are being visited: the source-th of those
// that it writes, the edge-th of that source.
type call struct {
	task, source, edge int32
}

func (t *tarjan) visit(root int32) {
	t.enter(root)
	for len(t.calls) > 0 {
		c := &t.calls[len(t.calls)-1]
		next, ok := t.next(c)
		switch {
		case !ok:
			t.leave(c.task)
		case t.at[next] == 0:
			t.enter(next)
		case t.of[next] < 0:
			t.low[c.task] = min(t.low[c.task], t.at[next])
		}
	}
}

// enter visits a task. While it is open, its component is -1.
func (t *tarjan) enter(i int32) {
	t.clock++
	t.at[i], t.low[i], t.of[i] = t.clock, t.clock, -1
	t.open = append(t.open, i)
	t.calls = append(t.calls, call{task: i})
}

// next returns the next task to which an output of c is delivered.
func (t *tarjan) next(c *call) (follower int32, ok bool) {
	for sources := t.writes.of(int(c.task)); int(c.source) < len(sources); c.source, c.edge = c.source+1, 0 {
		if edges := t.onward.of(int(sources[c.source])); int(c.edge) < len(edges) {
			c.edge++
			return int32(t.g.Edges[edges[c.edge-1]].Task), true
		}
	}
	return 0, false
}

// leave ends the visit of a task; if it leads to nothing earlier, it and the
// open tasks after it are a component.
func (t *tarjan) leave(i int32) {
	t.calls = t.calls[:len(t.calls)-1]
	if len(t.calls) > 0 {
		before := t.calls[len(t.calls)-1].task
		t.low[before] = min(t.low[before], t.low[i])
	}
	if t.low[i] != t.at[i] {
		return
	}
	for member := int32(-1); member != i; {
		member = t.open[len(t.open)-1]
		t.open = t.open[:len(t.open)-1]
		t.of[member] = t.found
	}
	t.found++
}
