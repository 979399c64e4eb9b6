package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/condition"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// A Replay changes what is repeated of a run. Without changes and with the same tasks,
// inputs and options, the prompts are built again, byte for byte, and get the recorded
// answers.
type Replay struct {
	// Ask calls agents where the run has no answer to the same prompt.
	// Otherwise no agent is called, and a task whose prompt differs fails with
	// [codes.Replay].
	Ask bool

	// Without are tasks, by title, key or id, and WithoutInputs inputs, that are
	// left out. With Ask, the difference shows what they mattered for.
	Without       []string
	WithoutInputs []string
}

// apply returns specs without what a replay leaves out, or a problem for each name that is
// unknown.
func (r *Replay) apply(specs []task.Spec, inputs []Input) ([]task.Spec, task.Problems) {
	if r == nil || len(r.Without)+len(r.WithoutInputs) == 0 {
		return specs, nil
	}
	out, found := r.leftOut(specs, inputs)
	if len(found) > 0 {
		return nil, found
	}
	if found := out.decisive(specs); len(found) > 0 {
		return nil, found
	}
	var left []task.Spec
	for i := range specs {
		if out.tasks[i] {
			continue
		}
		s := specs[i]
		s.When = otherwise(specs, i)
		s.DependsOn = slices.Clone(s.DependsOn)
		for k := range s.DependsOn {
			s.DependsOn[k] = out.withoutAlternatives(s.DependsOn[k])
		}
		s.DependsOn = slices.DeleteFunc(s.DependsOn, func(ref task.Ref) bool { return len(ref.OneOf) == 0 && out.has(ref.Task) })
		s.Uses = slices.DeleteFunc(slices.Clone(s.Uses), func(u task.Use) bool {
			return slices.ContainsFunc(r.WithoutInputs, func(name string) bool { return strings.EqualFold(name, u.Name) })
		})
		left = append(left, s)
	}
	if len(left) == 0 {
		return nil, task.Problems{{Pointer: "/without", Message: "no task would be left", Hint: "leave out fewer", Err: ErrNoTasks}}
	}
	return left, nil
}

// omitted are the tasks that a replay leaves out.
type omitted struct {
	find  func(name string) (task int, known bool)
	tasks []bool
}

// leftOut returns the tasks that a replay leaves out, and a problem for each name of a task or an input that is unknown.
func (r *Replay) leftOut(specs []task.Spec, inputs []Input) (out omitted, found task.Problems) {
	tasks := taskNames(specs)
	out = omitted{tasks.Index(), make([]bool, len(specs))}
	for i, name := range r.Without {
		k, known := out.find(name)
		if !known {
			found = append(found, unknownTask(tasks, name, "without", i))
			continue
		}
		out.tasks[k] = true
	}
	names := make([]string, len(inputs))
	for k := range inputs {
		names[k] = inputs[k].Name
	}
	for i, name := range r.WithoutInputs {
		if !slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(other, name) }) {
			found = append(found, task.Problem{Pointer: naming.Pointer("withoutInputs", i), Message: fmt.Sprintf("unknown input %q", name), Hint: naming.Suggest(name, names), Err: ErrUnknownInput})
		}
	}
	return out, found
}

// has reports whether the task that a name means is left out.
func (o omitted) has(name string) bool {
	i, known := o.find(name)
	return known && o.tasks[i]
}

// decisive reports tasks that cannot be left out, since conditions of others compare their results.
func (o omitted) decisive(specs []task.Spec) (found task.Problems) {
	for i := range specs {
		if o.tasks[i] {
			continue
		}
		for _, name := range decidedBy(&specs[i]) {
			if o.has(name) {
				found = append(found, task.Problem{
					Pointer: naming.Pointer("without"), Message: fmt.Sprintf("without %q it is not known whether %q runs", name, specs[i].Title), Hint: "leave out another task", Err: task.ErrInvalid,
				})
			}
		}
	}
	return found
}

