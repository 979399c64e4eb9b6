package record

import (
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/task"
)

// StatusAfter returns the status of a task after an event of this type; empty if the event
// does not change it.
func StatusAfter(t event.Type) task.Status {
	switch t {
	case event.TaskStart, event.TaskWaiting:
		return task.InProgress
	case event.TaskComplete:
		return task.Completed
	case event.TaskSkipped:
		return task.Skipped
	case event.TaskNotNeeded:
		return task.NotNeeded
	case event.Error:
		return task.Failed
	}
	return ""
}
