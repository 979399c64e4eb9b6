package engine

import (
	"context"
	"errors"
	"time"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

// RunTasks runs the caller's graph of tasks and returns what became of each.
//
// An error means that the run could not start: [task.Problems] if something is
// wrong with the tasks or the options, and nothing was spent. A run that
// started always returns a Result, also when tasks failed or ctx ended; see
// [Result.Err]. No goroutine of the run is left when RunTasks returns, except
// one for each subscriber that does not return.
func (t *Team) RunTasks(ctx context.Context, specs []task.Spec, o *RunOptions) (*Result, error) {
	if err := t.made(ctx); err != nil {
		return nil, err
	}
	return t.runTasks(ctx, specs, settings(o))
}

func (t *Team) runTasks(ctx context.Context, specs []task.Spec, o RunOptions) (*Result, error) {
	start := time.Now()
	carryBus(t.roster, &o)
	p, err := t.roster.Check(specs, o, start)
	if err != nil {
		return nil, err
	}
	return runPlan(ctx, p, o, start)
}

// RunAgent gives one agent a prompt that is the given text, followed by the
// options' inputs if there are any, and returns the result of that one task.
// It works under the same handshake, gate and limits as a task of a graph.
func (t *Team) RunAgent(ctx context.Context, agent, text string, o *RunOptions) (*Result, error) {
	if err := t.made(ctx); err != nil {
		return nil, err
	}
	options := settings(o)
	options.Untitled = true
	specs := []task.Spec{{Title: agent, Description: text, Assignee: agent, Uses: UsesOf(options.Inputs)}}
	res, err := t.runTasks(ctx, specs, options)
	if found, ok := errors.AsType[task.Problems](err); ok {
		for i := range found {
			if p := &found[i]; p.Pointer == "/tasks/0/assignee" && errors.Is(p.Err, plan.ErrUnknownAgent) {
				p.Pointer, p.Subject = "/agent", "" // the caller has named no task
			}
		}
	}
	return res, err
}

// RunTeam turns a goal into an answer: the coordinator plans tasks for it, the
// plan is checked as the caller's own tasks would be, the tasks run, and the
// coordinator answers the goal from their results. A plan that cannot be
// run is returned to it once, with every problem in it; if the second one
// cannot be run either, nothing is.
//
// An error means that the run could not start: [task.Problems] if something is
// wrong with the goal, the coordinator or the options, and nothing was spent. A
// run that started always returns a Result; see [Result.Err].
func (t *Team) RunTeam(ctx context.Context, goal Goal, o *RunOptions) (*Result, error) {
	r, err := t.newGoalRun(ctx, goal, o)
	if err != nil {
		return nil, err
	}
	return r.execute(ctx)
}

// PlanTeam asks the coordinator for a plan of the goal and checks it, and runs
// nothing. This makes one model call, or two if the first plan cannot be run.
// [Plan.Specs] are the tasks, for [Team.RunTasks] or a file. The error is
// [task.Problems] if the coordinator could not be called, and a [*TaskError] if no
// valid plan came.
func (t *Team) PlanTeam(ctx context.Context, goal Goal, o *RunOptions) (*Plan, error) {
	r, err := t.newGoalRun(ctx, goal, o)
	if err != nil {
		return nil, err
	}
	r.plansOnly = true
	res, err := r.execute(ctx)
	if err != nil {
		return nil, err
	}
	return r.planOf(res)
}

// RunPlan runs a plan that was made under the same options. Only what a plan does not
// depend on may differ: the ID, subscribers, recorder, journal and monitor of the run.
func (t *Team) RunPlan(ctx context.Context, p *Plan, o *RunOptions) (*Result, error) {
	if err := t.made(ctx); err != nil {
		return nil, err
	}
	options := settings(o)
	if found := t.roster.CheckJournal(options.Journal); len(found) > 0 {
		return nil, found
	}
	return runPlan(ctx, p, options, time.Now())
}
