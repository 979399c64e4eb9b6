package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
)

// A resumption is a run that is taken up where it is.
type resumption struct {
	journal *journal.Journal
	keyed   bool
	stored  *journal.Stored
	memory  *remembered
	names   taskNames // of its tasks, also of those that the coordinator planned
	anew    bool      // flags ask for something else than the run did
}

func (a *app) resumeCommand() *cobra.Command {
	j := &job{stage: stage{alone: true}}
	cmd := &cobra.Command{
		Use:   "resume [RUN]",
		Short: "Resume a run that was interrupted or failed, without repeating completed tasks",
		Long: `resume resumes a run of the journal: the newest, or the one whose id begins with
RUN. Completed tasks are not run again, unless what their agents would see has
changed since; tasks that failed, were skipped or interrupted run again. The spec
and the files in its folder are read from where they were. If the spec is gone or
came from standard input, the copies in the journal are used. A file outside the
folder of the spec is read only if a flag of this command names it; for an input,
the copy is used otherwise. Flags are those of the run, unless given again.`,
		Example: `  runteam resume                               the last run of this folder's journal
  runteam resume 1f3c                          the one whose id begins so
  runteam resume 1f3c --model gpt-4o           with another model: calls that it affects are repeated
  runteam resume --fresh "Score fraud"         and this task again in any case`,
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.resume(cmd, j, strings.Join(args, ""))
		},
	}
	j.source.flags(cmd)
	j.mergeFlags(cmd)
	cmd.Flags().StringVar(&j.coordinator, "coordinator", "", "take the coordinator's settings from `FILE` instead")
	j.stage.flags(cmd)
	j.limits.flags(cmd, "the work of this command")
	j.viewFlags(cmd)
	j.trace.flags(cmd)
	j.events.flags(cmd)
	cmd.Flags().BoolVar(&j.record.force, "force", false, "with --trace, --audit-anchor and --events: replace a file that exists")
	j.reuse.freshFlag(cmd)
	j.journal.flags(cmd)
	offers := newCompleter(a, &j.journal)
	offers.arguments(cmd, false, false)
	offers.taskFlag(cmd, "fresh", true)
	offers.inputFlag(cmd)
	return cmd
}

// oneRun accepts one RUN or none.
func oneRun(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 1:
		return usageError("%s takes one RUN, not %d: %s", cmd.CommandPath(), len(args), strings.Join(args, " "))
	case len(args) == 1 && args[0] == "":
		return usageError("RUN is empty: write the id of a run, or leave it out for the last one")
	}
	return nil
}

// resume goes on with a run.
func (a *app) resume(cmd *cobra.Command, j *job, run string) error {
	if err := j.check(cmd, a); err != nil {
		return err
	}
	again, err := a.resumption(cmd.Context(), j, run)
	if err != nil {
		return err
	}
	defer again.journal.Close() //nolint:errcheck // what of it matters, the run has said
	if err := j.takeUp(cmd, a, again); err != nil {
		return err
	}
	return a.runJob(cmd, j)
}

// resumption finds the run and reads what the journal has of it.
func (a *app) resumption(ctx context.Context, j *job, run string) (*resumption, error) {
	key, err := a.journalKey(j.journal.keyFile)
	if err != nil {
		return nil, err
	}
	again := &resumption{keyed: key != nil}
	if again.journal, _, err = a.openJournal(&j.journal, toChange); err != nil {
		return nil, err
	}
	if err := again.load(ctx, j, run); err != nil {
		_ = again.journal.Close() // nothing was written
		return nil, err
	}
	return again, nil
}

// load reads what the journal has of a run, and refuses one that cannot go on.
func (r *resumption) load(ctx context.Context, j *job, run string) (err error) {
	if run, err = meant(ctx, r.journal, run); err != nil {
		return err
	}
	if r.stored, err = r.journal.Load(ctx, run); err != nil {
		return unloaded(whyEnded(ctx, err))
	}
	if r.memory, err = remember(&r.stored.Info); err != nil {
		return err
	}
	if r.memory.leavesOut() {
		return usageError("run %s is another run without some of its context, and is not resumed: runteam replay makes it again", shortRun(r.stored.Info.Run))
	}
	if r.names, err = r.named(ctx); err != nil {
		return err
	}
	return j.readable(r)
}

// named returns the tasks of the run. What the coordinator planned stands in the
// record alone.
func (r *resumption) named(ctx context.Context) (taskNames, error) {
	if len(r.stored.Info.Tasks) > 0 {
		return r.stored.Info.Tasks, nil
	}
	t, err := r.journal.Trace(ctx, r.stored.Info.Run)
	if err != nil {
		return nil, unloaded(whyEnded(ctx, err))
	}
	return slices.DeleteFunc(taskNames(t.Tasks), func(t trace.Task) bool { return t.Assignee == handoff.Coordinator }), nil
}

// sealed begins why a result cannot be read that another key would open.
const sealed = "encrypted under the key "

// readable refuses a run with results that another key would open: they would
// be paid for again for want of a flag.
func (j *job) readable(again *resumption) error {
	var titles []string
	why, fresh := "", again.names.ids(j.reuse.fresh)
	for _, x := range latest(&again.stored.History) {
		if strings.HasPrefix(x.Missing, sealed) && !slices.Contains(fresh, x.Task) {
			titles, why = append(titles, x.Title), x.Missing
		}
	}
	if len(titles) == 0 {
		return nil
	}
	return &fault{kind: kindRuntime, err: fmt.Errorf("run %s: the results of %s are %s; --fresh TASK runs one again instead", shortRun(again.stored.Info.Run), listed(titles, 3), why)}
}

// latest returns the last exchange of each task that completed.
func latest(h *record.History) []*record.AgentCall {
	at := map[task.ID]int{}
	var out []*record.AgentCall
	for i := range h.Log {
		x := h.Log[i].Exchange
		if x == nil || x.Part != "" || !x.Completed() {
			continue
		}
		if k, known := at[x.Task]; known {
			out[k] = x
			continue
		}
		at[x.Task] = len(out)
		out = append(out, x)
	}
	return out
}
