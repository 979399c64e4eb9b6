package teammemory

import "github.com/runteam/runteam/task"

// A Filter says which entries a reader is shown, by the task whose result they are. The
// task of a note is empty. A nil filter shows nothing, so one that was forgotten opens
// nothing. A filter is called during the read, by its goroutine.
type Filter func(task.ID) bool

// Everything shows all entries. A list of tasks that is absent, as opposed to
// empty, is this filter.
func Everything() Filter { return func(task.ID) bool { return true } }

// Only shows the results of these tasks and no notes. Without IDs it shows nothing.
func Only(ids ...task.ID) Filter {
	wanted := make(map[task.ID]bool, len(ids))
	for _, id := range ids {
		wanted[id] = id != ""
	}
	return func(id task.ID) bool { return wanted[id] }
}
