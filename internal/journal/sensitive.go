package journal

import (
	"slices"
	"sync"

	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// sensitiveTasks are the tasks of a run with context or results above the plaintext limit,
// whose other texts may quote these. It is safe for concurrent use.
type sensitiveTasks struct {
	mu    sync.RWMutex // guards both
	tasks map[task.ID]bool
	exact map[task.ID]bool // tasks whose caller may see values above the plaintext limit, so that their sizes are exact
}

// learn adds the task of an entry if it is sensitive. Of a run that is resumed, only the results say that a caller may see
// values above the plaintext limit.
func (a *sensitiveTasks) learn(e *record.Entry) {
	switch {
	case e.Record != nil && e.Record.Prompt != nil:
		p := e.Record.Prompt
		a.add(p.Receipt.Task, p.Receipt.Classification > plainLimit, reveals(p))
	case e.Exchange != nil && e.Exchange.Result != nil && e.Exchange.Result.Classification > plainLimit:
		a.add(e.Exchange.Task, true, !e.Exchange.Partial)
	}
}

// add adds a task if it is sensitive, or if its sizes are exact.
func (a *sensitiveTasks) add(id task.ID, sensitive, exact bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.tasks == nil {
		a.tasks, a.exact = map[task.ID]bool{}, map[task.ID]bool{}
	}
	if sensitive {
		a.tasks[id] = true
	}
	if exact {
		a.exact[id] = true
	}
}

func (a *sensitiveTasks) has(id task.ID) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.tasks[id]
}

// reveals reports whether a prompt is in the form for a caller who may see values above the
// plaintext limit.
func reveals(p *promptview.Shown) bool {
	for i := range p.Receipt.Sources {
		if d := p.Receipt.Sources[i].Decision; d != nil && d.Before > plainLimit && !d.Coarse {
			return true
		}
	}
	return slices.ContainsFunc(slices.Concat(p.System, p.Text), func(at promptview.Piece) bool {
		return at.Words != "" && at.Source >= 0 && p.Receipt.Sources[at.Source].Classification > plainLimit
	})
}

// isExact reports whether entries of a task have exact sizes of values above the plaintext
// limit; for the empty task, whether those of any task have.
func (a *sensitiveTasks) isExact(id task.ID) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.exact[id] || id == "" && len(a.exact) > 0
}

// any reports whether any task is sensitive.
func (a *sensitiveTasks) any() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return len(a.tasks) > 0
}

// coordinator reports whether a step of the coordinator is sensitive.
func (a *sensitiveTasks) coordinator() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for id := range a.tasks {
		if record.IsStep(id) {
			return true
		}
	}
	return false
}
