package restored

import (
	"context"
	"errors"
	"fmt"

	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/run"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
)

// A NoPlanError says why a stored run has no plan to show.
type NoPlanError struct{ Err error }

func (e *NoPlanError) Error() string {
	if errors.Is(e.Err, engine.ErrNoPlan) {
		return e.Err.Error()
	}
	return "the plan of the run is unknown: " + e.Err.Error()
}

// Unwrap returns the reason.
func (e *NoPlanError) Unwrap() error { return e.Err }

// PlanFor makes the plan of a stored run again, from the whole history; see [Plan]. The spec is internal, and the plan of a
// coordinator has the label of what the coordinator had read: a user of the run who may not see that gets a [*NoPlanError].
func PlanFor(ctx context.Context, con *console.Console, g *journals.Flags, info *journal.Info, history *record.History) (*engine.Plan, error) {
	p, err := Plan(ctx, con, g, info, history)
	if err != nil {
		return nil, err
	}
	if err := CheckCaller(p, history); err != nil {
		return nil, err
	}
	return p, nil
}

// CheckCaller returns a [*NoPlanError] if the user of the run may not see its spec, or what a coordinator wrote in its
// plan.
func CheckCaller(p *engine.Plan, history *record.History) error {
	accepts := history.Clearance()
	if accepts < label.Internal {
		return &NoPlanError{fmt.Errorf("the spec of a run is internal, and the user of the run sees up to %s", accepts)}
	}
	if level := plannedLabel(p); level > accepts {
		return &NoPlanError{fmt.Errorf("the coordinator's plan is %s, and the user of the run sees up to %s", level, accepts)}
	}
	return nil
}

// plannedLabel returns the label of what a coordinator wrote in a plan.
func plannedLabel(p *engine.Plan) (level label.Classification) {
	if !p.Options().Planned {
		return label.Public
	}
	for i := range p.Graph.Len() {
		level = level.Join(p.Graph.Task(i).Classification)
	}
	return level
}

// Plan makes the plan of a stored run again, by its newest policy; see [engine.Team.StoredPlan]. It calls no
// model and uses no network, and leaves con as it is. The error is a [*NoPlanError] for a run of another program,
// one whose spec cannot be read, and one whose coordinator has made no plan.
func Plan(ctx context.Context, con *console.Console, g *journals.Flags, info *journal.Info, history *record.History) (*engine.Plan, error) {
	own := *con // Load changes its environment
	plan, err := makePlan(ctx, &own, g, info, history)
	if err != nil && ctx.Err() == nil {
		err = &NoPlanError{err}
	}
	return plan, err
}

func makePlan(ctx context.Context, con *console.Console, g *journals.Flags, info *journal.Info, history *record.History) (*engine.Plan, error) {
	s, err := Load(ctx, con, g, info, Options{})
	if err != nil {
		return nil, err
	}
	t, err := s.Repeater(con.LookupEnv, history.Log)
	if err != nil {
		return nil, err
	}
	o := s.RepeatOptions(info.Run, history, history.Mask)
	plan, err := files.Await(ctx, func() (*engine.Plan, error) { return t.StoredPlan(ctx, info.Run, &o) }) // patterns of a policy may be slow
	if err == nil && s.Invocation.Offline {
		connect.ShowScript(plan)
	}
	return plan, s.File.Locate(err)
}

// Repeater returns the [Spec.SilentTeam] that repeats a run: with the models that its agents had, and without
// their budgets, since no model is called, and prices may have changed.
func (s *Spec) Repeater(lookup func(string) (string, bool), log []record.Entry) (*engine.Team, error) {
	s.RestoreModels(log)
	for i := range s.File.Agents {
		s.File.Agents[i].Member.MaxTokenBudget, s.File.Agents[i].Member.MaxCostBudget = 0, 0
	}
	if c := s.File.Coordinator; c != nil {
		c.MaxTokenBudget, c.MaxCostBudget = 0, 0
	}
	return s.SilentTeam(lookup)
}

// RepeatOptions returns the options with which a run is repeated from its history, whose keys mask returns. The run
// started, so its budgets are not checked again.
func (s *Spec) RepeatOptions(id string, history *record.History, mask func(record.Key) record.Key) engine.RunOptions {
	o, h := s.File.Run, *history
	o.RunID, o.Reuse, o.Timeout, o.MaxTokenBudget, o.MaxCostBudget = id, false, 0, 0, 0
	h.Mask, h.Versions = mask, s.Invocation.Versions
	o.Replay, o.Journal = &engine.Replay{Without: s.Invocation.Without, WithoutInputs: s.Invocation.WithoutInputs}, run.ReplayJournal{History: &h}
	run.SetTasks(&o, s.File)
	return o
}
