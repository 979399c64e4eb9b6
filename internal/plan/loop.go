package plan

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/graph"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// Joins reports whether a task is a loop itself, which calls no agent and has the result of its
// last round.
func Joins(t *task.Task) bool { return t.Instance != nil && t.Instance.Joins }

// joined appends what the task of a loop may have: results that the runtime passes on.
func joined(list []delivery, p *Plan, i int) []delivery {
	for j, up := range p.Graph.Upstream(i) {
		from := p.Graph.Task(int(up))
		kind := handoff.Dependency
		if isRead(p.Graph.Task(i), j) {
			kind = handoff.Condition
		}
		list = append(list, delivery{
			part: partOf{kind, int32(j)}, from: from.Assignee, most: p.Labels[up], least: p.least[up], plain: true, other: true,
			Part: gate.Part{Classification: p.Labels[up], Optional: true}, crossing: gate.Admission{After: p.Labels[up]},
		})
	}
	return list
}

// writtenOut says where the tasks of a plan are written, of which the rounds of loops have many.
type writtenOut struct {
	specs  []task.Spec // as written
	tasks  []task.Spec
	places []task.Place // parallel to tasks
}

// place moves problems to where their tasks are written.
func (w *writtenOut) place(err error) error {
	if problems, ok := errors.AsType[task.Problems](err); ok {
		return w.placeAll(problems)
	}
	return err
}

// placeAll moves problems to where their tasks are written. What is wrong in one round is wrong in
// each, and is reported once.
func (w *writtenOut) placeAll(problems []task.Problem) task.Problems {
	var placed task.Problems
	first := map[string]int{}                          // by pointer, the task whose problems are reported
	reported := map[[2]string]bool{}                   // pointers and messages
	lists := map[string]bool{}                         // pointers of lists that are reported as such
	asWritten := strings.NewReplacer(w.instances()...) // messages name tasks as they are written
	for _, p := range problems {
		if i := naming.TaskIndex(p.Pointer); i >= 0 && i < len(w.tasks) {
			if part := strings.TrimPrefix(p.Pointer, naming.Pointer("tasks", i)); strings.HasPrefix(part, forEachKey) {
				lists[w.pointer(i, part)] = true
			}
		}
	}
	for _, p := range problems {
		i := naming.TaskIndex(p.Pointer)
		if i < 0 || i >= len(w.tasks) {
			placed = append(placed, p)
			continue
		}
		part := strings.TrimPrefix(p.Pointer, naming.Pointer("tasks", i))
		p.Pointer, p.Message = w.pointer(i, part), asWritten.Replace(p.Message)
		ofItem := !strings.HasPrefix(part, forEachKey) && isListAt(p.Pointer)
		if ofItem && (lists[p.Pointer] || p.Err == nil) || reported[[2]string{p.Pointer, p.Message}] {
			continue
		}
		reported[[2]string{p.Pointer, p.Message}] = true
		if s := &w.tasks[i]; s.Instance != nil {
			if known, is := first[p.Pointer]; is && known != i {
				continue
			}
			first[p.Pointer] = i
			p.Subject = strings.ReplaceAll(p.Subject, fmt.Sprintf("%q", s.Title), fmt.Sprintf("%q", s.Instance.Title))
		}
		placed = append(placed, p)
	}
	slices.SortStableFunc(placed, func(a, b task.Problem) int { return naming.TaskIndex(a.Pointer) - naming.TaskIndex(b.Pointer) })
	return placed
}

// forEachKey begins the pointers of problems with the lists of a task, which have the number of the
// list, and guardKey that of problems with what else it needs in order to run.
const (
	forEachKey = "/forEach/"
	guardKey   = "/guard"
)

// isListAt reports whether a pointer is that of where a list is.
func isListAt(pointer string) bool {
	return strings.HasSuffix(pointer, forEachKey+"path") || strings.HasSuffix(pointer, forEachKey+"input")
}

