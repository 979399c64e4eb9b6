package readyqueue

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/task"
)

// definitions are the tasks of a queue as they were defined, with a status that does
// not count, and what depends on what: the graph at the start, and the tasks that
// were added since, with the edges that are not in the graph.
type definitions struct {
	g       *graph.Graph // nil in a zero Queue
	added   []*task.Task
	byID    map[task.ID]int32
	up      map[int32][]int32
	down    map[int32][]edge
	missing map[task.ID][]int32 // which tasks wait for one that is not there yet
}

// An edge leads to a dependent.
type edge struct {
	task     int32
	optional bool
}

// base is the number of tasks that came with the graph.
func (d *definitions) base() int {
	if d.g == nil {
		return 0
	}
	return d.g.Len()
}

func (d *definitions) len() int { return d.base() + len(d.added) }

// at returns the definition of task i.
func (d *definitions) at(i int) *task.Task {
	if base := d.base(); i >= base {
		return d.added[i-base]
	}
	return d.g.Task(i)
}

func (d *definitions) index(id task.ID) (i int, ok bool) {
	if d.g != nil {
		if i, ok := d.g.Index(id); ok {
			return i, true
		}
	}
	n, ok := d.byID[id]
	return int(n), ok
}

// eachDownstream calls fn for every direct dependent of a task, in the order
// of their indexes.
func (d *definitions) eachDownstream(i int, fn func(j int32, optional bool)) {
	if i < d.base() {
		optional := d.g.OptionalDownstream(i)
		for k, j := range d.g.Downstream(i) {
			fn(j, optional != nil && optional[k])
		}
	}
	for _, e := range d.down[int32(i)] {
		fn(e.task, e.optional)
	}
}

// dependents counts the direct dependents of a task.
func (d *definitions) dependents(i int) int32 {
	n := len(d.down[int32(i)])
	if i < d.base() {
		n += len(d.g.Downstream(i))
	}
	return int32(n)
}

// heights fills in the longest path from every task to a sink.
func (d *definitions) heights(height []int32) {
	if len(d.down) == 0 {
		for i := range height {
			height[i] = 0
			if i < d.base() {
				height[i] = int32(d.g.Height(i))
			}
		}
		return
	}
	clear(height)
	open := make([]int32, len(height)) // dependents not yet measured
	var line []int32
	for i := range open {
		if open[i] = d.dependents(i); open[i] == 0 {
			line = append(line, int32(i))
		}
	}
	raise := func(j, to int32) {
		height[j] = max(height[j], to)
		if open[j]--; open[j] == 0 {
			line = append(line, j)
		}
	}
	for head := 0; head < len(line); head++ {
		i := line[head]
		if int(i) < d.base() {
			for _, j := range d.g.Upstream(int(i)) {
				raise(j, height[i]+1)
			}
		}
		for _, j := range d.up[i] {
			raise(j, height[i]+1)
		}
	}
}

// init makes the maps, which a queue without Add does not need.
func (d *definitions) init() {
	if d.byID == nil {
		d.byID, d.missing = map[task.ID]int32{}, map[task.ID][]int32{}
		d.up, d.down = map[int32][]int32{}, map[int32][]edge{}
	}
}

// add appends a task with the edges to what is there, and to what waited for it.
func (d *definitions) add(t *task.Task) {
	i := int32(d.len())
	d.init()
	d.byID[t.ID] = i
	d.added = append(d.added, t)
	for _, ref := range t.DependsOn {
		if j, ok := d.index(task.ID(ref.Task)); ok {
			d.connect(int32(j), i, ref.MayBeMissing())
		} else {
			d.missing[task.ID(ref.Task)] = append(d.missing[task.ID(ref.Task)], i)
		}
	}
	for _, j := range slices.Compact(d.missing[t.ID]) {
		for _, ref := range d.at(int(j)).DependsOn {
			if ref.Task == string(t.ID) {
				d.connect(i, j, ref.MayBeMissing())
			}
		}
	}
	delete(d.missing, t.ID)
}

// connect adds the edge from a dependency to its dependent.
func (d *definitions) connect(from, to int32, optional bool) {
	d.down[from] = append(d.down[from], edge{to, optional})
	d.up[to] = append(d.up[to], from)
}

// admit reports why a task may not be added.
func (d *definitions) admit(t *task.Task) error {
	if t.ID == "" {
		return fmt.Errorf("%w: it has no id", task.ErrInvalid)
	}
	if i, ok := d.index(t.ID); ok {
		return fmt.Errorf("%w: id %q is that of task %q too", task.ErrDuplicate, t.ID, d.at(i).Title)
	}
	if t.Status != "" && t.Status != task.Pending && t.Status != task.Blocked {
		return fmt.Errorf("%w: its status is %s: add pending tasks only", task.ErrInvalid, t.Status)
	}
	seen := make(map[string]bool, len(t.DependsOn))
	for k, ref := range t.DependsOn {
		switch {
		case ref.Task == string(t.ID):
			return task.ErrSelf
		case seen[ref.Task] && k < len(t.DependsOn)-t.Reads: // a condition may read the result of a dependency
			return fmt.Errorf("%w dependency %q", task.ErrDuplicate, ref.Task)
		}
		seen[ref.Task] = true
	}
	return d.admitOrder(t)
}

// admitOrder refuses a task that closes a cycle: it depends on a task which,
// directly or not, waits for it.
func (d *definitions) admitOrder(t *task.Task) error {
	waiters := d.missing[t.ID]
	if len(waiters) == 0 {
		return nil
	}
	targets := map[int32]bool{}
	for _, ref := range t.DependsOn {
		if j, ok := d.index(task.ID(ref.Task)); ok {
			targets[int32(j)] = true
		}
	}
	if len(targets) == 0 {
		return nil
	}
	from := make(map[int32]int32, len(waiters)) // to each task reached, the one before
	line := slices.Clone(waiters)
	for _, w := range waiters {
		from[w] = none
	}
	for head := 0; head < len(line); head++ {
		i := line[head]
		if targets[i] {
			e := &task.CycleError{Path: []task.ID{t.ID}, Titles: []string{t.Title}}
			for ; i != none; i = from[i] {
				e.Path = append(e.Path, d.at(int(i)).ID)
				e.Titles = append(e.Titles, d.at(int(i)).Title)
			}
			return e
		}
		d.eachDownstream(int(i), func(j int32, _ bool) {
			if _, ok := from[j]; !ok {
				from[j] = i
				line = append(line, j)
			}
		})
	}
	return nil
}
