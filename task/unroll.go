package task

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/internal/condition"
	"github.com/runteam/runteam/internal/naming"
)

// Bounds of loops.
const (
	maxRounds   = 100
	maxNesting  = 3
	maxUnrolled = 100_000
	maxReads    = 1_000_000 // of instances, by all tasks together
)

// Unroll writes out the loops of specs: each round as tasks of its own, which run if the loop has
// not ended before, and each loop as a task that has the result of its last round. A task for each
// item of a list is written out once for each item that there may be. It also returns where each
// task is written. Specs without loops, lists and judges are returned as they are, with nil. The
// error is [Problems], with pointers into the specs as given.
func Unroll(specs []Spec) (tasks []Spec, places []Place, err error) {
	if !slices.ContainsFunc(specs, isUnrolled) {
		return specs, nil, nil
	}
	u := unroller{found: &findings{}}
	u.list(specs, &scope{pointer: "/tasks"})
	u.outside.check(&u)
	reported := map[[2]string]bool{}
	u.found.list = slices.DeleteFunc(u.found.list, func(f finding) bool { // what is wrong in one round is wrong in each
		key := [2]string{f.Pointer, f.Message}
		again := reported[key]
		reported[key] = true
		return again
	})
	return u.out, u.places, u.found.err()
}

// isUnrolled reports whether a spec is a loop, runs for each item of a list, has judges, or names
// rounds or items.
func isUnrolled(s Spec) bool {
	return s.Repeat != nil || s.ForEach != nil || s.Verify != nil || slices.ContainsFunc(s.DependsOn, func(ref Ref) bool { return ref.Each != "" || ref.Round != "" })
}

// A Place is where a task is written that [Unroll] returns.
type Place struct {
	Pointer   string // such as /tasks/2/repeat/tasks/0
	DependsOn []int  // for each dependency, which one it is there; -1 for the item of a list, and -2-k for one that it uses as k
	Uses      []int  // for each use, which one it is there; -1 for the item of a list
}

// An unroller writes out loops and lists.
type unroller struct {
	out    []Spec
	places []Place // parallel to out
	reads  int     // how many instances tasks read, with each

	rereads int // how many results tasks wait for because their rounds are compared
	outside outsideNames
	found   *findings
}

// A scope is one round of a loop, one item of a list, or the tasks outside of both.
type scope struct {
	outer    *scope
	pointer  string            // to the list of its tasks
	pointers []string          // to each of its tasks, if they are in no list
	specs    []Spec            // its tasks
	suffix   string            // of the titles of its tasks, such as #2.1 or [3]#2
	names    map[string]string // the titles of its tasks in this round, by normalized title and key
	loop     string            // the title of the loop; empty outside
	key      int               // the index of the spec at the top, for the order of problems
	depth    int
	round    int
	rounds   int
	guard    *Condition // what its tasks need in order to run, besides their own conditions
	guardAt  string     // where that is written
	when     *Condition // the condition of the list that its tasks are written in
	compare  bool       // it does not run if it repeats an earlier round
	again    []Ref      // what is compared for that, here or in the round around it
	lists    []*List    // that it has an item of each
	item     itemScope  // the item of the last of them, of a scope for an item

	onFailure string // of the loop or list around its tasks, for those that have none
}

// list writes out the tasks of one scope.
func (u *unroller) list(specs []Spec, in *scope) {
	specs = slices.Clone(specs)
	for i := range specs {
		specs[i].Title = strings.TrimSpace(specs[i].Title) // something may follow
	}
	in.specs, in.names = specs, make(map[string]string, len(specs))
	for i := range specs {
		s := &specs[i]
		s.OnFailure = cmp.Or(s.OnFailure, in.onFailure)
		in.names[naming.Normalize(s.Title)] = s.Title + in.suffix
		if s.Key != "" {
			in.names[s.Key] = s.Title + in.suffix
		}
	}
	in.boundLists()
	if in.compare && in.round > 1 {
		in.again = in.rereads()
	}
	for i := range specs {
		if in.outer == nil {
			in.key = i
		}
		if len(u.out) > maxUnrolled {
			break
		}
		switch {
		case specs[i].Repeat != nil && specs[i].ForEach != nil:
			u.bad(in, i, "", "it has both repeat and forEach", "put the loop into a task of its own")
			continue
		case specs[i].Repeat != nil && specs[i].Verify != nil:
			u.bad(in, i, "/verify", "it has both repeat and verify", "write verify in the task of the loop whose result the judges see")
			continue
		case specs[i].Verify != nil && !u.checkVerify(&specs[i], in, i):
			continue // it is reported
		case specs[i].Repeat != nil:
			u.repeat(specs, i, in)
			continue
		case specs[i].ForEach != nil:
			u.forEach(specs, i, in)
			continue
		}
		s, at := u.task(specs, i, in)
		u.addJudged(s, at, specs, i, in)
	}
	if len(u.out) > maxUnrolled && in.outer == nil {
		u.bad(in, 0, "", fmt.Sprintf("the rounds of all loops, and the items of all lists, have more than %d tasks together", maxUnrolled), "lower maxRounds or maxItems")
	}
}

