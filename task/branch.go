package task

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/condition"
	"github.com/runteam/runteam/internal/naming"
)

// linksOf returns how many dependencies a spec has at most, with those that its condition reads.
func linksOf(s *Spec) int {
	n := len(s.DependsOn)
	for k := range s.DependsOn {
		n += len(s.DependsOn[k].OneOf)
	}
	s.When.Leaves(func(*Condition) { n++ })
	if s.Instance != nil {
		n += len(s.Instance.Lists) + len(s.Instance.Again)
		s.Instance.Guard.Leaves(func(*Condition) { n++ })
		for _, until := range s.Instance.Until {
			until.Leaves(func(*Condition) { n++ })
		}
	}
	if s.When != nil && s.When.Op == condition.Else {
		n++
	}
	return n
}

// alternatives adds the dependencies of a reference that names several tasks.
func (r *resolver) alternatives(l *linker, slab []Ref, i, k int) []Ref {
	ref := &r.specs[i].DependsOn[k]
	bad := func(message, hint string, err error, path ...any) {
		r.found.add(i, Problem{
			Pointer: pointer(i, append([]any{"dependsOn", k}, path...)...), Subject: subject(i, r.tasks[i].Title),
			Message: fmt.Sprintf("dependsOn[%d]: %s", k, message), Hint: hint, Err: err,
		})
	}
	switch {
	case ref.Task != "":
		bad("it has task and oneOf", "write one of them", ErrInvalid)
		return slab
	case len(ref.OneOf) == 1 && (r.specs[i].Instance == nil || !r.specs[i].Instance.Joins): // a loop may have one round
		bad("oneOf has one task", "write task instead", ErrInvalid, "oneOf")
		return slab
	case !ref.As.valid():
		r.found.add(i, badPayload(&r.tasks[i], i, k, ref.As))
	}
	ids := make([]string, len(ref.OneOf))
	start := len(slab)
	for n, name := range ref.OneOf {
		j, p := r.find(name)
		if p.Err != nil {
			bad("oneOf: "+p.Message, p.Hint, p.Err, "oneOf", n)
			continue
		}
		if l.link(i, int(j), k, true) {
			ids[n] = string(r.tasks[j].ID)
			one := resolved(ref, r.tasks[j].ID, r.specs[i].NeedToKnow)
			one.OneOf = ids
			slab = append(slab, one)
		}
	}
	if len(slab)-start < len(ids) { // reported
		return slab[:start]
	}
	return slab
}

// condition resolves the condition of a task, and adds what it reads to the dependencies.
func (r *resolver) condition(l *linker, slab []Ref, i int) []Ref {
	t := &r.tasks[i]
	bad := func(err error, message, hint string, path ...any) {
		r.found.add(i, Problem{Pointer: pointer(i, append([]any{"when"}, path...)...), Subject: subject(i, t.Title), Message: "when: " + message, Hint: hint, Err: err})
	}
	t.When = r.specs[i].When.Clone()
	if t.When == nil {
		return r.reads(l, slab, i, bad)
	}
	if path, err := t.When.Check(); err != nil {
		bad(ErrInvalid, err.Error(), "write a condition such as {task: Triage, path: /team, equals: billing}", path...)
		return slab
	}
	if t.When.Op == condition.Else {
		left, hint := r.left(i)
		if left == nil {
			bad(ErrInvalid, "it is not clear which values else takes", hint)
			return slab
		}
		t.When = left
	}
	return r.reads(l, slab, i, bad)
}

