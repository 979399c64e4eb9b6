package journal

import (
	"slices"
	"sync"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// aboves are the tasks of a run that were given, or answered, something above
// the ceiling: what they say is that sensitive too. It is safe for concurrent use.
type aboves struct {
	mu    sync.RWMutex // guards both
	tasks map[task.ID]bool
	exact map[task.ID]bool // of those whose caller may see above the ceiling: their sizes are exact
}

// learn takes in what an entry tells.
func (a *aboves) learn(e *record.Entry) {
	if e.Record != nil && e.Record.Prompt != nil && reveals(e.Record.Prompt) {
		a.mu.Lock()
		if a.exact == nil {
			a.exact = map[task.ID]bool{}
		}
		a.exact[e.Record.Prompt.Receipt.Task] = true
		a.mu.Unlock()
	}
	switch {
	case e.Record != nil && e.Record.Prompt != nil && e.Record.Prompt.Receipt.Classification > ceiling:
		a.add(e.Record.Prompt.Receipt.Task)
	case e.Exchange != nil && e.Exchange.Result != nil && e.Exchange.Result.Classification > ceiling:
		a.add(e.Exchange.Task)
	}
}

func (a *aboves) add(id task.ID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tasks == nil {
		a.tasks = map[task.ID]bool{}
	}
	a.tasks[id] = true
}

func (a *aboves) has(id task.ID) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.tasks[id]
}

// reveals reports whether a prompt is in the form for a caller who may see above
// the ceiling.
func reveals(p *prompt.Shown) bool {
	for i := range p.Receipt.Sources {
		if d := p.Receipt.Sources[i].Decision; d != nil && d.Before > ceiling && !d.Coarse {
			return true
		}
	}
	return slices.ContainsFunc(slices.Concat(p.System, p.Text), func(at prompt.Piece) bool {
		return at.Words != "" && at.Source >= 0 && p.Receipt.Sources[at.Source].Classification > ceiling
	})
}

// isExact reports whether the caller may see the exact sizes of a task above the
// ceiling. For the empty task it reports whether that holds for any task.
func (a *aboves) isExact(id task.ID) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.exact[id] || id == "" && len(a.exact) > 0
}

// any reports whether there is one.
func (a *aboves) any() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.tasks) > 0
}

// coordinator reports whether a step of the coordinator is one.
func (a *aboves) coordinator() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for id := range a.tasks {
		if isStep(id) {
			return true
		}
	}
	return false
}
