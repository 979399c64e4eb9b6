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
		for k := range t.DependsOn {
			s.dependencies += n * max(len(t.DependsOn[k].OneOf), s.items[naming.Normalize(t.DependsOn[k].Each)], 1)
		}
		if t.Repeat != nil {
			s.add(t.Repeat.Tasks, n*max(t.Repeat.MaxRounds, 1))
		}
	}
}
