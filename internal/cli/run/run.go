// Package run is the commands run, task and resume: they run a spec and store the run in a journal.
package run

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/progress"
	"github.com/runteam/runteam/internal/cli/records"
	"github.com/runteam/runteam/internal/cli/report"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// recording returns the recording of --record, nil without it. It refuses a file that could not be
// written when the run has ended.
func (j *Job) recording(cmd *cobra.Command, file *specfile.File) (*connect.Recording, error) {
	if !cmd.Flags().Changed("record") {
		return nil, nil
	}
	if err := j.record.Check(append(j.Reads(file), j.ScriptPath(file))...); err != nil {
		return nil, err
	}
	return &connect.Recording{File: &j.record, Models: &scripted.Recorder{}}, nil
}

// A Job is one run with its flags.
type Job struct {
	source.SpecFlags
	connect.AnswerFlags
	flags.Limits
	Command     string // in the result
	Reveal      bool
	Concurrency int
	Progress    string
	record      files.Output
	trace       records.TraceFlags
	events      records.EventFlags
	Journal     journals.Flags
	reuse       reuseFlags
	resumed     *resumed // nil for a new run

	includeMessages bool
	conversation    *records.Conversation // nil unless the result includes messages
}

// Command returns the command run.
func Command(con *console.Console) *cobra.Command {
	j := &Job{Command: "run"}
	cmd := &cobra.Command{
		Use:   "run [SPEC]",
		Short: "Run the tasks of a spec, or plan and run a goal, and print the answer",
		Example: `  runteam run                                  the team.yaml of this folder
  runteam run claims.yaml --offline            without a key and without a network
  runteam run claims.yaml --model llama3.2     with OPENAI_BASE_URL=http://localhost:11434/v1
  runteam run claims.yaml --input claim=new.md -o json
  runteam run team.yaml --goal "Compare the two offers."
  runteam run claims.yaml --reuse              calls models only for prompts that changed
  runteam run claims.yaml --record script.yaml && runteam run claims.yaml --offline --script script.yaml
  runteam run --team team.json --goal "Compare the two offers." --pretty`,
		Args: j.Argument,
		RunE: func(cmd *cobra.Command, _ []string) error { return runJob(con, cmd, j) },
	}
	j.flags(cmd, con)
	j.AddGoalFlagsTo(cmd)
	j.AddMergeFlagsTo(cmd)
	cmd.Flags().Lookup("team").Annotations = map[string][]string{console.OriginalAnnotation: {"true"}}
	j.messagesFlag(cmd)
	return cmd
}

// TaskCommand returns the command task.
func TaskCommand(con *console.Console) *cobra.Command {
	j := &Job{Command: "task"}
	cmd := &cobra.Command{
		Use:         "task --file F [--team F]",
		Short:       "Run a tasks file of the TypeScript original, and print JSON",
		Example:     "  runteam task --file tasks.json --team team.json --pretty",
		Annotations: map[string]string{console.OriginalAnnotation: "true"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return exit.Usagef("%s takes no argument: write --file %s", cmd.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if j.Path == "" {
				return exit.Usagef("--file is required")
			}
			return runJob(con, cmd, j)
		},
	}
	j.flags(cmd, con)
	cmd.Flags().StringVar(&j.Path, "file", "", "the tasks `FILE` (required)")
	j.AddMergeFlagsTo(cmd)
	j.messagesFlag(cmd)
	return cmd
}

func (j *Job) flags(cmd *cobra.Command, con *console.Console) {
	f := cmd.Flags()
	j.SpecFlags.AddTo(cmd)
	j.AnswerFlags.AddTo(cmd)
	j.Limits.AddTo(cmd, "the run")
	j.viewFlags(cmd)
	j.record.Flag = "record"
	f.StringVar(&j.record.Path, "record", "", "write the answers of the models to `FILE`, a script for --offline")
	f.BoolVar(&j.record.Force, "force", false, "with --record, --trace, --audit-anchor and --events: replace a file that exists")
	j.trace.AddTo(cmd)
	j.events.AddTo(cmd)
	j.reuse.flags(cmd)
	j.Journal.AddTo(cmd)
	j.Journal.AddNoJournalTo(cmd)
	offers := journals.NewCompleter(con, &j.Journal)
	offers.TaskFlag(cmd, "fresh", false)
	offers.InputFlag(cmd)
}

// messagesFlag adds --include-messages, a flag of the original.
func (j *Job) messagesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&j.includeMessages, "include-messages", false, "with JSON: add the prompts and answers of each agent that you may see to agentResults")
}

