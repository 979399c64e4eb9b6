package team

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A Plan is what a run would do, checked before anything runs. [Plan.Run] runs it. Its
// JSON form says who reads what, at which label and by which rule.
type Plan struct {
	Tasks    []PlannedTask  // in the order written
	Warnings []task.Problem // a run starts despite them

	made func() madePlan // a function, so that no verb of package fmt prints the inputs
}

// A madePlan is what a plan runs.
type madePlan struct {
	team    *Team
	checked *plan.Plan
	options *engine.RunOptions
}

// A PlannedTask says who will work on a task, and what may reach that agent.
type PlannedTask struct {
	ID       task.ID
	Title    string
	Assignee string
	Label    label.Classification // of its prompt and its result, at most
	LeavesTo string               // the endpoint that reads its prompt; empty for an agent in this process
}

func newPlan(t *Team, checked *plan.Plan, o *engine.RunOptions) *Plan {
	p := &Plan{Tasks: make([]PlannedTask, len(checked.Tasks)), Warnings: slices.Clone(checked.Warnings)}
	for i := range p.Tasks {
		t := &checked.Tasks[i]
		p.Tasks[i] = PlannedTask{ID: t.ID, Title: t.Title, Assignee: t.Assignee, Label: t.Label, LeavesTo: t.LeavesTo}
	}
	if o == nil {
		o = new(engine.RunOptions)
	}
	made := madePlan{t, checked, o}
	p.made = func() madePlan { return made }
	return p
}

// errNoPlan refuses a plan that no team made.
var errNoPlan = task.Problems{{Message: "the plan is nil or zero", Hint: "make it with Team.Plan or Team.PlanTeam", Err: task.ErrInvalid}}

// Run runs the plan under the options that it was made with, as [Team.RunTasks] would run
// its tasks. A plan may run several times.
//
// RunID (unless empty), Subscribers, Stream, Monitor, Journal, Reuse and Fresh of o replace
// those of the plan; a nil o replaces none. The other options are part of the plan and are ignored
// in o.
func (p *Plan) Run(ctx context.Context, o *RunOptions) (*Result, error) {
	if p == nil || p.made == nil {
		return nil, errNoPlan
	}
	made := p.made()
	options := *made.options
	if o != nil {
		options.RunID = cmp.Or(o.RunID, options.RunID)
		options.Subscribers, options.Monitor, options.Journal = subscribers(o.Subscribers), o.Monitor.inner(), o.Journal
		options.Stream, options.Reuse, options.Fresh = stream(o.Stream), o.Reuse, o.Fresh
	}
	return ended((*engine.Team)(made.team).RunPlan(ctx, made.checked, &options))
}

// Specs returns the tasks in the form that [Team.RunTasks] takes, each with its agent. The
// label of a task that the coordinator planned is the label of what the coordinator had
// read.
func (p *Plan) Specs() []task.Spec {
	if p == nil || p.made == nil {
		return nil
	}
	return p.made().checked.Specs()
}

// Err returns the assertions of [RunOptions].Assert that do not hold, as [task.Problems],
// or nil if all hold. A run of the plan would return the same error.
func (p *Plan) Err() error {
	if p == nil || p.made == nil {
		return errNoPlan
	}
	if broken := p.made().checked.Broken(); len(broken) > 0 {
		return broken
	}
	return nil
}

// MarshalJSON writes who reads what, at which label and by which rule.
func (p *Plan) MarshalJSON() ([]byte, error) {
	if p == nil || p.made == nil {
		return nil, errNoPlan
	}
	return json.Marshal(p.made().checked)
}
