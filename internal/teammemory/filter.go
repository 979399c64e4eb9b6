package teammemory

import "github.com/runteam/runteam/task"

// A Filter says which entries a reader is shown. The zero value shows nothing,
// so a filter that was forgotten, or made from an empty list, opens nothing.
type Filter struct {
	results func(task.ID) bool // nil means none
	notes   bool
}

// Everything shows all entries. A list of tasks that is absent, as opposed to
// empty, is this filter.
func Everything() Filter {
	return Where(func(task.ID) bool { return true }).AndNotes()
}

// Only shows the results of these tasks and no notes. Without ids it shows nothing.
func Only(ids ...task.ID) Filter {
	wanted := make(map[task.ID]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	return Where(func(id task.ID) bool { return wanted[id] })
}

// Where shows the results of the tasks for which match is true, and no notes.
// A nil match is true for none. Match is called during the read, by its goroutine.
func Where(match func(id task.ID) bool) Filter { return Filter{results: match} }

// AndNotes returns a filter that also shows the entries that are no results.
func (f Filter) AndNotes() Filter {
	f.notes = true
	return f
}

// shows decides by the task of an entry, which is empty for a note.
func (f *Filter) shows(id task.ID) bool {
	if id == "" {
		return f.notes
	}
	return f.results != nil && f.results(id)
}
