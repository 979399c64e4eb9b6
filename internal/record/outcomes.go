package record

import "github.com/runteam/runteam/event"

// Outcomes counts the tasks of a run that ended.
func (e *RunEnd) Outcomes() (o event.Outcomes) {
	for i := range e.Tasks {
		t := &e.Tasks[i]
		o.Add(t.Status, t.Root, t.Attempts > 0)
	}
	return o
}
