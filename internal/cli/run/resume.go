package run

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/cli/steering"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// A resumed is the run that is resumed.
type resumed struct {
	openJournal
	stored     *journal.Stored
	run        *journal.Run // if it is open already, as a run that was claimed is
	invocation *StoredInvocation
	names      source.TaskNames // of its tasks, including those that the coordinator planned
	isChanged  bool             // flags differ from those of the run
	unused     string           // why earlier answers are not used; empty if they are

	mu        sync.Mutex       // guards what follows
	answers   map[task.ID]bool // tasks that had an answer before
	called    map[task.ID]bool // tasks whose agents were called
	begun     map[task.ID]bool // tasks with an attempt in this process
	earlier   int              // tasks that had completed before
	completed int              // tasks that completed in this process
}

// count counts an event for the summary.
func (r *resumed) count(e event.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case e.Type == event.TaskStart:
		r.begun[e.Task] = true
	case e.Type == event.AgentStart:
		r.called[e.Task] = true
	case e.Type == event.TaskComplete && r.answers[e.Task] && !r.called[e.Task]:
		r.earlier++
	case e.Type == event.TaskComplete && r.begun[e.Task]: // not a loop
		r.completed++
	}
}

// ResumeCommand returns the command resume.
func ResumeCommand(con *console.Console) *cobra.Command {
	j := &Job{AnswerFlags: connect.AnswerFlags{ScriptImpliesOffline: true}}
	read, sender := &journals.ReadFlags{}, &steering.Sender{}
	cmd := &cobra.Command{
		Use:   "resume [RUN]",
		Short: "Resume a run that was paused, was interrupted or failed, without repeating completed tasks",
		Long: `resume resumes a run of the journal: the newest, or the one whose ID begins with
RUN. Completed tasks are not run again, unless what their agents would see has
changed; tasks that failed, were skipped or interrupted run again. The spec and the
files in its folder are read from their old places. If the spec is gone or came from
standard input, the copies in the journal are used. A file outside the folder of the
spec is read only if a flag of this command names it; for an input, the copy in the
journal is used otherwise. Flags have the values of the run, unless given again.

If a process works on the run, resume ends the pause that runteam pause began, and
takes no flags but those of the journal, --by and --reason.`,
		Example: `  runteam resume                               the newest run of the journal of this folder
  runteam resume 1f3c                          the run whose ID begins with 1f3c
  runteam resume 1f3c --model gpt-4o           with another model: calls that it affects are repeated
  runteam resume --fresh "Score fraud"         repeat this task too
  runteam resume --save results                write all results into a folder`,
		Args: read.Arguments(1, "one RUN"),
		RunE: func(cmd *cobra.Command, _ []string) error { return resume(con, cmd, j, read.Run, sender) },
	}
	offers := j.sharedFlags(cmd, con, "the work of this command")
	offers.Arguments(cmd, false, false)
	offers.TaskFlag(cmd, "fresh", true)
	j.AddCoordinatorFlagTo(cmd)
	j.saveFlag(cmd)
	sender.AddTo(cmd, "the end of a pause")
	return cmd
}

// resume resumes a run.
func resume(con *console.Console, cmd *cobra.Command, j *Job, run string, sender *steering.Sender) error {
	if err := j.check(cmd, con); err != nil {
		return err
	}
	opened, err := j.open(con, journals.ToChange)
	if err != nil {
		return err
	}
	again := &resumed{openJournal: opened}
	defer again.journal.Close() //nolint:errcheck // the run has reported failures of the journal
	found, err := journals.Find(cmd.Context(), again.journal, run)
	if err != nil {
		return err
	}
	if found.Holder != nil {
		if found, err = again.journal.Find(cmd.Context(), found.Run); err != nil { // says whether it is paused
			return journals.ReadError(cmd.Context(), err)
		}
	}
	switch changed := cmd.Flags().Changed; {
	case found.Holder != nil && !changesRun(cmd):
		return sender.Resume(cmd.Context(), con, again.journal, &j.Journal, &found)
	case found.Holder != nil && found.Status == journal.Paused:
		return exit.Errorf(exit.KindRuntime, "run %s is paused; to continue it: %s, without other flags", journals.ShortRun(found.Run), j.Journal.Command("resume", journals.ShortRun(found.Run)))
	case found.Holder == nil && (changed("by") || changed("reason")):
		return exit.Usagef("--by and --reason are stored with the end of a pause, and no process works on run %s: leave them out", journals.ShortRun(found.Run))
	}
	if !changesRun(cmd) && found.Status != string(engine.StatusOK) {
		if given, err := giveToWorkers(cmd.Context(), con, again.journal, &found); given || err != nil {
			return err
		}
	}
	if err := again.load(cmd.Context(), j, found.Run); err != nil {
		return err
	}
	if err := j.restore(cmd.Context(), cmd.Flags().Changed, con, again); err != nil {
		return err
	}
	return runJob(con, cmd, j)
}

