package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/plan"
)

// ErrNoPlan reports a run for a goal of which there is no plan. What wraps it quotes no text of the run.
var ErrNoPlan = errors.New("the run has no plan")

// StoredPlan returns the plan of the run with this ID in o.Journal, as a resume of the run follows it: of the
// tasks in o.Tasks or, if there are none, of those that the coordinator planned for the goal in o.Answer, by the
// newest policy that the run has had. Tasks that have completed count with what they read and made. No agent is
// called and nothing is stored. The error wraps [ErrNoPlan] if the coordinator has made no plan that holds.
func (t *Team) StoredPlan(ctx context.Context, runID string, o *RunOptions) (*Plan, error) {
	if err := t.made(ctx); err != nil {
		return nil, err
	}
	if found := checkPrior(runID, o); len(found) > 0 {
		return nil, found
	}
	prior, err := o.Journal.LoadRun(ctx, runID)
	if err != nil {
		return nil, err
	}
	options := *o
	options.Journal, options.Replay = nil, cmp.Or(o.Replay, &Replay{})
	options.Past = memoOfReplay(prior, options.Replay)
	if options.RunID, err = idOf(prior, runID); err != nil {
		return nil, err
	}
	if len(options.Tasks) == 0 && options.Answer != nil {
		return t.storedGoal(ctx, &options)
	}
	return t.storedTasks(ctx, settings(&options))
}

// storedTasks returns the plan of tasks of the caller.
func (t *Team) storedTasks(ctx context.Context, o RunOptions) (*Plan, error) {
	start := time.Now()
	p, err := t.roster.Check(o.Tasks, o, start)
	if err != nil {
		return nil, err
	}
	r, err := newPlanRun(ctx, p, o, start)
	if err != nil {
		return nil, err
	}
	resumeFrom(r)
	if err := r.setPlan(p); err != nil {
		return nil, err
	}
	r.plan.Describe()
	if c := r.coordinator; c.goal != nil {
		r.plan.Coordinator = plan.PlannedCoordinator(c.config, &c.caps)
	}
	return r.plan, nil
}

// storedGoal returns the plan that the coordinator made for a goal. The steps in which it did are repeated with
// their recorded answers.
func (t *Team) storedGoal(ctx context.Context, o *RunOptions) (*Plan, error) {
	r, err := t.newGoalRun(ctx, *o.Answer, o)
	if err != nil {
		return nil, err
	}
	r.plansOnly, r.restores = true, true
	res, err := r.execute(ctx)
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case r.plan == nil:
		return nil, whyNoPlan(r.coordinator)
	}
	return r.planOf(res)
}

// resumeFrom has a run that repeated another one so far continue as a resume of that one: by the newest policy, which
// holds for each task that has not completed.
func resumeFrom(r *run) {
	list := r.all()
	r.memo = r.memo.Resumed()
	r.policies.now.Store(list[len(list)-1])
}

// whyNoPlan returns why a stored run for a goal has no plan, in words that quote nothing of the run.
func whyNoPlan(c *coordinator) error {
	failed := c.unplanned
	switch {
	case failed == nil || errors.Is(failed, errReplayAsks):
		return fmt.Errorf("%w: %s has not approved it yet", ErrNoPlan, c.config.Approve)
	case failed.Code == codes.PlanInvalid || failed.Code == codes.PlanRefused:
		return fmt.Errorf("%w: the plan of the coordinator was rejected", ErrNoPlan)
	case !errors.Is(failed, ErrReplay):
		return fmt.Errorf("%w: the coordinator failed to make one", ErrNoPlan)
	case hasAnswered(c, StepKind(failed.Title)):
		return fmt.Errorf("%w that can be made again: the prompt of the coordinator would not be the one that was sent", ErrNoPlan)
	}
	return fmt.Errorf("%w: the coordinator has not made one yet", ErrNoPlan)
}

// hasAnswered reports whether the repeated run has an answer to the last step of a kind.
func hasAnswered(c *coordinator, kind StepKind) bool {
	return c.run.memo.Attempts(stepID(kind)).Begun() >= c.asked[kind]
}
