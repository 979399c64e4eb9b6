package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/task"
)

// ErrListTooLong reports a list with more items than there may be instances of a task.
var ErrListTooLong = codes.Condition(codes.ListTooLong)

// A listKey identifies a list and the agent that its items are for. That of an input is identified
// by where it is written.
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

// decodedLists are the results and inputs that have lists, each decoded once for all instances.
type decodedLists struct{ byName map[string]*gate.List }

// get returns a result or an input by the name of its task or envelope.
func (l *decodedLists) get(name string) *gate.List {
	if l.byName == nil {
		l.byName = map[string]*gate.List{}
	}
	if l.byName[name] == nil {
		l.byName[name] = &gate.List{}
	}
	return l.byName[name]
}

// forDependency returns the list that a dependency is granted an item of; nil if it is not.
func (l *decodedLists) forDependency(d *task.Ref) *gate.List {
	if d.Item == "" {
		return nil
	}
	return l.get(d.Task)
}

// offerLists offers an attempt the lists in inputs that decide whether it runs, and that its task
// is granted nothing of: running depends on their length, although no prompt has them.
func (b *brancher) offerLists(a *attempt, i int) {
	t := b.run.plan.Graph.Task(i)
	if t.Instance == nil || t.Instance.Joins {
		return
	}
	for k, l := range t.Instance.Lists {
		isOther := func(other *task.List) bool { return other.Input == l.Input }
		if l.Input == "" || slices.ContainsFunc(t.Uses, func(u task.Use) bool { return u.Name == l.Input }) || slices.ContainsFunc(t.Instance.Lists[:k], isOther) {
			continue
		}
		a.grants = append(a.grants, plan.ListGrant(b.run.plan, i, l))
		a.grants[len(a.grants)-1].List = b.decoded.get(string(plan.InputID(l.Input)))
		a.offers = append(a.offers, inputOffer(b.run, l.Input))
	}
}

// hasItem reports whether a list of task i has its item. The list is read once for all
// instances.
func (b *brancher) hasItem(ctx context.Context, i int, list *task.List, now time.Time) (bool, error) {
	key := listKey{list.Task, list.Path, b.run.plan.Members[i]}
	if list.Input != "" {
		key.path = task.Path(list.Pointer)
	}
	length, known := b.lists[key]
	if known && length.err == nil {
		known = listEnvelope(b.run.plan, b.run.inputs, b.run.queue, list).Fresh(now) == nil // else the gate says so
	}
	if !known {
		length.items, length.err = b.countItems(ctx, i, list, now)
		if b.lists == nil {
			b.lists = map[listKey]listLength{}
		}
		b.lists[key] = length
		if length.err == nil {
			b.warnCut(list, length.items)
		}
	}
	switch {
	case length.err != nil:
		return false, length.err
	case length.items > list.Most && list.Fails:
		return false, fmt.Errorf("%w: it has %d items, and maxItems is %d; raise it, or write onOverflow: first", ErrListTooLong, length.items, list.Most)
	}
	return list.Index < length.items, nil
}

// warnCut warns, once for each list of the spec, that a result has more items than instances run. Of
// inputs, the check says so.
func (b *brancher) warnCut(list *task.List, items int) {
	if list.Fails || items <= list.Most || list.Input != "" || b.cut[list.Pointer] {
		return
	}
	if b.cut == nil {
		b.cut = map[string]bool{}
	}
	b.cut[list.Pointer] = true
	b.run.warn(fmt.Sprintf("%s: the list has %d items, and only the first %d are taken", plan.ListText(b.run.plan, list), items, list.Most))
}

// countItems counts the items of a list that the agent of task i may read. It also counts items of
// which a rule blocks every part, so that the others keep their numbers; the instance for such an
// item fails, since nothing of it is delivered.
func (b *brancher) countItems(ctx context.Context, i int, list *task.List, now time.Time) (int, error) {
	if list.Input != "" {
		items := plan.ListOf(b.run.plan, list).Items
		if items == 0 { // nothing of it can pass
			return 0, listEnvelope(b.run.plan, b.run.inputs, b.run.queue, list).Fresh(now)
		}
		offer := inputOffer(b.run, list.Input)
		_, _, err := b.deliver(ctx, i, b.run.plan.Branches.Of(i), plan.ListGrant(b.run.plan, i, list), &offer, now)
		return items, err
	}
	if _, err := b.readFor(ctx, i, list.Task, now, plan.ItemPaths(list)...); err != nil {
		return 0, err
	}
	items, ok := gate.CountItems(listEnvelope(b.run.plan, b.run.inputs, b.run.queue, list), list.Path)
	if !ok {
		up, _ := b.run.plan.Graph.Index(task.ID(list.Task))
		return 0, fmt.Errorf("the result of %q has no list at %s", b.run.plan.Graph.Task(up).Title, list.Path)
	}
	return items, nil
}

// listEnvelope returns the result or the input that has a list.
func listEnvelope(p *plan.Plan, inputs []*envelope.Envelope, q *readyqueue.Queue, list *task.List) *envelope.Envelope {
	if list.Input != "" {
		return inputs[p.InputIndex[strings.ToLower(list.Input)]]
	}
	up, _ := p.Graph.Index(task.ID(list.Task))
	result, _ := q.Result(up)
	return result
}

// A parallelList is a list of which not all instances may run at once.
type parallelList struct {
	tasks []int32
	most  int
}

// parallelLists returns the tasks for the items of lists of which not all may run at once.
func parallelLists(p *plan.Plan) (all []*parallelList) {
	known := map[string]*parallelList{}
	for i := range p.Graph.Len() {
		in := p.Graph.Task(i).Instance
		if in == nil || in.Joins {
			continue
		}
		for _, l := range in.Lists {
			if l.Parallel == 0 {
				continue
			}
			if known[l.Pointer] == nil {
				known[l.Pointer] = &parallelList{most: l.Parallel}
				all = append(all, known[l.Pointer])
			}
			known[l.Pointer].tasks = append(known[l.Pointer].tasks, int32(i))
		}
	}
	return all
}
