package engine

import (
	"slices"
	"strconv"
	"sync"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

// freshTasks are the tasks that the caller wants to be performed again, whatever is cached. It is safe
// for concurrent use: the names of items are known only once their list is.
type freshTasks struct {
	mu    sync.RWMutex
	ids   map[task.ID]bool
	items []string // names of items, normalized, that no item has had yet
}

// has reports whether a task is one of them.
func (f *freshTasks) has(id task.ID) bool {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return f.ids[id]
}

// add adds a task.
func (f *freshTasks) add(id task.ID) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids == nil {
		f.ids = map[task.ID]bool{}
	}
	f.ids[id] = true
}

// named adds an instance if its name is one of the names of items.
func (f *freshTasks) named(id task.ID, name string) {
	if len(f.items) == 0 {
		return
	}
	folded := naming.Normalize(name)
	if k := slices.Index(f.items, folded); k >= 0 {
		f.items = slices.Delete(f.items, k, k+1)
		f.add(id)
	}
}

// markFresh finds the tasks whose cached answers are not used.
func (r *runScope) markFresh(p *plan.Plan) {
	r.fresh.items = nil
	if len(r.options.Fresh) == 0 {
		return
	}
	names := p.Names()
	for _, name := range r.options.Fresh {
		i, known := names.Find(name)
		switch {
		case known:
			r.fresh.add(p.Graph.Task(i).ID)
		case plan.MayNameItem(p.Graph, name):
			r.fresh.items = append(r.fresh.items, naming.Normalize(name))
		default: // the tasks of a goal were not known before the run
			r.warn("no planned task is called " + strconv.Quote(name) + ", which is listed to be run again")
		}
	}
}

// warnUnnamed warns of the names that no item had.
func (f *freshTasks) warnUnnamed(r *runScope) {
	for _, name := range f.items {
		r.warn("no item is called " + strconv.Quote(name) + ", which is listed to be run again")
	}
}
