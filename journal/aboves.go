package journal

import (
	"sync"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/task"
)

// aboves are the tasks of a run that were given, or answered, something above
// the ceiling: what they say is that sensitive too. It is safe for concurrent use.
type aboves struct {
	mu    sync.RWMutex // guards tasks
	tasks map[task.ID]bool
}

// learn takes in what an entry tells.
func (a *aboves) learn(e *event.Entry) {
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