// instances returns the titles of instances and those that are written, both in quotes.
func (w *writtenOut) instances() (pairs []string) {
	for i := range w.tasks {
		if s := &w.tasks[i]; s.Instance != nil && s.Title != s.Instance.Title {
			pairs = append(pairs, fmt.Sprintf("%q", s.Title), fmt.Sprintf("%q", s.Instance.Title))
		}
	}
	return pairs
}

// pointer returns where a part of task i is written.
func (w *writtenOut) pointer(i int, part string) string {
	at, in := &w.places[i], w.tasks[i].Instance
	if part == guardKey {
		return in.GuardAt
	}
	_, rest, _ := strings.Cut(strings.TrimPrefix(part, "/"), "/")
	number, below, deeper := strings.Cut(rest, "/")
	n, err := strconv.Atoi(number)
	if deeper {
		below = "/" + below
	}
	switch {
	case err != nil || n < 0:
	case strings.HasPrefix(part, "/dependsOn/") && n < len(at.DependsOn):
		return w.written(i, "dependsOn", at.DependsOn[n], below)
	case strings.HasPrefix(part, "/uses/") && n < len(at.Uses):
		return w.written(i, "uses", at.Uses[n], below)
	case strings.HasPrefix(part, forEachKey) && in != nil && n < len(in.Lists):
		return in.Lists[n].Pointer + below
	}
	return at.Pointer + part
}

// written returns the pointer to a dependency or a use of task i, or to the list whose item it is.
func (w *writtenOut) written(i int, key string, n int, below string) string {
	at := w.places[i].Pointer
	switch in := w.tasks[i].Instance; {
	case n < -1:
		return at + naming.Pointer("uses", -2-n)
	case n < 0 && in.Lists[len(in.Lists)-1].Input != "":
		return in.Lists[len(in.Lists)-1].Pointer + "/input"
	case n < 0:
		return in.Lists[len(in.Lists)-1].Pointer + "/path"
	}
	return at + naming.Pointer(key, n) + below
}

// assigned returns the specs as written, with the agents that were chosen for their tasks.
func (w *writtenOut) assigned(tasks []task.Spec) []task.Spec {
	agents := map[string]string{}
	for i := range tasks {
		agents[w.places[i].Pointer] = tasks[i].Assignee
	}
	return withAgents(w.specs, "/tasks", agents)
}

// withAgents returns copies of specs with the agents of those at their pointers.
func withAgents(specs []task.Spec, pointer string, agents map[string]string) []task.Spec {
	specs = slices.Clone(specs)
	for i := range specs {
		at := fmt.Sprintf("%s/%d", pointer, i)
		if r := specs[i].Repeat; r != nil {
			specs[i].Repeat = new(*r)
			specs[i].Repeat.Tasks = withAgents(r.Tasks, at+"/repeat/tasks", agents)
			continue
		}
		if f := specs[i].ForEach; f != nil && len(f.Tasks) > 0 {
			specs[i].ForEach = new(*f)
			specs[i].ForEach.Tasks = withAgents(f.Tasks, at+"/forEach/tasks", agents)
			continue
		}
		specs[i].Assignee = agents[at]
	}
	return specs
}

// sameInRounds gives a task the same agent in every round: that of the last round, whose context
// is the most sensitive. A loop has the agent of its result.
func sameInRounds(g *graph.Graph, chosen []int32) {
	last := map[string]int32{}
	for i := range g.Tasks() {
		if t := g.Task(i); t.Instance != nil && !t.Instance.Joins {
			last[t.Instance.Pointer] = chosen[i]
		}
	}
	for _, i := range g.Order() {
		switch t := g.Task(int(i)); {
		case Joins(t):
			chosen[i] = chosen[g.Upstream(int(i))[0]]
		case t.Instance != nil:
			chosen[i] = last[t.Instance.Pointer]
		}
	}
}
