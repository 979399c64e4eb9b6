package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/messagebus"
	"github.com/runteam/runteam/task"
)

// A Replay repeats a run from what its journal has: with the same tasks, inputs
// and options, the prompts and results of the run come again. The prompts are
// built anew and must be the same to the byte.
type Replay struct {
	Past *event.History // of the run

	// Ask has agents asked where the run has no answer to the very same prompt.
	// Otherwise nobody is asked, and a task whose prompt is another one fails with
	// [CodeReplay].
	Ask bool

	// Without are tasks, by title, key or id, and WithoutInputs inputs, that are
	// left out, as if nobody had named them. With Ask, what then changes is what
	// they mattered for.
	Without       []string
	WithoutInputs []string
}

// schedule is the order in which the tasks of a run are repeated, one after
// another: that in which they ended. What a task found in the shared memory
// stood there by then, and of two failures the first is the reason for a third.
type schedule struct {
	order []int // what has not begun
}

// repeat plans the order of a run that repeats another one.
func (r *run) repeat() {
	if !r.repeats() || r.past == nil || !r.past.strict && !r.timely() {
		return
	}
	r.schedule = &schedule{}
	for i := range r.tasks {
		if b := r.past.before(r.plan.graph.Task(i).ID); b != nil && b.place > 0 {
			r.schedule.order = append(r.schedule.order, i)
		}
	}
	place := func(i int) int { return r.past.before(r.plan.graph.Task(i).ID).place }
	slices.SortFunc(r.schedule.order, func(i, k int) int { return cmp.Compare(place(i), place(k)) })
}

// timely reports whether what a task is given depends on when it begins.
func (r *run) timely() bool { return r.plan.remembers() || len(r.options.Messages) > 0 }

// next returns the task to begin next, while so many run.
func (r *run) next(running int) (i int, ok bool) {
	s := r.schedule
	if s == nil {
		return r.queue.NextReady()
	}
	if running == 0 { // after a resume what was kept may stand before what it depends on
		if k := slices.IndexFunc(s.order, func(i int) bool { return r.queue.Status(i) == task.Pending }); k >= 0 {
			i := s.order[k]
			s.order = slices.Delete(s.order, k, k+1)
			return i, true
		}
	}
	if running > 0 || r.past.strict {
		return 0, false
	}
	return r.queue.NextReady()
}

// skipUnrepeated skips what the run that is replayed never began, for the
// reason that it had.
func (r *run) skipUnrepeated() {
	if r.past == nil || !r.past.strict || r.queue.IsComplete() {
		return
	}
	reason := "Skipped: it did not run in the run that is replayed."
	if end := r.past.history.End; end != nil {
		for i := range end.Tasks {
			if e := &end.Tasks[i]; e.Status == task.Skipped && e.Reason != "" && e.Root == "" {
				reason = e.Reason
			}
		}
	}
	r.queue.SkipRemaining(reason, time.Now())
}

// refresh finds the tasks that are to be run anew.
func (r *run) refresh() {
	for _, name := range r.options.Fresh {
		for i := range r.tasks {
			if t := r.plan.graph.Task(i); named(name, t.Title, t.Key, t.ID) {
				if r.fresh == nil {
					r.fresh = map[task.ID]bool{}
				}
				r.fresh[t.ID] = true
			}
		}
	}
}

// named reports whether a name means a task.
func named(name, title, key string, id task.ID) bool {
	folded := task.Normalize(name)
	return folded == task.Normalize(title) || key != "" && folded == key || name == string(id)
}

// checkFresh reports names of tasks to run anew that no task has.
func (c *checker) checkFresh() {
	for i, name := range c.options.Fresh {
		known := make([]string, len(c.specs))
		for k := range c.specs {
			known[k] = c.specs[k].Title
		}
		if !slices.ContainsFunc(c.specs, func(s task.Spec) bool { return named(name, s.Title, s.Key, task.NewID(s.Title)) }) {
			c.add(task.Problem{Pointer: task.Pointer("fresh", i), Message: fmt.Sprintf("no task is called %q", name), Hint: task.Suggest(name, known), Err: task.ErrUnknown})
		}
	}
}

// without returns specs without what a replay leaves out, or what it names and
// there is not.
func (r *Replay) without(specs []task.Spec, inputs []Input) ([]task.Spec, task.Problems) {
	if r == nil || len(r.Without)+len(r.WithoutInputs) == 0 {
		return specs, nil
	}
	var found task.Problems
	gone := map[int]bool{}
	for i, name := range r.Without {
		titles, known := make([]string, len(specs)), false
		for k := range specs {
			titles[k] = specs[k].Title
			if named(name, specs[k].Title, specs[k].Key, task.NewID(specs[k].Title)) {
				gone[k], known = true, true
			}
		}
		if !known {
			found = append(found, task.Problem{Pointer: task.Pointer("without", i), Message: fmt.Sprintf("no task is called %q", name), Hint: task.Suggest(name, titles), Err: task.ErrUnknown})
		}
	}
	for i, name := range r.WithoutInputs {
		names := make([]string, len(inputs))
		for k := range inputs {
			names[k] = inputs[k].Name
		}
		if !slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, name) }) {
			found = append(found, task.Problem{Pointer: task.Pointer("withoutInputs", i), Message: fmt.Sprintf("no input is called %q", name), Hint: task.Suggest(name, names), Err: ErrUnknownInput})
		}
	}
	if len(gone) == len(specs) && len(found) == 0 {
		found = append(found, task.Problem{Pointer: "/without", Message: "no task would be left", Hint: "leave out fewer", Err: ErrNoTasks})
	}
	if len(found) > 0 {
		return nil, found
	}
	var left []task.Spec
	for i := range specs {
		if gone[i] {
			continue
		}
		s := specs[i]
		s.DependsOn = slices.DeleteFunc(slices.Clone(s.DependsOn), func(ref task.Ref) bool {
			for k := range gone {
				if named(ref.Task, specs[k].Title, specs[k].Key, task.NewID(specs[k].Title)) {
					return true
				}
			}
			return false
		})
		s.Uses = slices.DeleteFunc(slices.Clone(s.Uses), func(u task.Use) bool {
			return slices.ContainsFunc(r.WithoutInputs, func(name string) bool { return strings.EqualFold(name, u.Name) })
		})
		left = append(left, s)
	}
	return left, nil
}

// redeliver gives the messages that tasks had before to the same tasks again,
// so that no other one gets them too.
func (r *run) redeliver() {
	if r.past == nil || r.mail == nil || r.plan == nil {
		return
	}
	for i := range r.tasks {
		b := r.past.before(r.tasks[i].ID)
		if b == nil || len(b.messages) == 0 {
			continue
		}
		given, err := r.mail.bus.Take(r.tasks[i].Assignee, func(m messagebus.Message) bool { return slices.Contains(b.messages, string(m.ID)) })
		r.must(err) // the bus is one of this roster
		if len(given) > 0 {
			r.mail.given[i] = given
		}
	}
}
