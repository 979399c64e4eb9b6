package run

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// A resumed is a run that is taken up where it is.
type resumed struct {
	journal *journal.Journal
	folder  string // that the journal is in, as people know it
	keyed   bool
	stored  *journal.Stored
	memory  *StoredInvocation
	names   source.TaskNames // of its tasks, also of those that the coordinator planned
	anew    bool             // flags ask for something else than the run did
}

// ResumeCommand returns the command resume.
func ResumeCommand(con *console.Console) *cobra.Command {
	j := &Job{AnswerFlags: connect.AnswerFlags{ScriptImpliesOffline: true}}
	asked := &journals.ReadFlags{}
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
		Args: asked.Arguments(1, "one RUN"),
		RunE: func(cmd *cobra.Command, _ []string) error { return resume(con, cmd, j, asked.Run) },
	}
	j.SpecFlags.AddTo(cmd)
	j.AddMergeFlagsTo(cmd)
	cmd.Flags().StringVar(&j.Coordinator, "coordinator", "", "take the coordinator's settings from `FILE` instead")
	j.AnswerFlags.AddTo(cmd)
	j.Limits.AddTo(cmd, "the work of this command")
	j.viewFlags(cmd)
	j.trace.AddTo(cmd)
	j.events.AddTo(cmd)
	cmd.Flags().BoolVar(&j.record.Force, "force", false, "with --trace, --audit-anchor and --events: replace a file that exists")
	j.reuse.freshFlag(cmd)
	j.Journal.AddTo(cmd)
	offers := journals.NewCompleter(con, &j.Journal)
	offers.Arguments(cmd, false, false)
	offers.TaskFlag(cmd, "fresh", true)
	offers.InputFlag(cmd)
	return cmd
}

// resume resumes a run.
func resume(con *console.Console, cmd *cobra.Command, j *Job, run string) error {
	if err := j.check(cmd, con); err != nil {
		return err
	}
	again, err := resumption(cmd.Context(), con, j, run)
	if err != nil {
		return err
	}
	defer again.journal.Close() //nolint:errcheck // what of it matters, the run has said
	if err := j.restore(cmd, con, again); err != nil {
		return err
	}
	return runJob(con, cmd, j)
}

// resumption finds the run and reads what the journal has of it.
func resumption(ctx context.Context, con *console.Console, j *Job, run string) (*resumed, error) {
	key, err := journals.JournalKey(con, j.Journal.KeyFile)
	if err != nil {
		return nil, err
	}
	again := &resumed{keyed: key != nil}
	if again.journal, again.folder, err = journals.Open(con, &j.Journal, journals.ToChange); err != nil {
		return nil, err
	}
	again.folder = filepath.Dir(again.folder)
	if err := again.load(ctx, j, run); err != nil {
		_ = again.journal.Close() // nothing was written
		return nil, err
	}
	return again, nil
}

// load reads the run, and refuses one that cannot be resumed.
func (r *resumed) load(ctx context.Context, j *Job, run string) error {
	found, err := journals.Find(ctx, r.journal, run)
	if err != nil {
		return err
	}
	if r.stored, err = r.journal.Load(ctx, found.Run); err != nil {
		return journals.ReadError(ctx, err)
	}
	if r.memory, err = ReadInvocation(&r.stored.Info); err != nil {
		return err
	}
	if r.memory.OmitsContext() {
		return exit.Usagef("run %s is another run without some of its context, and is not resumed: runteam replay makes it again", journals.ShortRun(found.Run))
	}
	if r.names, err = journals.Tasks(ctx, r.journal, &r.stored.Info); err != nil {
		return err
	}
	return j.checkReadable(r)
}

// encryptedPrefix begins why a result cannot be read that another key would open.
const encryptedPrefix = "encrypted under the key "

// checkReadable refuses a run with results that another key would open: they would
// be paid for again for want of a flag.
func (j *Job) checkReadable(again *resumed) error {
	var titles []string
	why, fresh := "", again.names.IDs(j.reuse.fresh)
	for _, x := range LastCompleted(&again.stored.History) {
		if strings.HasPrefix(x.Missing, encryptedPrefix) && !slices.Contains(fresh, x.Task) {
			titles, why = append(titles, x.Title), x.Missing
		}
	}
	if len(titles) == 0 {
		return nil
	}
	return exit.Errorf(exit.KindRuntime, "run %s: the results of %s are %s; --fresh TASK runs one again instead", journals.ShortRun(again.stored.Info.Run), format.List(titles, 3), why)
}

// LastCompleted returns the last exchange of each task that completed.
func LastCompleted(h *record.History) []*record.AgentCall {
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
