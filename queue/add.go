package queue

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/task"
)

// added are the tasks that came after the graph, and the edges that are not in it.
type added struct {
	more    []*task.Task
	byID    map[task.ID]int32
	up      map[int32][]int32
	down    map[int32][]link
	missing map[task.ID][]int32 // who waits for a task that is not there yet
}

// A link leads to a dependent.
type link struct {
	task     int32
	optional bool
}

// Add appends a task. It is ready at once if its dependencies are done; it is
// blocked while one is unfinished or is not there yet; and if one has failed
// or was skipped already, it ends as it would have when that happened. Ids that
// are taken, dependencies on itself or on one task twice, cycles and tasks that
// are not pending are refused, and then nothing changes.
func (q *Queue) Add(t task.Task) error {
	if err := q.admit(&t); err != nil {
		return fmt.Errorf("add task %q: %w", t.Title, err)
	}
	i := int32(len(q.tasks))
	q.init()
	q.byID[t.ID] = i
	q.more = append(q.more, &t)
	q.tasks = append(q.tasks, entry{updated: t.UpdatedAt, state: blocked, agent: none})
	q.results = append(q.results, nil)
	if q.ends != nil {
		q.ends = append(q.ends, end{})
	}
	q.counts[blocked]++
	q.stale, q.over = true, false
	if q.agentOf != nil {
		q.tasks[i].agent = q.agentIndex(t.Assignee)
	}
	for _, d := range t.DependsOn {
		q.connect(i, d)
	}
	for _, j := range q.missing[t.ID] {
		q.edge(i, j, slices.ContainsFunc(q.def(int(j)).DependsOn, func(d task.Ref) bool {
			return task.ID(d.Task) == t.ID && d.Optional
		}))
	}
	delete(q.missing, t.ID)
	q.open(i)
	q.finish()
	return nil
}

func (q *Queue) init() {
	if q.byID == nil {
		q.byID, q.missing = map[task.ID]int32{}, map[task.ID][]int32{}
		q.up, q.down = map[int32][]int32{}, map[int32][]link{}
	}
}

// connect adds the edge of one dependency of a blocked task, or remembers that
// it is not there yet.
func (q *Queue) connect(i int32, d task.Ref) {
	j, ok := q.Index(task.ID(d.Task))
	if !ok {
		q.missing[task.ID(d.Task)] = append(q.missing[task.ID(d.Task)], i)
		q.tasks[i].open++
		return
	}
	q.edge(int32(j), i, d.Optional)
	if s := q.tasks[j].state; !s.terminal() || s != completed && !d.Optional {
		q.tasks[i].open++
	}
}

// edge leads from a dependency to its dependent.
func (q *Queue) edge(from, to int32, optional bool) {
	q.down[from] = append(q.down[from], link{to, optional})
	q.up[to] = append(q.up[to], from)
}

// open gives a blocked task whose edges are known its first status: it is
// ready, or stays blocked, or ends with a dependency that has ended.
func (q *Queue) open(i int32) {
	e := &q.tasks[i]
	if e.open == 0 {
		q.set(int(i), pending, e.updated)
		q.ready(int(i))
		return
	}
	for _, d := range q.def(int(i)).DependsOn {
		j, ok := q.Index(task.ID(d.Task))
		if !ok || d.Optional {
			continue
		}
		if how := q.tasks[j].state; how == failed || how == skipped {
			root := q.ends[j].root
			q.close(int(i), how, end{root: root, via: int32(j)}, e.updated)
			q.cascade(i, root, how, e.updated)
			return
		}
	}
}

// admit reports why a task may not be added.
func (q *Queue) admit(t *task.Task) error {
	if t.ID == "" {
		return fmt.Errorf("%w: it has no id", task.ErrInvalid)
	}
	if _, ok := q.Index(t.ID); ok {
		return fmt.Errorf("%w id %q", task.ErrDuplicate, t.ID)
	}
	if t.Status != "" && t.Status != task.Pending && t.Status != task.Blocked {
		return fmt.Errorf("%w: its status is %s: add pending tasks only", task.ErrInvalid, t.Status)
	}
	seen := make(map[task.ID]bool, len(t.DependsOn))
	for _, d := range t.DependsOn {
		switch {
		case task.ID(d.Task) == t.ID:
			return task.ErrSelf
		case seen[task.ID(d.Task)]:
			return fmt.Errorf("%w dependency %q", task.ErrDuplicate, task.ID(d.Task))
		}
		seen[task.ID(d.Task)] = true
	}
	return q.admitOrder(t)
}

// admitOrder refuses a task that closes a cycle: it depends on a task which,
// directly or not, waits for it.
func (q *Queue) admitOrder(t *task.Task) error {
	waiters := q.missing[t.ID]
	if len(waiters) == 0 {
		return nil
	}
	targets := map[int32]bool{}
	for _, d := range t.DependsOn {
		if j, ok := q.Index(task.ID(d.Task)); ok {
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
			return q.cycle(t, i, from)
		}
		q.eachDownstream(int(i), func(j int32, _ bool) {
			if _, ok := from[j]; !ok {
				from[j] = i
				line = append(line, j)
			}
		})
	}
	return nil
}

// cycle names the cycle that t would close by depending on task i.
func (q *Queue) cycle(t *task.Task, i int32, from map[int32]int32) error {
	e := &task.CycleError{Path: []task.ID{t.ID}, Titles: []string{t.Title}}
	for ; i != none; i = from[i] {
		e.Path = append(e.Path, q.def(int(i)).ID)
		e.Titles = append(e.Titles, q.def(int(i)).Title)
	}
	return e
}
