package naming

import (
	"cmp"
	"errors"
	"fmt"
)

// TaskNames are what a person may call a task. Empty ones name nothing.
type TaskNames struct {
	Title string
	Key   string
	ID    string
	Name  string // of an instance, by the keys of its items
}

// A TaskList has the names of some tasks, in their order.
type TaskList []TaskNames

// Find returns the place of the task that a person means by a name. A title takes precedence over a key, a key over an
// ID, and an ID over the name of an instance. Letter case and surrounding spaces do not matter.
func (l TaskList) Find(name string) (place int, known bool) {
	folded := Normalize(name)
	for _, word := range byPrecedence {
		for i := range l {
			if folded != "" && Normalize(word(&l[i])) == folded {
				return i, true
			}
		}
	}
	return 0, false
}

// Index returns a function that does what [TaskList.Find] does, for many names of a long list.
func (l TaskList) Index() (find func(name string) (place int, known bool)) {
	places := make(map[string]int, len(l))
	for _, word := range byPrecedence {
		for i := range l {
			folded := Normalize(word(&l[i]))
			if _, taken := places[folded]; !taken && folded != "" {
				places[folded] = i
			}
		}
	}
	return func(name string) (int, bool) {
		place, known := places[Normalize(name)]
		return place, known
	}
}

// byPrecedence are the names of a task, those first that take precedence.
var byPrecedence = [...]func(*TaskNames) string{
	func(n *TaskNames) string { return n.Title },
	func(n *TaskNames) string { return n.Key },
	func(n *TaskNames) string { return n.ID },
	func(n *TaskNames) string { return n.Name },
}

// Known returns what people call the tasks: names or titles, then keys.
func (l TaskList) Known() (known []string) {
	for i := range l {
		known = append(known, cmp.Or(l[i].Name, l[i].Title))
	}
	for i := range l {
		if key := l[i].Key; key != "" {
			known = append(known, key)
		}
	}
	return known
}

// Unknown returns the error about a name that none of the tasks has.
func (l TaskList) Unknown(name string) *UnknownTaskError {
	known := l.Known()
	near, _ := Nearest(name, known)
	return &UnknownTaskError{name, near, Suggest(name, known)}
}

// ErrUnknownTask reports a name that no task has. An [*UnknownTaskError] wraps it.
var ErrUnknownTask = errors.New("unknown task")

// An UnknownTaskError says what to write in place of a name that no task has.
type UnknownTaskError struct {
	Name    string
	Nearest string // what the person most likely meant; may be empty
	Hint    string // what to write
}

func (e *UnknownTaskError) Error() string {
	return fmt.Sprintf("%v %q; %s", ErrUnknownTask, e.Name, e.Hint)
}

// Unwrap returns ErrUnknownTask.
func (e *UnknownTaskError) Unwrap() error { return ErrUnknownTask }
