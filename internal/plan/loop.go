package plan

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
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
	team, t := p.Roster(), p.Graph.Task(i)
	for j, up := range p.Graph.Upstream(i) {
		if isReread(t, j) {
			break // as in [Plan.deliveries]
		}
		from := p.Graph.Task(int(up))
		if isRead(t, j) {
			a := deliveryOf(termsTo(p, i, from.Assignee), p.least[up], p.Labels[up], true, &team.Capabilities[p.Members[i]])
			a.part, a.from, a.most = partOf{handoff.Condition, int32(j)}, from.Assignee, p.Labels[up]
			list = append(list, a)
			continue
		}
		list = append(list, delivery{
			part: partOf{handoff.Dependency, int32(j)}, from: from.Assignee, most: p.Labels[up], least: p.least[up], plain: true, other: true,
			Part: gate.Part{Classification: p.Labels[up], Optional: true}, crossing: gate.Admission{After: p.Labels[up]},
		})
	}
	return list
}

// isItem matches the path of an item of a list.
var isItem = regexp.MustCompile(`^(/[^/]+)*/[0-9]{1,9}$`)

// checkWritten reports what specs, and those in their loops, have that only [task.Unroll] sets, and
// names of dependencies that are none. The pointer is that of the list of specs. Most specs have no
// problem, so pointers of single specs are written only for those that have one.
func checkWritten(specs []task.Spec, pointer string) (found task.Problems) {
	for i := range specs {
		s := &specs[i]
		report := func(part, message, hint string) {
			at := pointer + naming.Pointer(i) + part
			found = append(found, task.Problem{Pointer: at, Subject: fmt.Sprintf("task %q", s.Title), Message: message, Hint: hint, Err: task.ErrInvalid})
		}
		if s.Instance != nil {
			report("", "Instance is set, and no caller can set it", "leave it out; write Repeat for a loop, and ForEach for a list")
		}
		for k := range s.DependsOn {
			d := &s.DependsOn[k]
			if d.Item != "" && !isItem.MatchString(string(d.Item)) {
				report(naming.Pointer("dependsOn", k), fmt.Sprintf("dependsOn[%d]: %s is not the path of an item", k, naming.Quote(string(d.Item))), "write a path such as /searches/0")
			}
			if d.Title != "" && naming.CheckTitle(d.Title) != nil {
				report(naming.Pointer("dependsOn", k), fmt.Sprintf("dependsOn[%d]: %s is not a title", k, naming.Quote(d.Title)), "write one clean line")
			}
		}
		if s.Repeat != nil {
			found = append(found, checkWritten(s.Repeat.Tasks, pointer+naming.Pointer(i, "repeat", "tasks"))...)
		}
	}
	return found
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
	first := map[string]int{}        // by pointer, the task whose problems are reported
	reported := map[[2]string]bool{} // pointers and messages
	lists := map[string]bool{}       // pointers of lists that are reported as such
	twice := map[string]bool{}       // pointers of tasks whose titles others have too
	titles := w.titles()
	asWritten := strings.NewReplacer(inQuotes(titles)...)
	for _, p := range problems {
		if i := naming.TaskIndex(p.Pointer); i >= 0 && i < len(w.tasks) {
			if part := strings.TrimPrefix(p.Pointer, naming.Pointer("tasks", i)); strings.HasPrefix(part, forEachKey) {
				lists[w.pointer(i, part)] = true
			} else if part == titleKey && p.Err == task.ErrDuplicate {
				twice[w.places[i].Pointer] = true
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
		w.writeCycle(&p, titles)
		// A list is read by a dependency that nobody wrote: what is reported about the list itself,
		// and warnings, would be reported again about that.
		ofItem := !strings.HasPrefix(part, forEachKey) && isListAt(p.Pointer)
		key := [2]string{p.Pointer, p.Message}
		judged, _, judges := strings.Cut(p.Pointer, "/verify") // whose titles follow from that of the task
		if reported[key] || ofItem && (lists[p.Pointer] || p.Err == nil) || judges && part == titleKey && twice[judged] {
			continue
		}
		reported[key] = true
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

// writeCycle names the tasks of a cycle as they are written, if that is the problem.
func (w *writtenOut) writeCycle(p *task.Problem, titles map[string]string) {
	cycle, ok := errors.AsType[*task.CycleError](p.Err)
	if !ok {
		return
	}
	own, loop, in := task.CycleError{}, "", 0 // how many are in the loop of the first one
	for k, title := range cycle.Titles {
		i := slices.IndexFunc(w.tasks, func(s task.Spec) bool { return s.Title == title && s.Instance != nil })
		if i >= 0 && w.tasks[i].Instance.Round > 0 && (k == 0 || w.tasks[i].Instance.Loop == loop) {
			loop, in = w.tasks[i].Instance.Loop, in+1
		}
		name := cmp.Or(titles[title], title)
		at := strings.LastIndex(name, naming.JudgeMark)
		switch {
		case i < 0:
		case w.tasks[i].Instance.Judges && at >= 0:
			if k == 0 {
				p.Subject = fmt.Sprintf("task %q", name[:at])
			}
			name = fmt.Sprintf("judge %s of %s", w.tasks[i].Assignee, name[:at])
		case w.tasks[i].Instance.Quorum > 0 && !w.tasks[i].Instance.Joins: // nobody wrote the task that counts
			continue
		}
		if n := len(own.Titles); n == 0 || own.Titles[n-1] != name { // the rounds of a task, and its loop, are one task as written
			own.Path, own.Titles = append(own.Path, cycle.Path[k]), append(own.Titles, name)
		}
	}
	if last := len(own.Titles) - 1; last > 0 && own.Titles[last] == own.Titles[0] {
		own.Path, own.Titles = own.Path[:last], own.Titles[:last]
	}
	if in == len(cycle.Titles) {
		p.Hint += ", or read the result of the round before: {task: " + own.Titles[len(own.Titles)-1] + ", round: previous, optional: true}"
	}
	p.Message, p.Err = own.Error(), &own
}

// forEachKey begins the pointers of problems with the lists of a task, which have the number of the
// list, guardKey that of problems with what else it needs in order to run, and titleKey that of
// problems with its title.
const (
	forEachKey = "/forEach/"
	guardKey   = "/guard"
	titleKey   = "/title"
)

// isListAt reports whether a pointer is that of where a list is.
func isListAt(pointer string) bool {
	return strings.HasSuffix(pointer, forEachKey+"path") || strings.HasSuffix(pointer, forEachKey+"input")
}

// titles returns how the titles of rounds and of items are written.
func (w *writtenOut) titles() map[string]string {
	titles := map[string]string{}
	for i := range w.tasks {
		if s := &w.tasks[i]; s.Instance != nil && s.Title != s.Instance.Title {
			titles[s.Title] = s.Instance.Title
		}
	}
	return titles
}

// inQuotes returns titles and how they are written, both in quotes.
func inQuotes(titles map[string]string) (pairs []string) {
	for title, written := range titles {
		pairs = append(pairs, fmt.Sprintf("%q", title), fmt.Sprintf("%q", written))
	}
	return pairs
}

// pointer returns where a part of task i is written.
func (w *writtenOut) pointer(i int, part string) string {
	at, in := &w.places[i], w.tasks[i].Instance
	if rest, ok := strings.CutPrefix(part, guardKey); ok {
		return in.GuardAt + rest
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
		return at + naming.Pointer("uses", -2-n) + below
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
