package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/people"
	"github.com/runteam/runteam/internal/cli/progress"
	"github.com/runteam/runteam/internal/cli/records"
	"github.com/runteam/runteam/internal/cli/report"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// An execution is one run of a spec: what it uses, and how it ended.
type execution struct {
	con  *console.Console
	job  *Job
	file *specfile.File

	recording    *connect.Recording    // nil without --record
	trace        *records.TraceWriter  // nil without --trace
	events       *records.EventWriter  // nil without --events
	folder       *files.Folder         // nil without --save
	conversation *records.Conversation // nil without --include-messages
	connector    *connect.Connector
	journal      *JournalWriter // nil without a journal
	stream       *answerStream  // nil without --stream
	asker        *people.Asker  // nil if no questions are asked on the terminal
	attendant    *Attendant     // nil if nothing accompanies the run

	plan     *engine.Plan // nil if the coordinator makes it
	withheld report.Withheld
	warned   bool      // that the journal may store only digests
	began    time.Time // when this command started the run
	result   *engine.Result
}

// openRecords prepares the files that the run writes. A file that cannot be written is an error before
// the run starts.
func (x *execution) openRecords(cmd *cobra.Command) (err error) {
	j := x.job
	if err := journals.CheckOutputs(x.con, &j.Journal, &j.record, &j.trace.File, &j.trace.Anchor, &j.events.File); err != nil {
		return err
	}
	used := append(j.Reads(x.file), j.ScriptPath(x.file))
	if cmd.Flags().Changed("record") {
		if err := j.record.Check(x.con.WorkDir, used...); err != nil {
			return err
		}
		x.recording = &connect.Recording{File: &j.record, Models: &scripted.Recorder{Ended: engine.CallEnd}}
	}
	used = append(used, j.record.Path, j.Journal.KeyFile)
	if x.trace, err = j.trace.Begin(cmd, x.con, x.file, j.record.Force, used...); err != nil {
		return err
	}
	if err := x.openFolder(cmd); err != nil {
		return err
	}
	x.events, err = j.events.Begin(cmd, x.con, j.record.Force, append(used, j.trace.File.Path, j.trace.Anchor.Path, j.trace.KeyFile)...)
	if j.includeMessages {
		x.conversation = &records.Conversation{}
	}
	return err
}

// release closes the journal and the connections.
func (x *execution) release() {
	x.asker.Close()
	x.journal.Release()
	if x.folder != nil {
		x.folder.Close()
	}
	_ = x.file.Tools.Close() // the run has ended
	if x.connector != nil {
		x.connector.Close()
	}
}

// perform runs the goal or the tasks of the spec.
func (x *execution) perform(ctx context.Context) error {
	start, err := x.prepare(ctx)
	if err != nil {
		return err
	}
	view := progress.View{Mode: x.job.Progress, Plan: x.plan}
	if x.journal != nil {
		view.Answer = func(run string) string { return x.job.Journal.Command("questions", journals.ShortRun(run)) }
	}
	x.result, err = progress.Follow(ctx, x.con, view, start)
	return err
}

// prepare checks everything that a run needs, opens its journal, and returns the function that runs
// it.
func (x *execution) prepare(ctx context.Context) (start func(context.Context, progress.Observer) (*engine.Result, error), err error) {
	if x.connector, err = connect.NewConnector(ctx, x.con, &x.job.AnswerFlags, x.file, x.recording); err != nil {
		return nil, err
	}
	var t *engine.Team
	if x.openAsker(); x.asker == nil {
		x.connector.Ask = func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
			return agent.Reply{}, awaitAnswer(ctx, x, t)
		}
	}
	x.connector.AllowNoKey = x.job.resumed != nil || x.file.Run.Reuse
	x.file.Config.Logger = x.con.Log
	if err := x.connectTools(ctx); err != nil {
		return nil, err
	}
	if t, err = connect.BuildTeam(x.file, x.connector.Connect); err != nil {
		return nil, err
	}
	o := x.job.Options(x.file)
	o.Recorder = x.asker.Recorder(x.conversation.Recorder(x.trace.Recorder()))
	if x.file.Goal == nil {
		if x.plan, err = t.Plan(x.file.Tasks, &o); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(x.checkPeople(), x.openStream()); err != nil {
		return nil, err
	}
	x.con.Warn(append(source.Warnings(x.file, x.plan), x.connector.UnusedReplies...))
	if err := x.openJournal(ctx, &o); err != nil {
		return nil, err
	}
	x.began = x.con.Now()
	return func(ctx context.Context, observer progress.Observer) (*engine.Result, error) {
		if err := x.attend(ctx); err != nil {
			return nil, err
		}
		if x.attendant != nil {
			o.Monitor = x.attendant.Monitor
			defer x.attendant.Ended()
		}
		o.Subscribers, o.Stream = x.subscribers(observer.Events), x.streamTo(observer.Stream)
		switch {
		case x.job.resumed != nil:
			SetTasks(&o, x.file)
			return t.Resume(ctx, x.file.Run.RunID, &o)
		case x.file.Goal != nil:
			return t.RunTeam(ctx, *x.file.Goal, &o)
		}
		return t.RunPlan(ctx, x.plan, &o)
	}, nil
}

