// Package team runs a team of agents over a graph of tasks.
//
//	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "writer", Agent: agent.New(model, agent.Options{})}}})
//	…
//	res, err := tm.RunTasks(ctx, []task.Spec{{Title: "Write", Description: "Write a haiku.", Assignee: "writer"}}, nil)
//
// [New] checks the configuration. [Team.Plan] checks tasks and says who would read what,
// [Team.RunTasks] runs tasks, and [Team.RunTeam] turns a goal into an answer. Before
// each prompt, the gate decides which parts of the task's context the agent may read.
// After the reply, the gate validates it and computes its label. A run returns its
// [Result] and, unless it succeeded, a [*RunError].
//
// A Team is immutable and safe for concurrent use.
package team

import (
	"cmp"
	"context"
	"fmt"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/messagebus"
	"github.com/runteam/runteam/task"
)

// A Team is a set of agents whose configuration was checked. It is immutable and safe for
// concurrent runs. The methods of a nil or zero Team return errors.
type Team engine.Team

// New returns a team, or [task.Problems] that list everything wrong with cfg.
func New(cfg Config) (*Team, error) {
	t, err := engine.New(cfg.internal())
	if err != nil {
		return nil, err
	}
	return (*Team)(t), nil
}

// NewBus returns a message bus for the agents of the team, for [RunOptions].Bus. It is
// safe for concurrent use, and for one run at a time. NewBus panics for a team that [New]
// did not make.
func (t *Team) NewBus() *messagebus.Bus {
	agents, edges, log, err := (*engine.Team)(t).BusConfig()
	if err != nil {
		panic(fmt.Sprintf("runteam: %v", err))
	}
	b, err := messagebus.New(agents, messagebus.Options{Edges: edges, Logger: log})
	if err != nil { // New has checked the names
		panic(fmt.Sprintf("runteam: %v", err))
	}
	return b
}

// Plan checks tasks against the team and returns what a run of them would do. The error
// is [task.Problems] with pointers into the tasks as written. It has all problems of one
// stage: first the names and values of the options and the tasks, then labels and sizes,
// then the assertions. Plan calls no model and changes nothing.
//
// If the policy has slow patterns, checking large inputs may take a second, and checking a
// large [RunOptions].Answer 30 seconds.
func (t *Team) Plan(specs []task.Spec, o *RunOptions) (*Plan, error) {
	options := o.internal()
	p, err := (*engine.Team)(t).Plan(specs, options)
	if err != nil {
		return nil, err
	}
	return newPlan(t, p, options), nil
}

// PlanTeam asks the coordinator for a plan of the goal and checks it, and runs nothing.
// This makes one model call, or two if the first plan cannot be run. The error is
// [task.Problems] if the coordinator could not be called, and a [*TaskError] if it
// returned no valid plan.
func (t *Team) PlanTeam(ctx context.Context, goal Goal, o *RunOptions) (*Plan, error) {
	options := o.internal()
	p, err := (*engine.Team)(t).PlanTeam(ctx, goal.internal(), options)
	if err != nil {
		return nil, publicError(err)
	}
	options = cmp.Or(options, new(engine.RunOptions))
	options.Answer = new(goal.internal())
	return newPlan(t, p, options), nil
}

// RunTasks runs a graph of tasks and returns the result of each.
//
// The error is nil if every task completed, and a [*RunError] with the Result if the
// run started and did not succeed. Any other error means that the run did not start and
// nothing was spent: [task.Problems] list what is wrong with the tasks or the options.
//
// When RunTasks returns, no goroutine of the run is left, except one for each subscriber
// that does not return.
func (t *Team) RunTasks(ctx context.Context, specs []task.Spec, o *RunOptions) (*Result, error) {
	options := o.internal()
	return ended((*engine.Team)(t).RunTasks(ctx, specs, options))
}

// RunAgent gives one agent a prompt: the text, followed by the inputs of the options. The
// same gate and limits apply as to a task of a graph, and the errors are those of
// [Team.RunTasks].
func (t *Team) RunAgent(ctx context.Context, agent, text string, o *RunOptions) (*Result, error) {
	options := o.internal()
	return ended((*engine.Team)(t).RunAgent(ctx, agent, text, options))
}

// RunTeam turns a goal into an answer: the coordinator plans tasks, the plan is checked
// as the user's own tasks would be, the tasks run, and the coordinator answers the goal
// from their results. If the plan cannot be run, the coordinator is asked once to correct
// it and gets a list of everything that is wrong. If its second plan cannot be run either,
// nothing runs. The errors are those of [Team.RunTasks].
func (t *Team) RunTeam(ctx context.Context, goal Goal, o *RunOptions) (*Result, error) {
	options := o.internal()
	return ended((*engine.Team)(t).RunTeam(ctx, goal.internal(), options))
}

// Resume continues the run with this ID in o.Journal, with the tasks in o.Tasks or, if
// there are none, the goal in o.Answer. Completed tasks are not run again unless their
// prompts have changed since, and what earlier processes spent counts against the
// budgets. While another process works on the run, the error wraps [journal.ErrLeased].
//
// [journal.ErrLeased]: https://pkg.go.dev/github.com/runteam/runteam/journal#pkg-variables
func (t *Team) Resume(ctx context.Context, runID string, o *RunOptions) (*Result, error) {
	options := o.internal()
	res, err := (*engine.Team)(t).Resume(ctx, runID, options)
	return ended(res, hintTasks(err))
}

// Replay repeats the run with this ID from o.Journal, with the tasks in o.Tasks or, if
// there are none, the goal in o.Answer. No agent is called and nothing is stored: the
// recorded answers are used, and a task whose prompt differs fails with the code
// NOT_IN_JOURNAL. With o.Replay.Ask, agents are called where prompts differ, and the new
// run is stored under o.RunID.
func (t *Team) Replay(ctx context.Context, runID string, o *RunOptions) (*Result, error) {
	options := o.internal()
	res, err := (*engine.Team)(t).Replay(ctx, runID, options)
	return ended(res, hintTasks(err))
}
