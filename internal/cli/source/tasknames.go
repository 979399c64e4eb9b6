package source

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// TaskNames are the tasks that a name may mean: a title, a key, an ID, or the name of an instance that
// has run. Letter case and surrounding spaces do not matter.
type TaskNames []trace.Task

// NewTaskNames returns the tasks of a spec.
func NewTaskNames(file *specfile.File) (all TaskNames) {
	for _, t := range specfile.WrittenOut(file.Tasks) {
		all = append(all, trace.Task{ID: task.NewID(t.Title), Key: t.Key, Title: t.Title})
	}
	return all
}

// Find returns the ID of the task that a person means by a name; see [naming.TaskList.Find].
func (n TaskNames) Find(name string) (task.ID, bool) {
	i, known := trace.Names(n).Find(name)
	if !known {
		return "", false
	}
	return n[i].ID, true
}

// NamesItem reports whether a name is that which an instance had in a run, and nothing else.
func (n TaskNames) NamesItem(name string) bool {
	id, known := n.Find(name)
	i := slices.IndexFunc(n, func(t trace.Task) bool { return t.ID == id })
	return known && n[i].Name != "" && n[i].Name != n[i].Title && naming.Normalize(n[i].Name) == naming.Normalize(name)
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

// AddNames adds the names that instances had in a run.
func (n TaskNames) AddNames(run TaskNames) {
	names := map[task.ID]string{}
	for i := range run {
		names[run[i].ID] = run[i].Name
	}
	for i := range n {
		n[i].Name = names[n[i].ID]
	}
}

// Suggest says what to write instead of an unknown name. It is the nearest title or key, else the first
// ones. How many items a list will have is not known: for those without a name it is their task.
func (n TaskNames) Suggest(name string) string {
	if list, item, ok := strings.Cut(name, "["); ok && strings.Trim(item, "0123456789]") != "" {
		if first := n.instance(list); first != "" {
			return fmt.Sprintf("items have names once the list is known; write a position, such as %s, or %s for all", first, strings.TrimSpace(list))
		}
	}
	shown := slices.Clone(n)
	for i := range shown {
		if t := &shown[i]; t.Name == "" {
			t.Title = naming.WithoutInstance(t.Title)
		}
	}
	var known []string
	for _, word := range trace.Names(shown).Known() {
		if !slices.Contains(known, word) {
			known = append(known, word)
		}
	}
	return naming.Suggest(name, known)
}

// instance returns the title of the first item of a list whose items have no names yet; it is empty
// if there is none.
func (n TaskNames) instance(list string) (first string) {
	for _, id := range n.FindAll(list) {
		t := n[slices.IndexFunc(n, func(t trace.Task) bool { return t.ID == id })]
		switch {
		case t.Name != "":
			return ""
		case first == "" && strings.HasSuffix(t.Title, "]") && naming.WithoutInstance(t.Title) != t.Title:
			first = t.Title
		}
	}
	return first
}