// connectTools connects to the MCP servers of the spec. A program that only the journal names is
// not started, as a server or as an agent, since a journal from elsewhere may name any program.
func (x *execution) connectTools(ctx context.Context) error {
	programs := x.file.Tools.Programs()
	for i := range x.file.Agents {
		if p := x.file.Agents[i].Process; p != nil {
			programs = append(programs, strings.TrimPrefix(fmt.Sprint(p), "command "))
		}
	}
	if x.job.StoredOnly && len(programs) > 0 {
		return exit.Errorf(exit.KindRuntime, "the spec no longer exists, and its copy in the journal starts the program %s: put the spec back where it was, %s", terminal.CleanLine(programs[0]), terminal.CleanLine(x.file.Path))
	}
	return connect.Tools(ctx, x.file)
}

// openJournal opens the journal of the run, and reports what it changes about the run.
func (x *execution) openJournal(ctx context.Context, o *engine.RunOptions) (err error) {
	if x.journal, err = NewJournalWriter(ctx, x.con, x.job, x.file); x.journal == nil {
		return err
	}
	x.journal.recording = x.recording
	o.Journal = x.journal
	if x.warned = x.journal.mayStoreDigestOnly(x.plan, x.file); x.warned {
		warnNoKey(x.con)
	}
	x.printChanges()
	if err := addStored(ctx, x); err != nil {
		return err
	}
	return x.printReuse(ctx)
}

// addStored adds to the report what the agents of a resumed run did not see before.
func addStored(ctx context.Context, x *execution) error {
	again := x.job.resumed
	if again == nil || x.job.Progress == "none" {
		return nil
	}
	list, err := again.journal.Decisions(ctx, again.stored.Info.Run)
	if err != nil {
		return journals.ReadError(ctx, err)
	}
	x.withheld.AddStored(list)
	return nil
}

// subscribers adds to the subscribers of the progress those of the records and the report.
func (x *execution) subscribers(all []func(event.Event)) []func(event.Event) {
	all = append(append(all, x.trace.Subscribers()...), x.events.Subscribers()...)
	if x.job.resumed != nil {
		all = append(all, x.job.resumed.count)
	}
	if x.job.Progress != "none" {
		all = append(all, x.withheld.Observe)
	}
	return all
}

// closeRecords adds the result to the files of the run and closes them.
func (x *execution) closeRecords() error {
	x.result.Command = x.job.Command
	err := errors.Join(x.recording.Save(), x.trace.Close(x.result.Recorded()))
	x.conversation.Attach(x.result) // after the trace, which has the prompts already
	x.result.Audit = cmp.Or(x.trace.Head(), x.result.Audit)
	return err
}

// printOutcome prints the result on stdout and the report of the run on stderr. recordErr says why a
// record of the run was not written.
func (x *execution) printOutcome(recordErr error) error {
	con, j := x.con, x.job
	shown := *x.result
	if j.resumed != nil {
		shown.StartedAt = x.began // so that the report has the time of this command
	}
	ending := report.Ending{Result: &shown, Mode: progress.Mode(con, j.Progress), Scripted: j.Offline, Unstored: x.journal == nil, Spec: x.file.Path, Withheld: &x.withheld}
	if x.plan != nil {
		ending.Findings = x.plan.Findings
	}
	output := outputOf(x.plan, x.file)
	var err error
	if x.stream != nil {
		err = x.stream.end(report.Answer(output, x.result))
	} else {
		err = report.PrintAnswer(con, output, x.result, j.events.ToStdout())
	}
	ending.Print(con)
	x.printWorkspaces()
	x.printJournalNotes()
	status := report.ExitStatus(x.result)
	for _, err := range []error{err, recordErr, x.save()} {
		if err != nil {
			con.PrintError(err)
			status = max(status, exit.StatusFailed)
		}
		if e, ok := errors.AsType[*exit.Error](err); ok {
			status = max(status, e.Status)
		}
	}
	if rec := x.recording; rec != nil && recordErr == nil && (j.Progress != "none" || rec.Empty()) {
		con.Say("%s", rec.Summary(x.result))
	}
	if x.trace.Head() != "" && (j.Progress != "none" || x.trace.Anchor == nil) {
		con.Say("%s", x.trace.Summary(j.Progress != "none"))
	}
	if status == exit.StatusOK {
		return nil
	}
	return exit.Status(status)
}

// outputOf returns the tasks whose results form the answer; none if the coordinator writes it.
func outputOf(plan *engine.Plan, file *specfile.File) []task.ID {
	if plan == nil || file.Run.Answer != nil {
		return nil
	}
	return plan.Output
}
