package planning

import (
	"fmt"

	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/task"
)

// tooLarge returns a problem if a plan has more tasks or dependencies than it may, with all rounds
// of its loops and all items of its lists. A plan in which all of them are wrong stays a short list
// of problems.
func tooLarge(specs []task.Spec) *task.Problem {
	s := size{items: map[string]int{}}
	s.list(specs)
	s.add(specs, 1)
	switch {
	case s.dependencies > MaxDependencies:
		return whole(fmt.Sprintf("%d dependencies, at most %d", s.dependencies, MaxDependencies), "use the fewest dependencies")
	case s.tasks > MaxTasks:
		return whole(fmt.Sprintf("with all rounds of loops and all items of lists it has more than %d tasks", MaxTasks), "lower maxRounds and maxItems, or plan fewer tasks")
	}
	return nil
}

// A size counts what a plan has when it is written out.
type size struct {
	tasks, dependencies int
	items               map[string]int // by normalized title, of lists
}

func (s *size) list(specs []task.Spec) {
	for i := range specs {
		if f := specs[i].ForEach; f != nil {
			title := naming.Normalize(specs[i].Title)
			s.items[title] = max(s.items[title], f.MaxItems)
		}
		if loop := specs[i].Repeat; loop != nil {
			s.list(loop.Tasks)
		}
	}
}

// add counts specs that are written out a number of times.
func (s *size) add(specs []task.Spec, times int) {
	for i := range specs {
		t, n := &specs[i], times
		if t.ForEach != nil {
			n *= max(t.ForEach.MaxItems, 1)
		}
		s.tasks += n
		s.read(t.DependsOn, s.judged(t.Verify, n))
		if t.Repeat != nil {
			s.add(t.Repeat.Tasks, n*max(t.Repeat.MaxRounds, 1))
		}
	}
}

// judged counts what n tasks with these judges are written out as beside the n loops that they
// become, and returns how many rounds there are together.
func (s *size) judged(v *task.Verify, n int) int {
	if v == nil {
		return n
	}
	n *= max(v.MaxRounds, 1)
	s.tasks += n * (len(v.Judges) + 2)          // the task, its judges and the count
	s.dependencies += n * (2*len(v.Judges) + 3) // judges and the loop read the task, the count reads judges, and the task reads the round before
	for k := range v.Judges {
		s.read(v.Judges[k].DependsOn, n)
	}
	return n
}

// read counts dependencies that are written out n times.
func (s *size) read(refs []task.Ref, n int) {
	for k := range refs {
		s.dependencies += n * max(len(refs[k].OneOf), s.items[naming.Normalize(refs[k].Each)], 1)
	}
}