// viewFlags adds the flags about what is shown and how many tasks run at once.
func (j *Job) viewFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&j.Reveal, "reveal", false, "show secrets; on a terminal only, and not in records of the run")
	f.IntVar(&j.Concurrency, "max-concurrency", 0, "run at most `N` tasks at once (default: the spec's, else 5)")
	f.StringVar(&j.Progress, "progress", "auto", "progress on stderr, as `MODE`: auto, live, plain or none")
	flags.Complete(cmd, "progress", progress.Modes)
}

// check refuses flags that contradict each other or cannot be used here.
func (j *Job) check(cmd *cobra.Command, con *console.Console) error {
	changed := cmd.Flags().Changed
	switch {
	case j.Reveal && !con.IsTerminal(con.Stdout):
		return exit.Usagef("--reveal shows secrets on a terminal only, and standard output is not a terminal")
	case changed("max-concurrency") && j.Concurrency < 1:
		return exit.Usagef("--max-concurrency %d: write 1 or more", j.Concurrency)
	case j.includeMessages && !con.Settings.JSON():
		return exit.Usagef("--include-messages adds to the JSON of the result: add -o json")
	case changed("audit-key") && j.Journal.None && !changed("trace"):
		return exit.Usagef("--audit-key needs --trace or a journal")
	case j.record.Force && !changed("record") && !changed("trace") && !changed("events"):
		needs := "--record, --trace or --events"
		if cmd.Flags().Lookup("record") == nil {
			needs = "--trace or --events"
		}
		return exit.Usagef("--force needs %s", needs)
	}
	if err := j.events.Check(con, &j.Progress); err != nil {
		return err
	}
	j.reuse.given, j.Journal.AuditKey = changed("reuse"), j.trace.KeyFile
	for _, check := range []func(*cobra.Command) error{j.Limits.Check, j.AnswerFlags.Check, j.Journal.Check} {
		if err := check(cmd); err != nil {
			return err
		}
	}
	return progress.CheckMode(con, j.Progress)
}

// runJob runs a spec and prints the outcome.
func runJob(con *console.Console, cmd *cobra.Command, j *Job) error {
	if j.resumed == nil {
		if err := j.check(cmd, con); err != nil {
			return err
		}
	}
	file, err := j.loadSpec(cmd.Context(), con)
	if err != nil {
		return err
	}
	if err := journals.CheckOutputs(con, &j.Journal, &j.record, &j.trace.File, &j.trace.Anchor, &j.events.File); err != nil {
		return err
	}
	rec, err := j.recording(cmd, file)
	if err != nil {
		return err
	}
	used := append(j.Reads(file), j.ScriptPath(file), j.record.Path, j.Journal.Path, j.Journal.KeyFile)
	trace, err := j.trace.Begin(cmd, con, file, j.record.Force, used...)
	if err != nil {
		return err
	}
	events, err := j.events.Begin(cmd, con, j.record.Force, append(used, j.trace.File.Path, j.trace.Anchor.Path, j.trace.KeyFile)...)
	if err != nil {
		return err
	}
	c, err := connect.NewConnector(cmd.Context(), con, &j.AnswerFlags, file, rec)
	if err != nil {
		return err
	}
	defer c.Close()
	c.AllowNoKey = j.resumed != nil || file.Run.Reuse
	file.Config.Logger = con.Log
	t, err := connect.BuildTeam(file, c.Connect)
	if err != nil {
		return err
	}
	r, err := runSpec(cmd.Context(), con, j, t, file, c, slices.Concat(trace.Subscribers(), events.Subscribers()), trace.Recorder())
	unwritten := events.Close()
	defer r.journal.Release()
	if errors.Is(err, engine.ErrAssertion) {
		return &exit.Error{Kind: exit.KindValidation, Err: file.Locate(err), Status: exit.StatusFailed}
	}
	if err != nil {
		return file.Locate(err)
	}
	r.recordErr = errors.Join(rec.Save(), trace.Close(r.Recorded()), unwritten)
	j.conversation.Attach(r.Result) // after the trace, which has the prompts already
	r.Audit = cmp.Or(trace.Head(), r.Audit)
	return printOutcome(con, j, r, rec, trace)
}

// loadSpec reads the spec, and refuses one without tasks and goal.
func (j *Job) loadSpec(ctx context.Context, con *console.Console) (*specfile.File, error) {
	j.NoCalls, j.Journal.Program = j.Offline, con.Program
	if j.Results == nil {
		j.Results = j.Journal.Results(con)
	}
	file, err := j.Load(ctx, con)
	if err != nil {
		printMissingCopies(con, j.resumed)
		return nil, err
	}
	if file.Goal == nil && len(file.Tasks) == 0 {
		return nil, source.NothingToDo("run", &j.SpecFlags, file)
	}
	if err := j.reuse.apply(file, !j.Journal.None, j.resumed); err != nil {
		return nil, err
	}
	if file.Run.RunID = uuid.NewString(); j.resumed != nil {
		file.Run.RunID = j.resumed.stored.Info.Run
	}
	return file, nil
}

