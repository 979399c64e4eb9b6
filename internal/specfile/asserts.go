package specfile

import (
	"fmt"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// Assertions. A plan checks whether they hold. The names in them are checked as soon as
// they are known, before any model is called.

// readAsserts reads lists of assertions.
func (r *reader) readAsserts(lists ...*node) {
	for _, n := range lists {
		for _, item := range n.parts() {
			a, err := flow.ParseAssertion(item.text)
			if err != nil {
				continue // reported when the list was checked
			}
			a.Line = item.origin().String()
			for range r.file.Assert(a) {
				r.places.asserts = append(r.places.asserts, item)
			}
		}
	}
}

// Assert adds an assertion to those of the run: one for each tool, if its reader is a server. It
// returns how many these are.
func (f *File) Assert(a flow.Assertion) int {
	readers := f.Tools.exactReaders(a.Reader)
	for _, reader := range readers {
		if a.Reader = reader; len(readers) > 1 {
			a.Text = f.Tools.respell(a.String()) // says which one does not hold
		}
		f.Run.Assert = append(f.Run.Assert, a)
	}
	return len(readers)
}

// unknownNames reports assertions that name a reader, an input or a task that no run of
// this file can have. Nil endpoints mean that they are not known yet; readers that may be
// endpoints are then accepted.
func (f *File) unknownNames(endpoints []string) (found task.Problems) {
	if len(f.Run.Assert) == 0 {
		return nil
	}
	readers, inputs, tasks := f.readers(endpoints), f.inputs(), f.titles()
	for i := range f.Run.Assert {
		a := &f.Run.Assert[i]
		no := func(what, name, normal string, known nameList) {
			if len(found) < tooMany && known.lacks(normal) {
				found = append(found, task.Problem{
					Pointer: naming.Pointer("assert", i), Subject: fmt.Sprintf("assertion %q", a.Text),
					Message: fmt.Sprintf("no %s %q", what, name), Hint: naming.Suggest(name, known.shown), Err: task.ErrUnknown,
				})
			}
		}
		switch name := a.Subject.Name; a.Subject.Kind {
		case flow.OfInput:
			no("input", name, name, inputs)
		case flow.OfTask:
			no("task", name, naming.Normalize(name), tasks)
		}
		if may := strings.Contains(a.Reader, "://") || strings.HasPrefix(a.Reader, "("); !may || endpoints != nil {
			if f.Tools.follows(a.Reader) {
				continue
			}
			kind, alike := naming.Alike("reader", a.Reader, readers.shown)
			no(kind, a.Reader, strings.TrimRight(a.Reader, "/"), nameList{readers.names, alike})
		}
	}
	return found
}

// A nameList holds the normalized forms of names. The zero value means that the names are
// not known.
type nameList struct {
	names map[string]bool
	shown []string // the first names as written, for hints
}

func (r *nameList) add(name string, normal ...string) {
	if r.names == nil {
		r.names = make(map[string]bool)
	}
	for _, n := range normal {
		r.names[n] = true
	}
	if len(r.shown) < tooMany { // each is compared with an unknown name
		r.shown = append(r.shown, name)
	}
}

// lacks reports whether the names are known and a name is not among them.
func (r *nameList) lacks(normal string) bool { return r.names != nil && !r.names[normal] }

// readers returns everyone who may read something in a run. It is not known if an agent
// has no name, since an assertion may mean that agent.
func (f *File) readers(endpoints []string) (known nameList) {
	if nameless(f) {
		return nameList{}
	}
	for i := range f.Agents {
		name := f.Agents[i].Member.Name
		known.add(name, name)
	}
	if hasGoal(f) || len(f.Tasks) == 0 {
		known.add(handoff.Coordinator, handoff.Coordinator)
	}
	known.add(handoff.User, handoff.User)
	for s := range AllTasks(f.Tasks) {
		if s.IsComputed() || s.Verify != nil {
			known.add(handoff.Computed, handoff.Computed)
			break
		}
	}
	for _, name := range f.Tools.readers() {
		known.add(name, name)
	}
	for _, url := range endpoints {
		known.add(url, strings.TrimRight(url, "/"))
	}
	return known
}

// inputs returns the names of the inputs; not known if one could not be read.
func (f *File) inputs() (known nameList) {
	if n := f.places.main.node.get("inputs"); n.len() != len(f.Run.Inputs) {
		return nameList{}
	}
	known.names = map[string]bool{}
	for i := range f.Run.Inputs {
		name := f.Run.Inputs[i].Name
		known.add(name, name)
	}
	return known
}

// titles returns the titles, keys and IDs of the tasks; not known if the tasks are still
// to be planned, or if one has no title.
func (f *File) titles() (known nameList) {
	for t := range AllTasks(f.Tasks) {
		if strings.TrimSpace(t.Title) == "" {
			return nameList{}
		}
		known.add(t.Title, naming.Normalize(t.Title), string(task.NewID(t.Title)))
		if t.Key != "" {
			known.add(t.Key, t.Key)
		}
	}
	return f.addJudges(known)
}
