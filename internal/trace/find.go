package trace

import (
	"slices"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// Find returns the task, or the step of the coordinator, that a person means by a name; see [naming.TaskList.Find]. Its
// error suggests similar names, and wraps [task.ErrUnknown].
func (t *Trace) Find(name string) (Task, error) {
	tasks := t.Tasks()
	if i, known := Names(tasks).Find(name); known {
		return tasks[i], nil
	}
	return Task{}, Existing(tasks).Unknown(name)
}

// Names returns what people may call tasks.
func Names(tasks []Task) naming.TaskList {
	list := make(naming.TaskList, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		list[i] = naming.TaskNames{Title: t.Title, Key: t.Key, ID: string(t.ID), Name: t.Name}
	}
	return list
}

// Existing is Names without items that the list did not have.
func Existing(tasks []Task) naming.TaskList {
	return Names(slices.DeleteFunc(slices.Clone(tasks), func(t Task) bool {
		return t.Status == task.NotNeeded && naming.WithoutInstance(t.Title) != t.Title
	}))
}
