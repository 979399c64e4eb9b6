package journal

import (
	"slices"
	"sync"

	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// sensitiveTasks knows which tasks of a run are sensitive: those with context or results above the plaintext limit,
// whose other texts may quote these. It is safe for concurrent use.
type sensitiveTasks struct {
	vault *vault

	mu     sync.RWMutex // guards the others
	labels map[task.ID]label.Classification
	exact  map[task.ID]bool     // tasks whose caller may see values above the plaintext limit, so that their sizes are exact
	run    label.Classification // of the run, which texts have whose own label is not known
}

// newSensitiveTasks returns the sensitive tasks of a run that has none yet.
func newSensitiveTasks(v *vault) *sensitiveTasks {
	return &sensitiveTasks{vault: v, labels: map[task.ID]label.Classification{}, exact: map[task.ID]bool{}, run: label.Public}
}

// learn adds what an entry says of the labels of a task. Of a run that is resumed, no prompts are read: of a task without
// a result, only the label of the run is known.
func (a *sensitiveTasks) learn(e *record.Entry) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch x := e.Exchange; {
	case e.Begin != nil:
		a.run = a.run.Join(e.Begin.StoredLabel())
	case e.Record != nil && e.Record.Prompt != nil:
		p := e.Record.Prompt
		a.add(p.Receipt.Task, p.Receipt.Classification, a.reveals(p))
	case x != nil && x.Result != nil:
		a.add(x.Task, x.Result.Classification, a.vault.hides(x.Result.Classification) && !x.Partial)
	case x != nil && x.Missing != "":
		a.add(x.Task, label.Secret, !x.Partial)
	case x != nil && a.vault.hides(a.level(x.Task)):
		a.add(x.Task, a.level(x.Task), !x.Partial)
	}
}

// add adds a label of a task, and whether its sizes are exact.
func (a *sensitiveTasks) add(id task.ID, level label.Classification, exact bool) {
	if known, ok := a.labels[id]; !ok || known < level {
		a.labels[id] = level
	}
	if exact {
		a.exact[id] = true
	}
}

// level returns the highest label of what a task has read and made.
func (a *sensitiveTasks) level(id task.ID) label.Classification {
	if level, known := a.labels[id]; known {
		return level
	}
	return a.run
}

// has reports whether a task is sensitive; for the empty task, whether the run is.
func (a *sensitiveTasks) has(id task.ID) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.vault.hides(a.level(id))
}

// any reports whether a text that may quote any task is sensitive.
func (a *sensitiveTasks) any() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.vault.hides(unlabeled) || a.hasKnown(func(task.ID) bool { return true })
}

// hasKnown reports whether one of the tasks that match is known to be sensitive.
func (a *sensitiveTasks) hasKnown(match func(task.ID) bool) bool {
	for id, level := range a.labels {
		if match(id) && a.vault.hides(level) {
			return true
		}
	}
	return false
}

// reveals reports whether a prompt is in the form for a caller who may see values above the
// plaintext limit.
func (a *sensitiveTasks) reveals(p *promptview.Shown) bool {
	for i := range p.Receipt.Sources {
		if d := p.Receipt.Sources[i].Decision; d != nil && a.vault.hides(d.Before) && !d.Coarse {
			return true
		}
	}
	return slices.ContainsFunc(slices.Concat(p.System, p.Text), func(at promptview.Piece) bool {
		return at.Words != "" && at.Source >= 0 && a.vault.hides(p.Receipt.Sources[at.Source].Classification)
	})
}

// isExact reports whether entries of a task have exact sizes of values above the plaintext
// limit; for the empty task, whether those of any task have.
func (a *sensitiveTasks) isExact(id task.ID) bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	return a.exact[id] || id == "" && len(a.exact) > 0
}

// coordinator reports whether what the coordinator says of the run is sensitive: a step of it is, or none is known.
func (a *sensitiveTasks) coordinator() bool {
	a.mu.RLock()
	defer a.mu.RUnlock()
	for id := range a.labels {
		if record.IsStep(id) {
			return a.hasKnown(record.IsStep)
		}
	}
	return a.vault.hides(a.run)
}
