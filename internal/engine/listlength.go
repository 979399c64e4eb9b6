package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/codes"
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

// hasItem reports whether the list of task i has its item. The list is read once for all
// instances.
func (r *brancher) hasItem(ctx context.Context, i int, now time.Time) (bool, error) {
	list := r.plan.Graph.Task(i).Instance.List
	key := listKey{list.Task, list.Path, r.plan.Members[i]}
	length, known := r.lists[key]
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

// countItems counts the items of a list that the agent of task i may read.
func (r *brancher) countItems(ctx context.Context, i int, list *task.List, now time.Time) (int, error) {
	canonical, err := r.readFor(ctx, i, list.Task, now, list.Path+"/*", list.Path+"/*/**")
	if err != nil {
		return 0, err
	}
	value, _, err := valueAt(canonical, pick.Tokens(list.Path))
	if err != nil {
		return 0, err
	}
	items, _ := value.([]any)
	return len(items), nil
}
