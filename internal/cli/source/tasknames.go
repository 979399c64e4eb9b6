package source

import (
	"slices"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// TaskNames are the tasks that a name may mean: a title, a key or an ID. Letter case and surrounding
// spaces do not matter.
type TaskNames []trace.Task

// NewTaskNames returns the tasks of a spec.
func NewTaskNames(file *specfile.File) (all TaskNames) {
	for _, t := range specfile.WrittenOut(file.Tasks) {
		all = append(all, trace.Task{ID: task.NewID(t.Title), Key: t.Key, Title: t.Title})
	}
	return all
}

// Find returns the ID of the task that a name means. Titles take precedence over keys, and keys over
// IDs.
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

// IDs returns the IDs of the known names.
func (n TaskNames) IDs(names []string) (all []task.ID) {
	for _, name := range names {
		all = append(all, n.FindAll(name)...)
	}
	return all
}

// FindAll is Find for a name that may also mean all rounds, or all items, of a task.
func (n TaskNames) FindAll(name string) (all []task.ID) {
	if id, ok := n.Find(name); ok {
		return []task.ID{id}
	}
	folded := naming.Normalize(name)
	for i := range n {
		if naming.Normalize(naming.WithoutInstance(n[i].Title)) == folded {
			all = append(all, n[i].ID)
		}
	}
	return all
}

// Suggest says what to write instead of an unknown name: the nearest title or key, else the first
// ones.
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
