package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/task"
)

// ErrListTooLong reports a list with more items than there may be instances of a task.
var ErrListTooLong = codes.Condition(codes.ListTooLong)

// A listKey identifies a list and the agent that its items are for.
type listKey struct {
	task   string
	path   task.Path
	member int32
}

// A listLength is how many items a list has, or why that is not known.
type listLength struct {
	items int
	err   error
}

// list returns the list that a dependency is granted an item of, decoded once for all instances.
func (r *brancher) list(d *task.Ref) *gate.List {
	if d.Item == "" {
		return nil
	}
	if r.items == nil {
		r.items = map[string]*gate.List{}
	}
	if r.items[d.Task] == nil {
		r.items[d.Task] = &gate.List{}
	}
	return r.items[d.Task]
}

// hasItem reports whether the list of task i has its item. The list is read once for all
// instances.
func (r *brancher) hasItem(ctx context.Context, i int, now time.Time) (bool, error) {
	list := r.plan.Graph.Task(i).Instance.List
	key := listKey{list.Task, list.Path, r.plan.Members[i]}
	length, known := r.lists[key]
	if up, _ := r.plan.Graph.Index(task.ID(list.Task)); known && length.err == nil {
		result, _ := r.queue.Result(up)
		known = result.Fresh(now) == nil // else the gate says so
	}
	if !known {
		length.items, length.err = r.countItems(ctx, i, list, now)
		if r.lists == nil {
			r.lists = map[listKey]listLength{}
		}
		r.lists[key] = length
	}
	switch {
	case length.err != nil:
		return false, length.err
	case length.items > list.Most && list.Fails:
		return false, fmt.Errorf("%w: it has %d items, and maxItems is %d; raise it, or write onOverflow: first", ErrListTooLong, length.items, list.Most)
	}
	return list.Index < length.items, nil
}

// countItems counts the items of a list that the agent of task i may read. It counts those too of
// which a rule blocks every part: other items stay where they are, and the instance with this one
// fails as nothing of it is delivered.
func (r *brancher) countItems(ctx context.Context, i int, list *task.List, now time.Time) (int, error) {
	if _, err := r.readFor(ctx, i, list.Task, now, list.Path+"/*", list.Path+"/*/**"); err != nil {
		return 0, err
	}
	up, _ := r.plan.Graph.Index(task.ID(list.Task))
	result, _ := r.queue.Result(up)
	canonical, _ := result.Open().JSON()
	value, found, err := valueAt(canonical, pick.Tokens(list.Path))
	if err != nil || !found || value == nil {
		return 0, err
	}
	items, ok := value.([]any)
	if !ok {
		return 0, fmt.Errorf("the result of %q has no list at %s", r.plan.Graph.Task(up).Title, list.Path)
	}
	return len(items), nil
}
