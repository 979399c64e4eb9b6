package planning

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// A reader reads the tasks of one plan.
type reader struct {
	rules  *Rules
	agents map[string]bool
	inputs map[string]bool
	known  []string // keys that the coordinator may write
	specs  []task.Spec
	found  task.Problems
	seen   map[string]bool // pointers that have a problem

	at   int // the task that is read
	spec *task.Spec
}

func newReader(r *Rules, tasks int) *reader {
	return &reader{
		rules: r, agents: set(r.Agents), inputs: set(r.Inputs), known: known(r.MayGrant),
		specs: make([]task.Spec, tasks), seen: map[string]bool{},
	}
}

func set(names []string) map[string]bool {
	in := make(map[string]bool, len(names))
	for _, name := range names {
		in[name] = true
	}
	return in
}

// full reports whether enough problems were found to stop reading.
func (r *reader) full() bool { return len(r.found) >= maxProblems }

// bad adds a problem of the task that is read, unless its place has one.
func (r *reader) bad(err error, message, hint string, path ...any) {
	at := naming.Pointer(append([]any{"tasks", r.at}, path...)...)
	if r.seen[at] || r.full() {
		return
	}
	r.seen[at] = true
	r.found = append(r.found, task.Problem{Pointer: at, Subject: subject(r.at, r.spec.Title), Message: message, Hint: hint, Err: err})
}

// subject names task i in a problem.
func subject(i int, title string) string {
	if title == "" {
		return fmt.Sprintf("task %d", i+1)
	}
	return "task " + quote(title)
}

// task reads item i of the array.
func (r *reader) task(i int, item any) {
	if r.full() {
		return
	}
	r.at, r.spec = i, &r.specs[i]
	r.spec.Tools = []string{}
	members, ok := item.(map[string]any)
	switch {
	case !ok:
		r.bad(task.ErrInvalid, describe(item)+" where a task belongs", `write an object: {"title": …, "description": …}`)
		return
	case len(members) > maxKeys:
		r.bad(ErrUnknownKey, fmt.Sprintf("%d keys, more than a task can have", len(members)), "write only "+strings.Join(r.known, ", "))
		return
	}
	r.members(members)
}

// members reads the keys of a task.
func (r *reader) members(members map[string]any) {
	seen := 0
	for k := range keys {
		v, there := members[keys[k].name]
		if there {
			seen++
		}
		if v != nil {
			keys[k].read(r, v)
		}
	}
	if seen < len(members) {
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if !isKey(name) {
				r.unknownKey(name, members[name])
			}
		}
	}
	for _, name := range [...]string{"title", "description"} {
		if members[name] == nil {
			r.bad(task.ErrInvalid, name+": it is missing", "", name)
		}
	}
}

// unknownKey refuses a key that planned tasks do not have. Keys that other tasks have may
// be null.
func (r *reader) unknownKey(name string, v any) {
	hint, elsewhere := fixed[name]
	switch {
	case elsewhere && v == nil:
	case name == "verify":
		r.bad(ErrNotBuilt, "verify: not built yet", hint, name)
	case elsewhere:
		r.bad(ErrUnknownKey, name+": a plan does not set it", hint, name)
	default:
		hint = r.nearest(name, r.known)
		if key := meant[plain(cut(name, maxWord))]; slices.Contains(r.known, key) {
			hint = "write " + key
		}
		r.bad(ErrUnknownKey, "unknown key "+quote(name), hint, oneLine(name, maxWord))
	}
}

// nearest is a hint for a word of the plan, which may have any length. The time
// to compare words grows with both, so there are hints only for problems that
// the coordinator learns of.
func (r *reader) nearest(word string, known []string) string {
	if len(r.found) >= MaxFaults {
		return ""
	}
	return naming.Suggest(cut(word, 2*maxWord), known)
}

// dependencies counts those of all tasks. Their number is bounded so that a
// plan in which all of them are wrong stays a short list of problems.
func dependencies(specs []task.Spec) (n int) {
	for i := range specs {
		n += len(specs[i].DependsOn)
	}
	return n
}

// resolve adds what is wrong with the tasks as a graph, where nothing is wrong yet.
func (r *reader) resolve() {
	if r.full() {
		return // not all tasks were read
	}
	_, err := task.Resolve(r.specs, time.Time{})
	problems, ok := errors.AsType[task.Problems](err)
	if err != nil && !ok {
		problems = task.Problems{*whole(err.Error(), "")}
	}
	for _, p := range problems {
		if i := naming.TaskIndex(p.Pointer); r.seen[p.Pointer] || r.seen[naming.Pointer("tasks", i)] {
			continue
		}
		if p.Err == task.ErrUnknown && !strings.HasPrefix(p.Hint, "did you mean") {
			p.Hint = "write the title of another task of this plan" // there are no keys, and ids are not known
		}
		r.found = append(r.found, p)
	}
	slices.SortStableFunc(r.found, func(a, b task.Problem) int { return naming.TaskIndex(a.Pointer) - naming.TaskIndex(b.Pointer) })
}