// reads adds the dependencies that the condition of a task reads, and those that end a loop, which
// may be missing.
func (r *resolver) reads(l *linker, slab []Ref, i int, bad func(err error, message, hint string, path ...any)) []Ref {
	t, start, optional := &r.tasks[i], len(slab), false
	isElse := r.specs[i].When != nil && r.specs[i].When.Op == condition.Else
	guards := false
	add := func(c *Condition) {
		j, p := r.find(c.Task)
		if p.Err != nil && guards {
			r.found.add(i, Problem{Pointer: pointer(i, "guard"), Subject: subject(i, t.Title), Message: "when: " + p.Message, Hint: p.Hint, Err: p.Err})
			return
		}
		var at []any // where the file has the comparison, unless that is at another task
		if path, _ := t.When.PathOf(c); !isElse {
			at = append(path, "task")
		}
		switch {
		case p.Err != nil && isElse:
			return // reported at the other task
		case p.Err != nil:
			bad(p.Err, p.Message, p.Hint, at...)
			return
		case int(j) == i:
			bad(ErrSelf, "it reads the result of the task itself", "name a task before it", at...)
			return
		}
		c.Task = string(r.tasks[j].ID)
		if addNeed(slab[start:], c) {
			return
		}
		l.read(i, int(j), optional)
		slab = append(slab, Ref{Task: c.Task, As: Structured, Need: []Path{Path(c.Path)}, Optional: optional})
	}
	t.When.Leaves(add)
	if t.Instance != nil {
		until := t.Instance.Until
		t.Instance = new(*t.Instance)
		t.Instance.Guard = t.Instance.Guard.Clone()
		guards = true
		t.Instance.Guard.Leaves(add)
		t.Instance.When = t.Instance.When.Clone()
		t.Instance.When.Leaves(add) // Guard has it, so it adds nothing
		guards = false
		t.Instance.Lists = readLists(t.Instance.Lists, add, func(list *List) {
			if k := slices.IndexFunc(slab[start:], func(of Ref) bool { return of.Task == list.Task }); k >= 0 {
				slab[start+k].Item = list.item() // the conditions may read the same result
			}
		})
		t.Instance.Until, optional = make([]*Condition, len(until)), true
		for k := range until {
			t.Instance.Until[k] = until[k].Clone()
			t.Instance.Until[k].Leaves(add)
		}
		slab = r.rereads(l, slab, i)
	}
	t.Reads = len(slab) - start
	return slab
}

// addNeed adds what a condition compares to the reference to its task, and reports whether there is one.
func addNeed(refs []Ref, c *Condition) bool {
	k := slices.IndexFunc(refs, func(of Ref) bool { return of.Task == c.Task })
	if k < 0 {
		return false
	}
	if !slices.Contains(refs[k].Need, Path(c.Path)) {
		refs[k].Need = append(refs[k].Need, Path(c.Path))
	}
	return true
}

// readLists returns lists of which those in results have the IDs of their tasks. read adds what is read
// of each of these, and then added is called.
func readLists(lists []*List, read func(*Condition), added func(*List)) []*List {
	lists = slices.Clone(lists)
	for n, list := range lists {
		if list.Task == "" {
			continue
		}
		list = new(*list)
		for _, path := range list.paths() {
			item := Condition{Task: list.Task, Path: string(path)}
			read(&item)
			list.Task = item.Task
		}
		added(list)
		lists[n] = list
	}
	return lists
}

// rereads adds the dependencies on what the round of a task reads of the one before.
func (r *resolver) rereads(l *linker, slab []Ref, i int) []Ref {
	for _, ref := range r.tasks[i].Instance.Again {
		if j, p := r.find(ref.Task); p.Err == nil && l.read(i, int(j), true) {
			slab = append(slab, resolved(&ref, r.tasks[j].ID, nil))
		}
	}
	return slab
}

// left returns the condition that holds if those of all other tasks do not that compare one
// and the same value. It returns a hint if they compare several values, or none.
func (r *resolver) left(i int) (left *Condition, hint string) {
	return leftBy(r.specs, i, func(name string) string {
		if j, p := r.find(name); p.Err == nil {
			return string(r.tasks[j].ID)
		}
		return naming.Normalize(name)
	})
}

// leftBy is left for some tasks; of tells which names mean the same task.
func leftBy(specs []Spec, i int, of func(name string) string) (left *Condition, hint string) {
	const write = "write the condition in full, such as {not: {task: Triage, path: /team, in: [billing, sales]}}"
	var others []Condition
	values := map[string]string{} // by task and path: the same for people
	for k := range specs {
		when := specs[k].When
		if k == i || when == nil || when.Op == condition.Else || specs[k].inLoop() != specs[i].inLoop() {
			continue
		}
		if at, name, ok := single(when, of); ok {
			values[at] = name
			others = append(others, *when.Clone())
		}
	}
	switch len(values) {
	case 0:
		return nil, "no other task compares a value; " + write
	case 1:
		return &Condition{Op: condition.Not, Of: []Condition{{Op: condition.Any, Of: others}}}, ""
	}
	names := make([]string, 0, len(values))
	for _, name := range values {
		names = append(names, name)
	}
	slices.Sort(names)
	return nil, "other tasks compare " + strings.Join(names, " and ") + "; " + write
}

// inLoop returns the loop that a task was written out of; empty for none.
func (s *Spec) inLoop() string {
	if s.Instance == nil {
		return ""
	}
	return s.Instance.Loop
}

// single returns the value that a condition compares, if that is one.
func single(c *Condition, of func(name string) string) (at, name string, ok bool) {
	ok = true
	c.Leaves(func(c *Condition) {
		own := of(c.Task) + c.Path
		if at != "" && at != own {
			ok = false
		}
		at, name = own, fmt.Sprintf("%s of %s", c.Path, naming.Quote(c.Task))
	})
	return at, name, ok && at != ""
}
