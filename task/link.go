package task

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/runteam/runteam/internal/dag"
	"github.com/runteam/runteam/internal/naming"
)

// Errors in tasks and in the references between them. A [Problem] wraps one of them.
var (
	ErrUnknown   = naming.ErrUnknownTask
	ErrAmbiguous = errors.New("ambiguous reference")
	ErrDuplicate = errors.New("duplicate")
	ErrSelf      = errors.New("task depends on itself")
	ErrCycle     = errors.New("dependency cycle") // a [*CycleError] wraps it
	ErrInvalid   = errors.New("invalid value")
)

// A linker builds the graph of tasks, and finds what their dependencies get wrong.
type linker struct {
	tasks []Task
	dag   *dag.Builder
	found *findings
}

// newLinker returns a linker of tasks with at most that many dependencies.
func newLinker(tasks []Task, links int, found *findings) (*linker, error) {
	if n := max(len(tasks), links); n >= math.MaxInt32 { // indexes are int32
		return nil, Problems{{Err: ErrInvalid, Message: fmt.Sprintf("too many tasks: %d tasks or dependencies", n)}}
	}
	return &linker{tasks, dag.NewBuilder(len(tasks), links), found}, nil
}

// link makes task i depend on task j, which is its dependency k, and reports whether
// that is fine.
func (l *linker) link(i, j, k int, optional bool) bool {
	fault, err := "it depends on itself", ErrSelf
	if i != j {
		if l.dag.Edge(j, optional) {
			return true
		}
		fault, err = naming.Quote(l.tasks[j].Title)+" is named before", ErrDuplicate
	}
	at, hint := pointer(i, "dependsOn", k), "remove it"
	if in := l.tasks[i].Instance; err == ErrDuplicate && in != nil && len(in.Lists) > 0 && naming.Normalize(in.Lists[len(in.Lists)-1].Task) == naming.Normalize(l.tasks[j].Title) {
		k-- // it follows the item
		fault, hint = naming.Quote(l.tasks[j].Title)+" has the list, of which the task gets one item", "remove it; to use another part of that result, depend on a task between, such as one with a template"
	}
	l.found.add(i, Problem{
		Pointer: at, Subject: subject(i, l.tasks[i].Title), Err: err,
		Message: fmt.Sprintf("dependsOn[%d]: %s", k, fault), Hint: hint,
	})
	return false
}

// read makes task i wait for task j, whose result its condition compares.
func (l *linker) read(i, j int, optional bool) bool {
	if i == j {
		return false
	}
	l.dag.EdgeAgain(j, optional)
	return true
}

// finish names the cycles, and returns the graph unless anything was found.
func (l *linker) finish() (*dag.Graph, error) {
	g := l.dag.Build()
	for _, cycle := range g.Cycles() {
		e := &CycleError{Path: make([]ID, len(cycle)), Titles: make([]string, len(cycle))}
		for k, i := range cycle {
			e.Path[k], e.Titles[k] = l.tasks[i].ID, l.tasks[i].Title
		}
		first := int(cycle[0])
		l.found.add(first, Problem{
			Pointer: pointer(first, l.reason(first, int(cycle[1]))...), Subject: subject(first, l.tasks[first].Title),
			Message: e.Error(), Hint: "remove one of these dependencies", Err: e,
		})
	}
	return g, l.found.err()
}

// reason returns the key of task i that makes it wait for task j: its dependencies, its condition, a
// list that it has an item of, or what else it needs in order to run.
func (l *linker) reason(i, j int) []any {
	t, id := &l.tasks[i], string(l.tasks[j].ID)
	reads := func(c *Condition) (found bool) {
		c.Leaves(func(leaf *Condition) { found = found || leaf.Task == id })
		return found
	}
	written := t.DependsOn[:len(t.DependsOn)-t.Reads]
	switch k := slices.IndexFunc(written, func(d Ref) bool { return d.Task == id }); {
	case k >= 0 && written[k].Item != "":
		return []any{"dependsOn", k}
	case k >= 0:
		return []any{"dependsOn"}
	case reads(t.When):
		return []any{"when"}
	case t.Instance == nil:
		return []any{"dependsOn"}
	}
	if k := slices.IndexFunc(t.Instance.Lists, func(list *List) bool { return list.Task == id }); k >= 0 {
		return []any{"forEach", k, "path"}
	}
	if reads(t.Instance.Guard) {
		return []any{"guard"}
	}
	return []any{"dependsOn"}
}

// link returns the graph of tasks whose dependencies are IDs, or [Problems].
func link(tasks []Task) (*dag.Graph, error) {
	links := 0
	for i := range tasks {
		links += len(tasks[i].DependsOn)
	}
	l, err := newLinker(tasks, links, &findings{})
	if err != nil {
		return nil, err
	}
	index := make(map[ID]int, len(tasks))
	for i := range tasks {
		t := &tasks[i]
		if first, taken := index[t.ID]; taken {
			l.found.add(i, Problem{
				Pointer: pointer(i, "id"), Subject: subject(i, t.Title), Err: ErrDuplicate,
				Message: fmt.Sprintf("id %q is that of task %q too", t.ID, tasks[first].Title),
			})
			continue
		}
		index[t.ID] = i
	}
	for i := range tasks {
		t := &tasks[i]
		for k, d := range t.DependsOn {
			if j, ok := index[ID(d.Task)]; ok {
				if k < len(t.DependsOn)-t.Reads || !l.read(i, j, d.Optional) {
					l.link(i, j, k, d.MayBeMissing())
				}
				continue
			}
			l.found.add(i, Problem{
				Pointer: pointer(i, "dependsOn", k), Subject: subject(i, t.Title), Err: ErrUnknown,
				Message: fmt.Sprintf("dependsOn[%d]: no task with the id %q", k, d.Task),
			})
		}
		l.dag.Next()
	}
	return l.finish()
}

// Order returns the IDs in an order in which each follows its dependencies. Tasks without
// dependencies come first, in the order of the input. Every other task follows as soon as
// its last dependency has. The errors are those of [Validate].
func Order(tasks []Task) ([]ID, error) {
	g, err := link(tasks)
	if err != nil {
		return nil, err
	}
	ids := make([]ID, len(tasks))
	for k, i := range g.Order() {
		ids[k] = tasks[i].ID
	}
	return ids, nil
}

// Validate returns nil, or [Problems] with every duplicate ID, every dependency that is
// unknown, repeated or the task itself, and every cycle.
func Validate(tasks []Task) error {
	_, err := link(tasks)
	return err
}