// add adds a task that is written at a pointer.
func (u *unroller) add(s Spec, at Place) { u.out, u.places = append(u.out, s), append(u.places, at) }

// bad reports a problem of spec i.
func (u *unroller) bad(in *scope, i int, path, message, hint string) {
	u.found.add(in.key, Problem{Pointer: in.at(i) + path, Subject: subject(i, in.specs[i].Title), Message: message, Hint: hint, Err: ErrInvalid})
}

// checkWord reports a word in spec i that is none of those known.
func (u *unroller) checkWord(in *scope, i int, path, key, word string, known ...string) {
	if word != "" && !slices.Contains(known, word) {
		u.bad(in, i, path, fmt.Sprintf("%s: unknown word %s", key, naming.Quote(word)), wordHint(word, known))
	}
}

// unknown reports a name of no task in spec i.
func (u *unroller) unknown(in *scope, i int, path, where, name string) {
	u.found.add(in.key, Problem{
		Pointer: in.at(i) + path, Subject: subject(i, in.specs[i].Title), Message: where + "no task " + naming.Quote(name), Hint: naming.Suggest(name, in.titles()), Err: ErrUnknown,
	})
}

// at returns the pointer to spec i of a scope.
func (in *scope) at(i int) string {
	if in.pointers != nil {
		return in.pointers[i]
	}
	return in.pointer + "/" + strconv.Itoa(i)
}

// task returns a task of a scope, and where it is written.
func (u *unroller) task(specs []Spec, i int, in *scope) (Spec, Place) {
	s, place := specs[i], Place{Pointer: in.at(i)}
	if in.outer != nil {
		s.Instance = &Instance{
			Pointer: in.at(i), Title: s.Title, Key: s.Key, Loop: in.loop, Round: in.round, Rounds: in.rounds,
			Lists: in.lists, Guard: in.guard, GuardAt: in.guardAt, When: in.when, Again: in.again,
		}
		u.countRereads(in, i)
		s.Title, s.Key = s.Title+in.suffix, ""
	}
	names := in
	if in.item.all { // of a task that runs for each item by itself, the others are around it
		names = in.outer
	}
	s.DependsOn = nil
	for k, ref := range specs[i].DependsOn {
		if ref.Each != "" {
			s.DependsOn = append(s.DependsOn, u.each(&ref, names, i, k)...)
		} else if u.reference(&ref, names, i, k) {
			s.DependsOn = append(s.DependsOn, ref)
		} else if s.Instance != nil && ref.Round == Previous {
			s.Instance.Lacks = append(s.Instance.Lacks, in.namesOf(ref.Task)...)
		}
		for len(place.DependsOn) < len(s.DependsOn) {
			place.DependsOn = append(place.DependsOn, k)
		}
	}
	u.grantItems(&s, &place, in, i)
	s.When = u.condition(specs, i, names)
	return s, place
}

// countRereads bounds how many results the tasks of all rounds wait for because rounds are compared.
func (u *unroller) countRereads(in *scope, i int) {
	before := u.rereads
	if u.rereads += len(in.again); before <= maxReads && u.rereads > maxReads {
		u.bad(in, i, "", fmt.Sprintf("the rounds of all loops are compared by more than %d results", maxReads), "write onRepeat: continue for its loop")
	}
}

// reference finds what a dependency means in a scope. It reports whether there is one.
func (u *unroller) reference(ref *Ref, in *scope, i, k int) bool {
	at := "/dependsOn/" + strconv.Itoa(k)
	if ref.Round == "" {
		if u.namesList(ref, in, i, k) {
			return false
		}
		if in.outer != nil && len(ref.OneOf) == 0 && !in.knows(ref.Task) {
			u.unknown(in, i, at, "dependsOn["+strconv.Itoa(k)+"]: ", ref.Task)
			return false
		}
		where := "dependsOn[" + strconv.Itoa(k) + "]: "
		ref.OneOf = slices.Clone(ref.OneOf)
		for n := range ref.OneOf {
			ref.OneOf[n] = u.outside.find(ref.OneOf[n], in, i, at, where)
		}
		if len(ref.OneOf) == 0 {
			ref.Task = u.outside.find(ref.Task, in, i, at, where)
		}
		return true
	}
	own, known := in.names[naming.Normalize(ref.Task)]
	switch {
	case ref.Round != Previous:
		u.bad(in, i, at+"/round", fmt.Sprintf("unknown round %s", naming.Quote(ref.Round)), "write previous, or leave it out for the same round")
	case in.loop != "" && in.item.list != nil:
		u.bad(in, i, at+"/round", "the task is in a list, and only the tasks of the loop itself can read its previous round", "read it in a task of the loop beside the list, and depend on that task")
	case in.loop == "":
		u.bad(in, i, at+"/round", "the task is not in a loop, so it has no previous round", "remove round")
	case !known:
		u.bad(in, i, at+"/task", fmt.Sprintf("the loop has no task %s", naming.Quote(ref.Task)), "name a task of the same loop")
	case !ref.Optional:
		u.bad(in, i, at, "the first round has no previous one", "write optional: true")
	case in.round > 1:
		ref.Task, ref.Round = in.before(own), ""
		return true
	}
	return false
}

