package specfile

import (
	"iter"
	"slices"
	"strconv"

	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/task"
)

// loopKeys are the keys of a task that is a loop.
var loopKeys = []string{"title", "key", "when", "classification", "repeat"}

// keysOfLoops returns the keys that may stand beside repeat: those of loops, and those that have no
// effect in any task.
func (p *place) keysOfLoops() []string {
	var names []string
	for i := range p.keys {
		if k := &p.keys[i]; k.status != Works || slices.Contains(loopKeys, k.name) {
			names = append(names, k.name)
		}
	}
	return names
}

// A loopPlace says where the parts of a loop are written.
type loopPlace struct {
	tasks []*fields
	until conditionPlace
}

// loop reads a task that is a loop. It has no defaults, and its tasks have those of all tasks.
func (r taskReader) loop(f *fields, s *task.Spec) {
	mine, defaults := r.mine, f.defaults
	for i := range f.place.keys {
		key := f.place.keys[i].name
		if n := f.own(key); n != nil && !slices.Contains(loopKeys, key) {
			r.badKey(n, ErrInvalid, "write it in the tasks of the loop", "%s: a loop does not have it", key)
		}
	}
	f.defaults = nil
	*s = task.Spec{When: r.when(f), Repeat: &task.Repeat{}, Source: provenance.Source{Origin: f.node.origin()}}
	members{{"title", &s.Title}, {"key", &s.Key}, {"classification", &s.Classification}}.read(f.own)
	n := f.own("repeat")
	if n == nil {
		return
	}
	l, at := r.part(n, "repeat", "repeat: "), loopPlace{}
	repeatMembers(s.Repeat).read(l.own)
	s.Repeat.Until, at.until = conditionReader{r.report}.condition(l.own("until"))
	if tasks := l.own("tasks"); tasks != nil {
		s.Repeat.Tasks, at.tasks = r.list(tasks, defaults)
		r.mine, r.subject = mine, mine
	}
	r.places.loops[f] = at
}

func repeatMembers(l *task.Repeat) members {
	return members{{"maxRounds", &l.MaxRounds}, {"output", &l.Output}, {"onLimit", &l.OnLimit}, {"onRepeat", &l.OnRepeat}}
}

// forEach reads the list that a task runs for.
func (r taskReader) forEach(n *node) *task.ForEach {
	if n == nil {
		return nil
	}
	r.subject = r.mine
	list := &task.ForEach{}
	forEachMembers(list).read(r.part(n, "forEach", "forEach: ").own)
	return list
}

func forEachMembers(l *task.ForEach) members {
	return members{{"task", &l.Task}, {"path", &l.Path}, {"as", &l.As}, {"maxItems", &l.MaxItems}, {"onOverflow", &l.OnOverflow}}
}

// loopNode writes a loop.
func loopNode(s *saver, l *task.Repeat) *node {
	n := repeatMembers(l).node()
	until, err := conditionNode(l.Until)
	if err != nil {
		s.wrong("repeat: until: %v", err)
	}
	n.set("until", until)
	n.set("tasks", s.tasks(l.Tasks))
	return n
}

// loopTasks returns the tasks of a loop; none for another task.
func loopTasks(s *task.Spec) []task.Spec {
	if s.Repeat == nil {
		return nil
	}
	return s.Repeat.Tasks
}

// WrittenOut returns the tasks that a run of tasks has: of loops each round, and each item of lists.
func WrittenOut(tasks []task.Spec) []task.Spec {
	all, _, err := task.Unroll(tasks)
	if err != nil {
		return tasks // the plan reports it
	}
	return all
}

// AllTasks returns tasks and those of their loops, each once.
func AllTasks(tasks []task.Spec) iter.Seq[*task.Spec] {
	return func(yield func(*task.Spec) bool) {
		for i := range tasks {
			if !yield(&tasks[i]) {
				return
			}
			if tasks[i].Repeat == nil {
				continue
			}
			for s := range AllTasks(tasks[i].Repeat.Tasks) {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// copyTasks returns copies of tasks and of those of their loops, which can be changed.
func copyTasks(tasks []task.Spec) []task.Spec {
	tasks = slices.Clone(tasks)
	for i := range tasks {
		if l := tasks[i].Repeat; l != nil {
			tasks[i].Repeat = new(*l)
			tasks[i].Repeat.Tasks = copyTasks(l.Tasks)
		}
	}
	return tasks
}

// specAt returns the task that a pointer leads into, and the rest of the pointer; nil if there is
// none.
func specAt(tasks []task.Spec, parts []string) (*task.Spec, []string) {
	for len(parts) > 1 && parts[0] == "tasks" {
		i, err := strconv.Atoi(parts[1])
		if err != nil || i < 0 || i >= len(tasks) {
			break
		}
		s, rest := &tasks[i], parts[2:]
		if s.Repeat == nil || !inLoop(rest) {
			return s, rest
		}
		tasks, parts = s.Repeat.Tasks, rest[1:]
	}
	return nil, parts
}

// taskAt is specAt for where tasks are written.
func (p *places) taskAt(parts []string) (*fields, []string) {
	tasks := p.tasks
	for len(parts) > 1 && parts[0] == "tasks" {
		i, err := strconv.Atoi(parts[1])
		if err != nil || i < 0 || i >= len(tasks) {
			break
		}
		f, rest := tasks[i], parts[2:]
		if f == nil || !inLoop(rest) {
			return f, rest
		}
		tasks, parts = p.loops[f].tasks, rest[1:]
	}
	return nil, parts
}

// inLoop reports whether the rest of a pointer from a task leads into a task of its loop.
func inLoop(rest []string) bool { return len(rest) > 2 && rest[0] == "repeat" && rest[1] == "tasks" }
