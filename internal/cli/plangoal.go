package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/team"
)

// planGoal asks the coordinator for a plan, and says so before it does.
func (a *app) planGoal(ctx context.Context, j *planJob, file *specfile.File) (*team.Plan, error) {
	c, err := a.connector(ctx, &j.stage, file, nil)
	if err != nil {
		return nil, err
	}
	defer c.close()
	file.Config.Logger = a.log
	t, err := build(file, c.connect)
	if f, ok := errors.AsType[*fault](err); ok && f.kind == kindRuntime {
		f.err = fmt.Errorf("a goal is planned by a model: %w", f.err)
	}
	if err != nil {
		return nil, err
	}
	a.say("runteam: asking the coordinator (%s) for a plan: one model call, and one more if the first plan cannot be run", c.where(file))
	start := a.now()
	o := file.Run
	j.limits.apply(&o)
	plan, err := t.PlanTeam(ctx, *file.Goal, &o)
	if failed, ok := errors.AsType[*team.TaskError](err); ok {
		return nil, unplanned(ctx, failed)
	}
	if err != nil {
		return nil, file.Locate(err)
	}
	if !plan.Goal { // one agent does it all, and nobody else answers
		plan.Coordinator = nil
	}
	a.say("runteam: planned %s in %s%s", plural(len(plan.Tasks), "task"), elapsed(a.now().Sub(start)), tokens(plan.Usage, "; "))
	return plan, nil
}

// where says which model is asked, and where it is.
func (c *connector) where(file *specfile.File) string {
	if c.server != nil {
		return "offline"
	}
	asked := file.Coordinator.Connection
	base, _ := baseURLOf(specfile.Agent{Connection: asked}, c.lookup) // it was connected to it
	if asked.BaseURL != "" {
		base = asked.URLAsWritten()
	}
	return fmt.Sprintf("%s at %s", cleanLine(asked.ModelAsWritten()), cleanLine(base))
}

// unplanned is why there is no plan, and what to do about it.
func unplanned(ctx context.Context, e *team.TaskError) error {
	f := &fault{kind: kindRuntime, err: fmt.Errorf("%w\n%s", e, coordinatorNext(e)), exit: statusFailed}
	stop, interrupted := errors.AsType[*interrupted](context.Cause(ctx))
	switch {
	case interrupted:
		f.err, f.exit = fmt.Errorf("%w: there is no plan", stop), stop.status()
	case errors.Is(e, team.ErrTimeout):
		f.err = fmt.Errorf("%w: there is no plan: raise --timeout, or timeoutMs of the spec", e)
	case !answered(e):
		f.exit = statusNoRun
	}
	return f
}

// answered reports whether an endpoint that knows the model answered, if only to refuse.
func answered(err error) bool {
	failed, ok := errors.AsType[*llm.Error](err)
	return !ok || failed.Kind != llm.UnknownModel && failed.Answered()
}

// writable refuses before anything is asked what could not be saved then.
func (j *planJob) writable(file *specfile.File) error {
	if err := j.save.check(append(j.reads(file), j.scriptOf(file))...); err != nil {
		return err
	}
	_, _, err := file.WithPlan(*file.Goal, nil, filepath.Dir(j.save.path))
	return err
}

// savePlan writes a planned goal as a spec, if that was asked for, and returns
// what could not be kept in it.
func (j *planJob) savePlan(file *specfile.File, plan *team.Plan) ([]specfile.Problem, error) {
	if j.save.path == "" {
		return nil, nil
	}
	text, left, err := file.WithPlan(*file.Goal, plan.Specs(), filepath.Dir(j.save.path))
	if err != nil {
		return nil, err
	}
	return left, j.save.write(text)
}

// saved says what to do with the spec that was written, or why there is none:
// on stderr, since stdout has the plan.
func (a *app) saved(j *planJob, left []specfile.Problem, unsaved error) error {
	switch {
	case j.save.path == "":
		return nil
	case unsaved != nil:
		a.complain(unsaved, problemsOf(unsaved))
		return ended(statusFailed)
	}
	a.warn(left)
	offline := ""
	if j.offline {
		offline = " --offline"
	}
	if j.script != "" {
		offline += " --script " + shellWord(j.script)
	}
	a.say("runteam: saved as %s. Next: runteam run %s%s", cleanLine(j.save.path), shellWord(j.save.path), offline)
	return nil
}