// namesOf returns the title and the key of a task of this scope.
func (in *scope) namesOf(name string) (names []string) {
	for i := range in.specs {
		if s := &in.specs[i]; isNamed(s, name) {
			names = append(names, s.Title)
			if s.Key != "" {
				names = append(names, s.Key)
			}
		}
	}
	return names
}

// namesList reports a dependency on a task that runs for each item of a list.
func (u *unroller) namesList(ref *Ref, in *scope, i, k int) bool {
	at, names := "/dependsOn/"+strconv.Itoa(k), ref.OneOf
	if len(names) == 0 {
		names = []string{ref.Task}
	}
	for _, name := range names {
		if title, ok := in.listNamed(name); ok {
			u.bad(in, i, at, runsForEach(name), "write {each: "+title+"} for the results of all items")
			return true
		}
	}
	return false
}

// listNamed reports whether a name means a task that runs for each item of a list, and its title.
func (in *scope) listNamed(name string) (title string, ok bool) {
	for s := in; s != nil; s = s.outer {
		if n := slices.IndexFunc(s.specs, func(t Spec) bool { return isNamed(&t, name) }); n >= 0 {
			return s.specs[n].Title, s.specs[n].ForEach != nil
		}
	}
	return "", false
}

// runsForEach says that a task has many results.
func runsForEach(name string) string { return naming.Quote(name) + " runs for each item of a list" }

// before returns the title in the previous round of a task of this one.
func (in *scope) before(title string) string {
	return title[:len(title)-len(in.suffix)] + suffixOf(in.outer.suffix, in.round-1)
}

// rereads returns what the tasks of a round, and their judges, read of the one before, with one
// reference for each result.
func (in *scope) rereads() (all []Ref) {
	add := func(refs []Ref, need []Path) {
		for _, ref := range refs {
			own, known := in.names[naming.Normalize(ref.Task)]
			if ref.Round != Previous || !known {
				continue
			}
			if ref.Need == nil {
				ref.Need = need
			}
			title := in.before(own)
			k := slices.IndexFunc(all, func(of Ref) bool { return of.Task == title })
			switch {
			case k < 0:
				all = append(all, Ref{Task: title, Need: slices.Clone(ref.Need), Optional: true})
			case all[k].Need == nil || ref.Need == nil:
				all[k].Need = nil
			default:
				all[k].Need = append(all[k].Need, ref.Need...)
			}
		}
	}
	for i := range in.specs {
		s := &in.specs[i]
		add(s.DependsOn, s.NeedToKnow)
		if s.Verify != nil {
			for k := range s.Verify.Judges {
				add(s.Verify.Judges[k].DependsOn, nil)
			}
		}
	}
	return all
}

// suffixOf returns the suffix of the titles of a round.
func suffixOf(outer string, round int) string {
	if outer == "" || strings.HasSuffix(outer, "]") {
		return outer + "#" + strconv.Itoa(round)
	}
	return outer + "." + strconv.Itoa(round)
}

// find returns the title that a name means: of a task of the same round, else of one outside.
func (in *scope) find(name string) string {
	for s := in; s != nil; s = s.outer {
		if title, ok := s.names[naming.Normalize(name)]; ok && s.outer != nil {
			return title
		}
	}
	return name
}

// condition returns the condition of spec i.
func (u *unroller) condition(specs []Spec, i int, in *scope) *Condition {
	when := specs[i].When
	when.Leaves(func(c *Condition) {
		if title, ok := in.listNamed(c.Task); ok {
			u.bad(in, i, "/when", "when: "+runsForEach(c.Task), "compare the result of one task, such as one that depends on {each: "+title+"}")
		}
	})
	if when != nil && when.Op == condition.Else { // here, where a loop has its condition, and a list has one
		left, hint := leftBy(specs, i, in.meaning)
		if left == nil {
			u.bad(in, i, "/when", "when: it is not clear which values else takes", hint)
			return nil
		}
		when = left
	}
	when = when.Clone()
	when.Leaves(func(c *Condition) { c.Task = u.outside.find(c.Task, in, i, "/when", "when: ") })
	return when
}

// meaning returns the same for all names of a task.
func (in *scope) meaning(name string) string {
	name = naming.Normalize(name)
	return cmp.Or(in.names[name], name)
}

// both returns the condition that holds if both a and b do. Each of them may be nil.
func both(a, b *Condition) *Condition {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	return All(a, b)
}

// named returns a condition that names tasks as they are written out.
func (in *scope) named(c *Condition) *Condition {
	c = c.Clone()
	c.Leaves(func(c *Condition) { c.Task = in.find(c.Task) })
	return c
}

// isNamed reports whether a name is the title or the key of a spec.
func isNamed(s *Spec, name string) bool {
	name = naming.Normalize(name)
	return name != "" && (naming.Normalize(s.Title) == name || s.Key == name)
}
