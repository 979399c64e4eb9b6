// Package replay is the command replay: it repeats a stored run, repeats it without some of its
// context, or compares two runs.
package replay

import (
	"context"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/restored"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// replayFlags are the arguments and flags of replay.
type replayFlags struct {
	journals.ReadFlags
	without       []string
	withoutInputs []string
	other         string // of --diff
	models        []string
	environment   source.EnvironmentFlags
	reveal        bool
}

// Command returns the command replay.
func Command(con *console.Console) *cobra.Command {
	r := &replayFlags{}
	cmd := &cobra.Command{
		Use:   "replay [RUN]",
		Short: "Repeat a run from the journal without a model, omit some of its context, or compare two runs",
		Long: `replay repeats a run of the journal: the newest, or the one whose ID begins with
RUN. It builds each prompt again, from the copies of the spec and the inputs in the
journal. Each prompt must equal the one that was sent, byte for byte, and gets the
same answer. replay calls no model, uses no network and writes nothing. It prints the
result as "runteam run" does, and says on stderr whether the prompts are equal.

With --without or --without-input the run is repeated without that context, as a new
run. A prompt that stays the same gets the answer of the run; for a changed prompt the
agent is called as in the run. Then both runs are compared, as with --diff.

With --diff two stored runs are compared task by task, and nothing is run.

Exit status: 0 if the prompts, or with --diff the two runs, are equal; 1 if not.
With --without 0, or 1 if a task failed.`,
		Example: `  runteam replay                               the newest run
  runteam replay 0195c3a1 --without "Check the blacklist"
  runteam replay 0195c3a1 --without-input policy
  runteam replay 0195c3a1 --diff 0195d00f`,
		Args: r.Arguments(1, "one RUN"),
		RunE: func(cmd *cobra.Command, _ []string) error { return runReplay(con, cmd, r) },
	}
	r.flags(cmd, con)
	return cmd
}

// flags adds the flags of replay and their completion.
func (r *replayFlags) flags(cmd *cobra.Command, con *console.Console) {
	f := cmd.Flags()
	f.StringArrayVar(&r.without, "without", nil, "repeat the run without `TASK`, a title, key or ID, as if nothing depended on it (repeatable)")
	f.StringArrayVar(&r.withoutInputs, "without-input", nil, "repeat the run without the input `NAME` (repeatable)")
	f.StringVar(&r.other, "diff", "", "compare the run with `RUN2` without running anything")
	f.StringArrayVar(&r.models, "model", nil, "with --without: use this `MODEL`, as for run (default: the models of the run)")
	r.environment.AddTo(cmd)
	f.BoolVar(&r.reveal, "reveal", false, "show secrets; on a terminal only")
	r.Flags.AddStoringTo(cmd)
	r.Flags.AddWorkspacesTo(cmd)
	flags.Complete(cmd, "without-input", nil)
	offers := journals.NewCompleter(con, &r.Flags)
	offers.Arguments(cmd, false, false)
	offers.TaskFlag(cmd, "without", true)
	flags.CompleteBy(cmd, "diff", func(cmd *cobra.Command, _ []string, word string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return offers.Runs(cmd, word), cobra.ShellCompDirectiveNoFileComp
	})
}

// runReplay repeats a run, repeats it without some of its context, or compares it with another.
func runReplay(con *console.Console, cmd *cobra.Command, r *replayFlags) error {
	if err := r.checkFlags(cmd, con); err != nil {
		return err
	}
	switch {
	case r.other != "":
		return compareRuns(con, cmd, r)
	case len(r.without)+len(r.withoutInputs) > 0:
		return replayWithout(con, cmd, r)
	}
	return replay(con, cmd, r)
}

func (r *replayFlags) checkFlags(cmd *cobra.Command, con *console.Console) error {
	changed := cmd.Flags().Changed
	omits := changed("without") || changed("without-input")
	switch {
	case changed("diff") && omits:
		return exit.Usagef("--diff compares two stored runs: leave --without out")
	case r.reveal && (changed("diff") || omits):
		return exit.Usagef("--diff and --without compare stored runs, which hide secrets: leave --reveal out")
	case r.reveal && !con.IsTerminal(con.Stdout):
		return exit.Usagef("--reveal shows secrets on a terminal only, and standard output is not a terminal")
	case slices.Contains(r.without, "") || slices.Contains(r.withoutInputs, ""):
		return exit.Usagef("--without is empty: name a task, or with --without-input an input")
	}
	for _, flag := range []string{"model", "allow-env", "env-file"} {
		if changed(flag) && !omits {
			return exit.Usagef("--%s is for --without: otherwise no model is called", flag)
		}
	}
	return nil
}

// loadSpec reads the spec of the run from the copies in the journal.
func (r *replayFlags) loadSpec(ctx context.Context, con *console.Console, k *journals.StoredRun, callsModels bool) (*restored.Spec, error) {
	return restored.Load(ctx, con, &r.Flags, &k.Info, restored.Options{Models: r.models, Environment: r.environment, CallsModels: callsModels})
}

// finalCalls returns the calls that the result of a run consists of: the last attempt of each
// task, with its parts. It leaves out what follows calls of tools, which a replay does not make
// again, and counts it: later turns and children.
func finalCalls(k *journals.StoredRun) (out []*record.AgentCall, later int) {
	type attempt struct {
		task   task.ID
		number int
	}
	callsTools := map[attempt]bool{}
	for i := range k.History.Log {
		if x := k.History.Log[i].Turn; x != nil && x.CallsTools {
			callsTools[attempt{x.Task, x.Attempt}] = true
		}
	}
	for _, t := range k.Tasks {
		last := t.LastAttempt()
		if last == nil || k.State.Shown(t) == runstate.Removed {
			continue
		}
		for _, x := range t.Answered() {
			switch {
			case x.Key == (record.Key{}):
			case x == last:
				out = append(out, x)
			case x.Part == "" || x.Attempt != last.Attempt:
			case record.ChildOf(x.Part) != "", callsTools[attempt{x.Task, x.Attempt}] && strings.Contains(x.Part, record.TurnPrefix):
				later++
			default:
				out = append(out, x)
			}
		}
	}
	return out, later
}
