package specfile

import (
	"iter"
	"slices"
	"strconv"

	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/task"
)

// loopKeys are the keys of a task that is a loop.
var loopKeys = []string{"title", "key", "when", "classification", "onFailure"}

// keysOfLoops returns the keys that may stand beside repeat, or beside forEach with tasks: those of
// loops, and those that have no effect in any task.
func (p *place) keysOfLoops(key string) []string {
	var names []string
	for i := range p.keys {
		if k := &p.keys[i]; k.status != Works || k.name == key || slices.Contains(loopKeys, k.name) {
			names = append(names, k.name)
		}
	}
	return names
}

// A loopPlace says where the parts of a loop, or of tasks for each item of a list, are written.
type loopPlace struct {
	tasks []*fields
	until conditionPlace
}

// readFrame reads what a loop, or a list of tasks, has besides its key. It has no default but that of onFailure.
func (r *reader) readFrame(f *fields, s *task.Spec, key, what string) {
	others := slices.DeleteFunc(names(f.place), func(other string) bool { return other == key || slices.Contains(loopKeys, other) })
	f.refuse(r.report, others, "a "+what+" does not have it", "write it in the tasks of the "+what)
	*s = task.Spec{}
	members{{"onFailure", &s.OnFailure}}.read(f.get)
	f.defaults = nil
	s.When, s.Source = r.readWhen(f), provenance.Source{Origin: f.node.origin()}
	members{{"title", &s.Title}, {"key", &s.Key}, {"classification", &s.Classification}}.read(f.own)
}

// readLoop reads a task that is a loop. Its tasks have the defaults of all tasks.
func (r *reader) readLoop(f *fields, s *task.Spec) {
	mine, defaults := r.mine, f.defaults
	r.readFrame(f, s, "repeat", "loop")
	s.Repeat = &task.Repeat{}
	n := f.own("repeat")
	if n == nil {
		return
	}
	l, at := r.part(n, "repeat", "repeat: "), loopPlace{}
	repeatMembers(s.Repeat).read(l.own)
	s.Repeat.Until, at.until = conditionReader{r.report, "until"}.condition(l.own("until"))
	if tasks := l.own("tasks"); tasks != nil {
		s.Repeat.Tasks, at.tasks = r.readTaskList(tasks, defaults)
		r.mine, r.subject = mine, mine
	}
	r.places.loops[f] = at
}

// readListTask reads tasks for each item of a list. They have the defaults of all tasks.
func (r *reader) readListTask(f *fields, s *task.Spec) {
	mine, defaults := r.mine, f.defaults
	r.readFrame(f, s, "forEach", "list")
	s.ForEach = r.readForEach(f.own("forEach"))
	if tasks := f.own("forEach").get("tasks"); tasks.is == isList {
		at := loopPlace{}
		s.ForEach.Tasks, at.tasks = r.readTaskList(tasks, defaults)
		r.mine, r.subject = mine, mine
		r.places.loops[f] = at
	}
}

// hasTasks reports whether a task is a list of tasks.
func hasTasks(f *fields) bool {
	n := f.own("forEach")
	return n != nil && n.is == isObject && n.get("tasks") != nil
}

func repeatMembers(l *task.Repeat) members {
	return members{{"maxRounds", &l.MaxRounds}, {"output", &l.Output}, {"onLimit", &l.OnLimit}, {"onRepeat", &l.OnRepeat}}
}

// readForEach reads the list that a task runs for.
func (r *reader) readForEach(n *node) *task.ForEach {
	if n == nil {
		return nil
	}
	r.subject = r.mine
	list := &task.ForEach{}
	f := r.part(n, "forEach", "forEach: ")
	forEachMembers(list).read(f.own)
	r.checkForEach(n)
	return list
}