// giveToWorkers gives a run that was submitted back to the workers, and reports whether they have it now.
func giveToWorkers(ctx context.Context, con *console.Console, j *journal.Journal, found *journal.Summary) (bool, error) {
	if found.Status == journal.Queued {
		con.Say("runteam: run %s was submitted, and waits for a worker: runteam serve SPEC --work N", journals.ShortRun(found.Run))
		return true, nil
	}
	given, err := j.Requeue(ctx, found.Run)
	if given {
		con.Say("runteam: run %s was submitted: the next worker takes it", journals.ShortRun(found.Run))
	}
	return given, journals.ReadError(ctx, err)
}

// changesRun reports whether a flag was given that is for a run which no process works on.
func changesRun(cmd *cobra.Command) (changes bool) {
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		changes = changes || f.Changed && !slices.Contains([]string{"journal", "journal-key", "encrypt-from", "workspaces", "by", "reason"}, f.Name)
	})
	return changes
}

// load reads the run, and refuses one that cannot be resumed.
func (r *resumed) load(ctx context.Context, j *Job, run string) (err error) {
	if r.stored, err = journals.LoadRun(ctx, r.journal, run); err != nil {
		return err
	}
	if r.invocation, err = ReadInvocation(&r.stored.Info); err != nil {
		return err
	}
	if r.invocation.OmitsContext() {
		return exit.Usagef("run %s is an experiment, which cannot be resumed: runteam replay repeats it", journals.ShortRun(run))
	}
	if r.names, err = journals.Tasks(ctx, r.journal, run, r.stored.History.Begins); err != nil {
		return err
	}
	if slices.ContainsFunc(slices.Concat(j.reuse.fresh, r.invocation.Fresh), func(name string) bool { return strings.Contains(name, "[") }) {
		t, err := r.journal.Trace(ctx, run)
		if err != nil {
			return journals.ReadError(ctx, err)
		}
		r.names.AddNames(t.Tasks())
	}
	r.answers, r.called, r.begun = map[task.ID]bool{}, map[task.ID]bool{}, map[task.ID]bool{}
	for _, x := range accepted(&r.stored.History) {
		r.answers[x.Task] = true
	}
	return j.checkReadable(r)
}

// checkReadable refuses a run with results that need another key: without that flag they would be
// paid for again.
func (j *Job) checkReadable(again *resumed) error {
	var titles []string
	why, fresh := "", again.names.IDs(j.reuse.fresh)
	for _, x := range accepted(&again.stored.History) {
		if journal.Locked(x.Missing) && !slices.Contains(fresh, x.Task) {
			titles, why = append(titles, x.Title), x.Missing
		}
	}
	if len(titles) == 0 {
		return nil
	}
	return exit.Errorf(exit.KindRuntime, "run %s: the results of %s are %s; --fresh TASK runs one again instead", journals.ShortRun(again.stored.Info.Run), format.List(titles, 3), why)
}

// accepted returns the answer of each task and step that has one.
func accepted(h *record.History) (list []*record.AgentCall) {
	for _, t := range runstate.Of(h).Tasks() {
		if x := t.Accepted(); x != nil {
			list = append(list, x)
		}
	}
	return list
}
