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
	specs  []task.Spec
	read   int // tasks, with those of loops
	found  task.Problems
	seen   map[string]bool // pointers that have a problem

	// The task that is read.
	keys []key // that it may have
	path []any // to it
	spec *task.Spec
}

func newReader(r *Rules, tasks int) *reader {
	return &reader{
		rules: r, agents: set(r.Agents), inputs: set(r.Inputs), keys: keysOf(r.MayPlan),
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

// full reports whether enough was found to stop reading.
func (r *reader) full() bool { return len(r.found) >= maxProblems || r.read > MaxTasks }

// bad adds a problem of the task that is read, unless its place has one.
func (r *reader) bad(err error, message, hint string, path ...any) {
	at := naming.Pointer(slices.Concat(r.path, path)...)
	if r.seen[at] || r.full() {
		return
	}
	r.seen[at] = true
	r.found = append(r.found, task.Problem{Pointer: at, Subject: subject(at, r.spec.Title), Message: message, Hint: hint, Err: err})
}

// subject names the task that a pointer leads into.
func subject(pointer, title string) string {
	if title == "" {
		return "task " + number(pointer)
	}
	return "task " + quote(title)
}

// task reads a task, to which a path leads.
func (r *reader) task(item any, spec *task.Spec, path ...any) {
	if r.full() {
		return
	}
	r.spec, r.path, r.read = spec, path, r.read+1
	r.spec.Tools = []string{}
	members, ok := item.(map[string]any)
	switch {
	case !ok:
		r.bad(task.ErrInvalid, describe(item)+" where a task belongs", `write an object: {"title": …, "description": …}`)
		return
	case len(members) > maxKeys:
		r.bad(ErrUnknownKey, fmt.Sprintf("%d keys, more than a task can have", len(members)), "write only "+strings.Join(known(r.keys, r.rules.MayGrant), ", "))
		return
	}
	r.members(members)
}

// members reads the keys of a task.
func (r *reader) members(members map[string]any) {
	seen := 0
	for k := range r.keys {
		v, there := members[r.keys[k].name]
		if there {
			seen++
		}
		if v != nil {
			r.keys[k].read(r, v)
		}
	}
	if seen < len(members) {
		for _, name := range slices.Sorted(maps.Keys(members)) {
			if !isKey(r.keys, name) {
				r.unknownKey(name, members[name])
			}
		}
	}
	for _, name := range [...]string{"title", "description"} {
		if members[name] == nil && (name == "title" || r.spec.Repeat == nil) {
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
	case elsewhere:
		r.bad(ErrUnknownKey, name+": a plan does not set it", hint, name)
	default:
		known := known(r.keys, r.rules.MayGrant)
		hint = r.nearest(name, known)
		if key := meant[plain(cut(name, maxWord))]; slices.Contains(known, key) {
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

// hasProblem reports whether a value has one of the problems, or what it is a part of.
func hasProblem(problems map[string]bool, pointer string) bool {
	for pointer != "" && !problems[pointer] {
		pointer = pointer[:strings.LastIndexByte(pointer, '/')]
	}
	return pointer != ""
}

// resolve adds what is wrong with the tasks as a graph, where nothing is wrong yet. Of loops and
// lists, this is what is wrong with how they are written.
func (r *reader) resolve() {
	if r.full() {
		return // not all tasks were read
	}
	_, places, err := task.Unroll(r.specs)
	if err == nil && places == nil {
		_, err = task.Resolve(r.specs, time.Time{})
	}
	problems, ok := errors.AsType[task.Problems](err)
	if err != nil && !ok {
		problems = task.Problems{*whole(err.Error(), "")}
	}
	for _, p := range problems {
		if hasProblem(r.seen, p.Pointer) {
			continue
		}
		if p.Err == task.ErrUnknown && !strings.HasPrefix(p.Hint, "did you mean") {
			p.Hint = "write the title of another task of this plan" // there are no keys, and ids are not known
		}
		r.seen[p.Pointer] = true // a loop has one problem for each round
		r.found = append(r.found, p)
	}
	slices.SortStableFunc(r.found, func(a, b task.Problem) int { return naming.TaskIndex(a.Pointer) - naming.TaskIndex(b.Pointer) })
}
