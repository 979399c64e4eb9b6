package trace

import (
	"errors"
	"fmt"

	"github.com/runteam/runteam/internal/naming"
)

// ErrUnknownTask reports a name that no task of a trace has.
var ErrUnknownTask = errors.New("unknown task")

// Find returns the task with this title (ignoring case and surrounding spaces), key, ID or name, or
// the step of the coordinator with this title. Its error suggests similar names, and wraps
// [ErrUnknownTask].
func (t *Trace) Find(name string) (Task, error) {
	title := naming.Normalize(name)
	for _, same := range [...]func(*Task) bool{
		func(tk *Task) bool { return naming.Normalize(tk.Title) == title },
		func(tk *Task) bool { return tk.Key != "" && tk.Key == name },
		func(tk *Task) bool { return string(tk.ID) == name },
		func(tk *Task) bool { return tk.Name != "" && naming.Normalize(tk.Name) == title },
	} {
		for i := range t.Tasks {
			if same(&t.Tasks[i]) {
				return t.Tasks[i], nil
			}
		}
	}
	var known []string
	for i := range t.Tasks {
		known = append(known, t.Tasks[i].Title)
	}
	for i := range t.Tasks {
		if key := t.Tasks[i].Key; key != "" {
			known = append(known, key)
		}
	}
	return Task{}, fmt.Errorf("%w %q; %s", ErrUnknownTask, name, naming.Suggest(name, known))
}
