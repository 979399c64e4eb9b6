// Package plan is the commands plan and check: they show what a run would do and report mistakes in
// a spec, without running a task.
package plan

import (
	"context"
	"fmt"
	"strings"

	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/spf13/cobra"
)

// planFlags are the arguments and flags of plan.
type planFlags struct {
	source.SpecFlags
	connect.AnswerFlags
	flags.Limits
	flowFlags
	assertFlags
	chatFlags
	stored storedFlags
	save   files.Output
}

// Command returns the command plan.
func Command(con *console.Console) *cobra.Command {
	j := &planFlags{save: files.Output{Flag: "save", KeepMode: true}}
	cmd := &cobra.Command{
		Use:   "plan [SPEC]",
		Short: "Show who would read what, at which label, and which endpoints it goes to; no task is run",
		Long: `plan shows what a run would do, and runs no task. For a list of tasks it needs
no key and no network. With --goal, or with goal: in the spec, the coordinator
makes a plan: one model call, and one more if the first plan cannot be run.

For every input and every result it shows which agent, endpoint and person could
see it: whole, in part, only text derived from it, or never; and which variables of
your environment are sent where. --assert checks an assertion, like assert: in
the spec; the exit status is 1 if it is broken.

With --run it shows the flow of a stored run, by the policy that the run has now.`,
		Example: `  runteam plan                                 the team.yaml of this folder
  runteam plan claims -o dot | dot -Tsvg -o claims.svg
  runteam plan claims -o mermaid > claims.mmd
  runteam plan claims --from claim             only where the input claim can go
  runteam plan claims --assert "input claim never derives into service-desk"
  runteam plan --chat                          a turn of runteam chat: who reads the turns before it
  runteam plan --run 1f3c                      who can see what in a stored run
  runteam plan --goal "Compare the two offers." --save offers.yaml`,
		Annotations: map[string]string{console.FormsAnnotation: strings.Join(console.GraphForms, " ")},
		Args:        j.Argument,
		RunE:        func(cmd *cobra.Command, _ []string) error { return plan(con, cmd, j) },
	}
	j.SpecFlags.AddTo(cmd)
	j.AddMergeFlagsTo(cmd)
	j.AddGoalFlagsTo(cmd)
	j.AnswerFlags.AddTo(cmd)
	j.Limits.AddTo(cmd, "the planning of a goal")
	j.flowFlags.flags(cmd)
	j.assertFlags.flags(cmd)
	j.chatFlags.addTo(cmd, &j.SpecFlags)
	j.stored.addTo(cmd, con)
	f := cmd.Flags()
	f.StringVar(&j.save.Path, "save", "", "write the planned tasks as a spec to `FILE`")
	f.BoolVar(&j.save.Force, "force", false, "with --save: replace a file that exists")
	return cmd
}

// check refuses flags that have no effect without a goal.
func (j *planFlags) check(con *console.Console, cmd *cobra.Command, file *specfile.File) error {
	changed := cmd.Flags().Changed
	switch {
	case j.save.Force && !changed("save"):
		return exit.Usagef("--force needs --save")
	case file.Goal != nil && changed("save"):
		return j.writable(con, file)
	case file.Goal != nil:
		return nil
	case changed("save"):
		return exit.Usagef("--save writes what the coordinator plans: add --goal TEXT")
	}
	for _, flag := range []string{"offline", "timeout", "max-token-budget"} {
		if changed(flag) {
			return exit.Usagef("--%s is for the coordinator, and a plan of tasks calls no model; leave it out, or add --goal TEXT", flag)
		}
	}
	return nil
}