// checkForEach reports keys of a list of which it has one too many or too few, as the JSON Schema says.
func (r *reader) checkForEach(n *node) {
	input, files := n.get("input"), n.get("files")
	switch isResult := n.writes("task", "forEach"); {
	case !isResult && !n.writes("input", "forEach"):
		r.bad(n, "name the task whose result has the list, or the input that has it", "forEach: it has neither task nor input")
	case isResult && input != nil:
		r.bad(input, "write one of them", "forEach: it has both task and input")
	case isResult && files != nil:
		r.bad(files, "write input, with the name of a folder", "forEach: files are those of a folder")
	case input != nil && !n.writes("maxItems", "forEach"):
		r.bad(n, "write maxItems: 20", "forEach: maxItems: it is missing")
	case isResult && !n.writes("path", "forEach"):
		r.bad(n, "write where it is in the result, such as path: /searches", "forEach: the list has no path")
	}
}

func forEachMembers(l *task.ForEach) members {
	return members{
		{"task", &l.Task}, {"input", &l.Input}, {"path", &l.Path}, {"files", &l.Files}, {"key", &l.Key}, {"as", &l.As}, {"maxItems", &l.MaxItems}, {"onOverflow", &l.OnOverflow}, {"maxParallel", &l.MaxParallel},
		{"output", &l.Output},
	}
}

// forEachNode writes a list.
func forEachNode(s *saver, l *task.ForEach) *node {
	n := forEachMembers(l).node()
	if len(l.Tasks) > 0 {
		n.set("tasks", s.tasks(l.Tasks))
	}
	return n
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

// loopTasks returns the tasks of a loop or of a list; none for another task.
func loopTasks(s *task.Spec) []task.Spec {
	switch {
	case s.Repeat != nil:
		return s.Repeat.Tasks
	case s.ForEach != nil:
		return s.ForEach.Tasks
	}
	return nil
}

// WrittenOut returns the tasks that a run of tasks has: of loops each round, and each item of lists.
func WrittenOut(tasks []task.Spec) []task.Spec {
	all, _, err := task.Unroll(tasks)
	if err != nil {
		return tasks // the plan reports it
	}
	return all
}

// AllTasks returns tasks and those of their loops and lists, each once.
func AllTasks(tasks []task.Spec) iter.Seq[*task.Spec] {
	return func(yield func(*task.Spec) bool) {
		for i := range tasks {
			if !yield(&tasks[i]) {
				return
			}
			for s := range AllTasks(loopTasks(&tasks[i])) {
				if !yield(s) {
					return
				}
			}
		}
	}
}

// copyTasks returns copies of tasks and of those of their loops and lists, which can be changed.
func copyTasks(tasks []task.Spec) []task.Spec {
	tasks = slices.Clone(tasks)
	for i := range tasks {
		if l := tasks[i].Repeat; l != nil {
			tasks[i].Repeat = new(*l)
			tasks[i].Repeat.Tasks = copyTasks(l.Tasks)
		}
		if l := tasks[i].ForEach; l != nil {
			tasks[i].ForEach = new(*l)
			tasks[i].ForEach.Tasks = copyTasks(l.Tasks)
		}
	}
	return tasks
}

// specAt returns the task that a pointer leads into, and the rest of the pointer; nil if there is
// none.
func specAt(tasks []task.Spec, parts []string) (*task.Spec, []string) {
	return writtenAt(tasks, parts, loopTasks)
}

// taskAt is specAt for where tasks are written.
func (p *places) taskAt(parts []string) (*fields, []string) {
	f, rest := writtenAt(p.tasks, parts, func(f **fields) []*fields { return p.loops[*f].tasks })
	if f == nil {
		return nil, rest
	}
	return *f, rest
}

// writtenAt returns which of some tasks, or of those in their loops and lists, a pointer leads into.
func writtenAt[T any](tasks []T, parts []string, inside func(*T) []T) (*T, []string) {
	for len(parts) > 1 && parts[0] == "tasks" {
		i, err := strconv.Atoi(parts[1])
		if err != nil || i < 0 || i >= len(tasks) {
			break
		}
		one, rest := &tasks[i], parts[2:]
		more := inside(one)
		if more == nil || len(rest) < 3 || rest[0] != "repeat" && rest[0] != "forEach" || rest[1] != "tasks" {
			return one, rest
		}
		tasks, parts = more, rest[1:]
	}
	return nil, parts
}