// Deciding returns the tasks whose results say whether others run, or for which items: a run cannot be repeated without
// them. Nil means none, as of a nil plan.
func (p *Plan) Deciding() (tasks map[task.ID]bool) {
	if p == nil {
		return nil
	}
	var find func(name string) (int, bool)
	for i := range p.specs {
		s := &p.specs[i]
		if s.When == nil && s.Instance == nil {
			continue
		}
		if find == nil {
			find, tasks = p.Names().Index(), map[task.ID]bool{}
		}
		for _, name := range decidedBy(s) {
			if k, known := find(name); known {
				tasks[task.NewID(p.specs[k].Title)] = true
			}
		}
	}
	return tasks
}

// decidedBy returns the tasks whose results say whether a task runs, each once.
func decidedBy(s *task.Spec) (names []string) {
	add := func(c *task.Condition) {
		if !slices.Contains(names, c.Task) {
			names = append(names, c.Task)
		}
	}
	s.When.Leaves(add)
	if in := s.Instance; in != nil {
		in.Guard.Leaves(add)
		for _, until := range in.Until {
			until.Leaves(add)
		}
		for _, l := range in.Lists {
			if l.Task != "" {
				names = append(names, l.Task)
			}
		}
	}
	return names
}

// otherwise returns the condition of a task. It writes out else, which would take the values of the
// tasks that are left out.
func otherwise(specs []task.Spec, i int) *task.Condition {
	when := specs[i].When
	if when == nil || when.Op != condition.Else {
		return when
	}
	var others []*task.Condition
	for k := range specs {
		if when := specs[k].When; when != nil && when.Op != condition.Else {
			if _, _, single := when.Value(); single {
				others = append(others, when)
			}
		}
	}
	return task.Not(task.Any(others...))
}

// withoutAlternatives returns a reference without the alternatives that are left out.
func (o omitted) withoutAlternatives(ref task.Ref) task.Ref {
	if len(ref.OneOf) == 0 {
		return ref
	}
	left := slices.DeleteFunc(slices.Clone(ref.OneOf), o.has)
	switch len(left) {
	case 0:
		ref.Task, ref.OneOf = ref.OneOf[0], nil // which is left out
	case 1:
		ref.Task, ref.OneOf = left[0], nil
	default:
		ref.OneOf = left
	}
	return ref
}

// omitsTasks reports whether a replay leaves out tasks.
func (r *Replay) omitsTasks() bool { return r != nil && len(r.Without) > 0 }

// taskNames returns what people may call tasks.
func taskNames(specs []task.Spec) naming.TaskList {
	list := make(naming.TaskList, len(specs))
	for i := range specs {
		s := &specs[i]
		list[i] = naming.TaskNames{Title: s.Title, Key: s.Key, ID: string(task.NewID(s.Title))}
	}
	return list
}

// Names returns what people may call the tasks of the plan, in their order in the graph.
func (p *Plan) Names() naming.TaskList { return taskNames(p.specs) }

// unknownTask returns the problem of an option that names an unknown task.
func unknownTask(names naming.TaskList, name string, pointer ...any) task.Problem {
	return task.Problem{Pointer: naming.Pointer(pointer...), Message: fmt.Sprintf("unknown task %q", name), Hint: names.Unknown(name).Hint, Err: task.ErrUnknown}
}

// MayNameItem reports whether a name may be that of an item of a list with keys: it begins with the
// title of a task for each of them.
func MayNameItem(g *graph.Graph, name string) bool {
	for i := range g.Len() {
		if mayNameItem(&g.Task(i).Spec, name) {
			return true
		}
	}
	return false
}

func mayNameItem(s *task.Spec, name string) bool {
	in := s.Instance
	keyed := in != nil && slices.ContainsFunc(in.Lists, func(l *task.List) bool { return l.Key != "" })
	return keyed && strings.HasPrefix(naming.Normalize(name), naming.Normalize(naming.WithoutInstance(s.Title))+"[")
}

// checkFresh reports the unknown names in Fresh.
func (c *checker) checkFresh() {
	if len(c.options.Fresh) == 0 {
		return
	}
	names := taskNames(c.specs)
	for i, name := range c.options.Fresh {
		if slices.ContainsFunc(c.specs, func(s task.Spec) bool { return mayNameItem(&s, name) }) {
			continue // its list is not known yet
		}
		if _, known := names.Find(name); !known {
			c.add(unknownTask(names, name, "fresh", i))
		}
	}
}