// outcome is a run that ended.
type outcome struct {
	spec     string           // its path
	withheld *report.Withheld // from the agents
	findings []engine.Finding // of the plan about its assertions
	*engine.Result
	output     []task.ID // whose results form the answer; none if the coordinator writes it
	recordErr  error     // why a record of the run was not written
	journal    *JournalWriter
	began      time.Time // when this command started it
	digestOnly bool      // the journal has only a digest of some result, and there was no warning
}

// runSpec runs the goal or the tasks of a spec.
func runSpec(ctx context.Context, con *console.Console, j *Job, t *engine.Team, file *specfile.File, c *connect.Connector, observers []func(event.Event), rec record.Recorder) (out outcome, err error) {
	o := j.Options(file)
	out.spec, out.withheld = file.Path, &report.Withheld{}
	if j.includeMessages {
		j.conversation = &records.Conversation{}
	}
	o.Recorder = j.conversation.Recorder(rec)
	var plan *engine.Plan
	start := func(ctx context.Context, watching []func(event.Event)) (*engine.Result, error) {
		o.Subscribers = out.journal.Subscribers(append(watching, observers...))
		if j.Progress != "none" {
			o.Subscribers = append(o.Subscribers, out.withheld.Observe)
		}
		if j.resumed != nil {
			SetTasks(&o, file)
			return t.Resume(ctx, file.Run.RunID, &o)
		}
		if file.Goal != nil {
			return t.RunTeam(ctx, *file.Goal, &o)
		}
		return t.RunPlan(ctx, plan, &o)
	}
	if file.Goal == nil {
		if plan, err = t.Plan(file.Tasks, &o); err != nil {
			return out, err
		}
		if file.Run.Answer == nil {
			out.output = plan.Output
		}
		out.findings = plan.Findings
	}
	con.Warn(append(source.Warnings(file, plan), c.UnusedReplies...))
	if out.journal, err = NewJournalWriter(con, j, file); err != nil {
		return out, err
	}
	if err := out.journal.Apply(ctx, &o); err != nil {
		return out, err
	}
	warned := out.journal.mayStoreDigestOnly(plan, file)
	if warned {
		warnNoKey(con)
	}
	printChanges(con, j, file, out.journal)
	if err := printReuse(ctx, con, j, file, out.journal); err != nil {
		return out, err
	}
	out.began = con.Now()
	if out.Result, err = progress.Follow(ctx, con, j.Progress, plan, start); err != nil {
		return out, err
	}
	out.Command, out.digestOnly = j.Command, !warned && out.journal.digestOnly(out.Result)
	return out, nil
}

// Options returns the options of the spec with those of the flags.
func (j *Job) Options(file *specfile.File) engine.RunOptions {
	o := file.Run
	if j.Concurrency > 0 {
		o.MaxConcurrency = j.Concurrency
	}
	j.Limits.Apply(&o)
	if j.Reveal {
		o.UserAccepts, o.Reveal = new(label.Secret), true
	}
	return o
}

// printOutcome prints the result on stdout and the report of the run on stderr.
func printOutcome(con *console.Console, j *Job, res outcome, rec *connect.Recording, trace *records.TraceWriter) error {
	err := report.PrintAnswer(con, res.output, res.Result, j.events.ToStdout())
	shown := *res.Result
	if j.resumed != nil {
		shown.StartedAt = res.began // so that the report has the time of this command
	}
	ending := report.Ending{Result: &shown, Mode: progress.Mode(con, j.Progress), Scripted: j.Offline, Spec: res.spec, Withheld: res.withheld, Findings: res.findings}
	ending.Print(con)
	printJournalNotes(con, j, res)
	status := report.ExitStatus(res.Result)
	for _, err := range []error{err, res.recordErr} {
		if err != nil {
			con.PrintError(err, nil)
			status = max(status, exit.StatusFailed)
		}
	}
	if rec != nil && res.recordErr == nil && (j.Progress != "none" || rec.Empty()) {
		con.Say("%s", rec.Summary(res.Result))
	}
	if trace.Head() != "" && (j.Progress != "none" || trace.Anchor == nil) {
		con.Say("%s", trace.Summary(j.Progress != "none"))
	}
	if status == exit.StatusOK {
		return nil
	}
	return exit.Status(status)
}
