package engine

import (
	"slices"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// PlanLaterTurn returns the plan of a turn of a session that has earlier turns, from the plan of its
// first turn: the same tasks, and what was said. An agent answers, or the coordinator. What the
// person said has the label of the goal or of the task, and the answer that of all results, at most.
// The error is [task.Problems], such as an agent without the clearance for what a coordinator would
// plan from such an answer.
func PlanLaterTurn(first *Plan, agent string) (*Plan, error) {
	o := *first.Options()
	var said, level label.Classification
	if o.Answer != nil {
		said = o.Answer.Classification
	} else {
		said = first.Graph.Task(0).Classification
	}
	level = said
	for _, l := range first.Labels {
		level = level.Join(l)
	}
	if agent == handoff.Coordinator {
		caps := first.Roster().Coordinator(&o)
		level = min(level, caps.Clearance())
	}
	at := time.Now()
	texts, err := plan.EarlierTurn(agent, said, level, at)
	if err != nil {
		return nil, err
	}
	o.Conversation = texts
	specs := first.Written
	if agent == handoff.Coordinator { // it plans the tasks from what was said
		specs = raised(specs, level)
	}
	p, err := first.Roster().Check(specs, o, at)
	if err != nil {
		return nil, err
	}
	p.Describe()
	p.Goal, p.Usage, p.Coordinator = first.Goal, first.Usage, first.Coordinator
	return p, nil
}

// raised returns planned tasks whose descriptions have a label at least, also those in loops.
func raised(specs []task.Spec, level label.Classification) []task.Spec {
	specs = slices.Clone(specs)
	for i := range specs {
		s := &specs[i]
		s.Classification = s.Classification.Join(level)
		if loop := s.Repeat; loop != nil {
			s.Repeat = new(*loop)
			s.Repeat.Tasks = raised(loop.Tasks, level)
		}
		if list := s.ForEach; list != nil {
			s.ForEach = new(*list)
			s.ForEach.Tasks = raised(list.Tasks, level)
		}
	}
	return specs
}
