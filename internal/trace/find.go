package trace

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// ErrUnknownTask reports a name that no task of a trace has.
var ErrUnknownTask = errors.New("unknown task")

// Find returns the task with this title (ignoring case and surrounding spaces), key, ID or name, or
// the step of the coordinator with this title. Its error suggests similar names, and wraps
// [ErrUnknownTask].
func (t *Trace) Find(name string) (Task, error) { return find(t.Tasks(), name) }

// find returns the task that a name means, as [Trace.Find].
func find(tasks []Task, name string) (Task, error) {
	title := naming.Normalize(name)
	for _, same := range [...]func(*Task) bool{
		func(tk *Task) bool { return naming.Normalize(tk.Title) == title },
		func(tk *Task) bool { return tk.Key != "" && tk.Key == name },
		func(tk *Task) bool { return string(tk.ID) == name },
		func(tk *Task) bool { return tk.Name != "" && naming.Normalize(tk.Name) == title },
	} {
		for i := range tasks {
			if same(&tasks[i]) {
				return tasks[i], nil
			}
		}
	}
	return Task{}, fmt.Errorf("%w %q; %s", ErrUnknownTask, name, naming.Suggest(name, Known(tasks)))
}

// Known returns what tasks are called: names or titles, then keys. It leaves out items that the list
// did not have.
func Known(tasks []Task) (names []string) {
	for i := range tasks {
		if t := &tasks[i]; t.Status != task.NotNeeded || naming.WithoutInstance(t.Title) == t.Title {
			names = append(names, cmp.Or(t.Name, t.Title))
		}
	}
	for i := range tasks {
		if key := tasks[i].Key; key != "" {
			names = append(names, key)
		}
	}
	return names
}