func plan(con *console.Console, cmd *cobra.Command, j *planFlags) error {
	if err := j.stored.check(con, cmd, j.Path); err != nil {
		return err
	}
	checkChat := func(cmd *cobra.Command) error { return j.chatFlags.check(cmd, &j.SpecFlags) }
	checkFlow := func(cmd *cobra.Command) error { return j.flowFlags.check(cmd, con.Settings.Output) }
	for _, check := range []func(*cobra.Command) error{j.Limits.Check, j.AnswerFlags.Check, checkFlow, checkChat} {
		if err := check(cmd); err != nil {
			return err
		}
	}
	if j.stored.run != "" {
		return planStored(cmd.Context(), con, &j.stored, &j.flowFlags)
	}
	return planSpec(con, cmd, j)
}

// planSpec shows the plan of a spec.
func planSpec(con *console.Console, cmd *cobra.Command, j *planFlags) error {
	j.NoCalls = j.Offline
	file, err := j.Load(cmd.Context(), con)
	if err != nil {
		return err
	}
	if file.Run.Database, err = j.stored.Database(con); err != nil {
		return err
	}
	if err := j.setTurn(file, &j.SpecFlags); err != nil {
		return err
	}
	if err := journals.CheckOutputs(con, &journals.Flags{}, &j.save); err != nil {
		return err
	}
	if err := j.check(con, cmd, file); err != nil {
		return err
	}
	plan, err := makePlan(cmd.Context(), con, j, file)
	if err != nil {
		return err
	}
	left, unsaved := j.savePlan(file, plan)
	if err := printPlan(cmd.Context(), con, file, plan, j.flowFlags); err != nil {
		return err
	}
	if err := printSaved(con, j, left, unsaved); err != nil {
		return err
	}
	return reportBroken(con, plan.Findings, Drawings[con.Settings.Output] == nil)
}

// makePlan plans a spec, and checks the plan against the assertions of the spec and the flags.
func makePlan(ctx context.Context, con *console.Console, j *planFlags, file *specfile.File) (plan *engine.Plan, err error) {
	if err := j.assertFlags.add(file); err != nil {
		return nil, err
	}
	switch {
	case j.Chat:
		plan, err = planChat(ctx, con, j, file)
	case file.Goal != nil:
		if plan, err = planGoal(ctx, con, j, file); err == nil && j.Offline {
			connect.ShowScript(plan)
		}
	case len(file.Tasks) == 0:
		err = source.NothingToDo("plan", &j.SpecFlags, file)
	default:
		plan, err = checkedPlan(ctx, con, file)
	}
	return plan, j.assertFlags.locate(err)
}

// printPlan prints a plan in the form of the output, or the part of its flow that flags select.
func printPlan(ctx context.Context, con *console.Console, file *specfile.File, plan *engine.Plan, selected flowFlags) error {
	warnings := source.Warnings(file, plan)
	if _, ok := Drawings[con.Settings.Output]; ok {
		con.Warn(warnings)
		return printDrawing(con, con.Settings.Output, plan)
	}
	view, err := selected.view(plan)
	if err != nil {
		return err
	}
	goal := source.GatedGoal(ctx, file, plan.User.Accepts, con.Now())
	if con.Settings.JSON() {
		return con.PrintJSON(planDocument{plan, goal, view.document(), source.SentVariables(file, con.LookupEnv), warnings})
	}
	con.Warn(warnings)
	var b strings.Builder
	if !view.from && !view.to {
		writePlan(&b, plan, goal, file.Run.Strategy)
		if uses := source.SentVariables(file, con.LookupEnv); len(uses) > 0 {
			fmt.Fprintln(&b, "sends variables of the environment:")
			source.WriteVariables(&b, uses, "  ")
		}
	}
	view.write(&b)
	writeFindings(&b, plan.Findings)
	return con.PrintText(b.String())
}

// planDocument is a plan in JSON, with the goal as the caller may read it and located warnings.
type planDocument struct {
	*engine.Plan
	GoalText    string             `json:"goalText,omitempty"` // whether the coordinator planned the tasks is in Plan
	Flow        flowDocument       `json:"flow"`
	Environment []specfile.EnvUse  `json:"environment,omitempty"` // which variables go where
	Warnings    []specfile.Problem `json:"warnings"`
}
