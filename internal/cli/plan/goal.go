package plan

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/report"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/llm"
)

// planGoal has the coordinator plan a goal, and announces the call.
func planGoal(ctx context.Context, con *console.Console, j *planFlags, file *specfile.File) (*engine.Plan, error) {
	c, err := connect.NewConnector(ctx, con, &j.AnswerFlags, file, nil)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	file.Config.Logger = con.Log
	t, err := connect.BuildTeam(file, c.Connect)
	if f, ok := errors.AsType[*exit.Error](err); ok && f.Kind == exit.KindRuntime {
		f.Err = fmt.Errorf("a goal is planned by a model: %w", f.Err)
	}
	if err != nil {
		return nil, err
	}
	con.Say("runteam: asking the coordinator (%s) for a plan: one model call, and one more if the first plan cannot be run", where(c, file))
	start := con.Now()
	o := file.Run
	j.Limits.Apply(&o)
	plan, err := t.PlanTeam(ctx, *file.Goal, &o)
	if failed, ok := errors.AsType[*engine.TaskError](err); ok {
		return nil, planError(ctx, failed)
	}
	if err != nil {
		return nil, file.Locate(err)
	}
	if !plan.Goal { // one agent does everything, so the coordinator does not answer
		plan.Coordinator = nil
	}
	con.Say("runteam: planned %s in %s%s", tasksText(plan), format.Elapsed(con.Now().Sub(start)), format.Tokens(plan.Usage, "; "))
	return plan, nil
}

// where names the model that is called and its endpoint.
func where(c *connect.Connector, file *specfile.File) string {
	if c.Server != nil {
		return "offline"
	}
	connection := file.Coordinator.Connection
	base, _ := connect.BaseURLOf(connection, c.Lookup) // NewConnector has reported errors
	if connection.BaseURL != "" {
		base = connection.URLAsWritten()
	}
	return fmt.Sprintf("%s at %s", terminal.CleanLine(connection.ModelAsWritten()), terminal.CleanLine(base))
}

// planError says why there is no plan and what to do.
func planError(ctx context.Context, e *engine.TaskError) error {
	f := &exit.Error{Kind: exit.KindRuntime, Err: fmt.Errorf("%w\n%s", e, report.CoordinatorAdvice(e)), Status: exit.StatusFailed}
	switch {
	case ctx.Err() != nil:
		f.Err, f.Status = fmt.Errorf("%w: there is no plan", context.Cause(ctx)), 0
	case errors.Is(e, engine.ErrTimeout):
		f.Err = fmt.Errorf("%w: there is no plan: raise --timeout, or timeoutMs of the spec", e)
	case !answered(e):
		f.Status = exit.StatusNoRun
	}
	return f
}

// answered reports whether an endpoint that knows the model answered, even with an error.
func answered(err error) bool {
	failed, ok := errors.AsType[*llm.Error](err)
	return !ok || failed.Kind != callfault.UnknownModel && callfault.IsAnswered(failed.Kind, failed.Status)
}

// writable refuses a plan that could not be saved, before the call.
func (j *planFlags) writable(con *console.Console, file *specfile.File) error {
	if err := j.save.Check(con.WorkDir, append(j.Reads(file), j.ScriptPath(file))...); err != nil {
		return err
	}
	_, _, err := file.WithPlan(*file.Goal, nil, filepath.Dir(j.save.Path))
	return err
}

// savePlan writes a planned goal as a spec with --save, and returns warnings about what the spec
// does not contain.
func (j *planFlags) savePlan(file *specfile.File, plan *engine.Plan) ([]specfile.Problem, error) {
	if j.save.Path == "" {
		return nil, nil
	}
	text, left, err := file.WithPlan(*file.Goal, plan.Specs(), filepath.Dir(j.save.Path))
	if err != nil {
		return nil, err
	}
	return left, j.save.Write(text)
}

// printSaved says on stderr how to run the saved spec, or why it was not saved.
func printSaved(con *console.Console, j *planFlags, left []specfile.Problem, unsaved error) error {
	switch {
	case j.save.Path == "":
		return nil
	case unsaved != nil:
		con.PrintError(unsaved)
		return exit.Status(exit.StatusFailed)
	}
	con.Warn(left)
	offline := ""
	if j.Offline {
		offline = " --offline"
	}
	if j.Script != "" {
		offline += " --script " + format.ShellPath(j.Script)
	}
	con.Say("runteam: saved as %s. Next: runteam run %s%s", terminal.CleanLine(j.save.Path), format.ShellPath(j.save.Path), offline)
	return nil
}
