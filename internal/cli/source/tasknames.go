package source

import (
	"slices"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// TaskNames are the tasks that a name may mean: by title, by key or by id, for
// none of which letter case and spaces around it matter.
type TaskNames []trace.Task

// NewTaskNames returns the tasks of a spec.
func NewTaskNames(file *specfile.File) (all TaskNames) {
	for i := range file.Tasks {
		t := &file.Tasks[i]
		all = append(all, trace.Task{ID: task.NewID(t.Title), Key: t.Key, Title: t.Title})
	}
	return all
}

// Find returns the id of the task that a name means. A title goes before a key,
// and both before an id.
func (n TaskNames) Find(name string) (task.ID, bool) {
	folded := naming.Normalize(name)
	for _, part := range [...]func(*trace.Task) string{
		func(t *trace.Task) string { return t.Title },
		func(t *trace.Task) string { return t.Key },
		func(t *trace.Task) string { return string(t.ID) },
	} {
		for i := range n {
			if word := part(&n[i]); word != "" && naming.Normalize(word) == folded {
				return n[i].ID, true
			}
		}
	}
	return "", false
}

// IDs returns what names mean, without those that mean nothing.
func (n TaskNames) IDs(names []string) (all []task.ID) {
	for _, name := range names {
		if id, ok := n.Find(name); ok {
			all = append(all, id)
		}
	}
	return all
}

// Suggest says what to write in the place of a name that means nothing: the
// title or key that is nearest, else the first of them.
func (n TaskNames) Suggest(name string) string {
	var known []string
	for i := range n {
		known = append(known, n[i].Title)
	}
	for i := range n {
		if n[i].Key != "" && !slices.Contains(known, n[i].Key) {
			known = append(known, n[i].Key)
		}
	}
	return naming.Suggest(name, known)
}
