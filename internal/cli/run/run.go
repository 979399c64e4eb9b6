// Package run is the commands run, task and resume: they run a spec and store the run in a journal.
package run

import (
	"context"
	"errors"

	"github.com/google/uuid"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/progress"
	"github.com/runteam/runteam/internal/cli/records"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/spf13/cobra"
)

// A Job is one run with its flags.
type Job struct {
	source.SpecFlags
	connect.AnswerFlags
	flags.Limits
	Command       string // in the result
	Reveal        bool
	Concurrency   int
	keepFiles     bool
	allowWidening bool
	Progress      string
	record        files.Output
	save          files.Folder
	trace         records.TraceFlags
	events        records.EventFlags
	Journal       journals.Flags
	reuse         reuseFlags
	resumed       *resumed // nil for a new run

	noInput bool
	starter string                // see [Launch]
	accepts *label.Classification // of the user; nil means the default
	answerForm
	attendance
}

// An answerForm says how the answer is printed.
type answerForm struct {
	includeMessages bool // in the JSON, the prompts and answers of each agent
	stream          bool // the answer while it is written
}

// Command returns the command run. With --inspect, inspect accompanies the run.
func Command(con *console.Console, inspect Attend) *cobra.Command {
	j := &Job{Command: "run", attendance: attendance{attend: inspect}}
	cmd := &cobra.Command{
		Use:   "run [SPEC]",
		Short: "Run the tasks of a spec, or plan and run a goal, and print the answer",
		Example: `  runteam run                                  the team.yaml of this folder
  runteam run claims.yaml --offline            without a key and without a network
  runteam run claims.yaml --model llama3.2     with OPENAI_BASE_URL=http://localhost:11434/v1
  runteam run claims.yaml --input claim=new.md -o json
  runteam run team.yaml --goal "Compare the two offers."
  runteam run claims.yaml --reuse              calls models only for prompts that changed
  runteam run claims.yaml --inspect            watch and steer it in the browser
  runteam run claims.yaml --record script.yaml && runteam run claims.yaml --offline --script script.yaml
  runteam run --team team.json --goal "Compare the two offers." --pretty`,
		Args: j.Argument,
		RunE: func(cmd *cobra.Command, _ []string) error { return runJob(con, cmd, j) },
	}
	j.flags(cmd, con)
	j.AddGoalFlagsTo(cmd)
	j.saveFlag(cmd)
	cmd.Flags().BoolVar(&j.inspect, "inspect", false, "show the run in the browser while it works, and print the link; Enter ends that")
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
	j.messagesFlag(cmd)
	return cmd
}

// flags adds the flags of the commands that begin a run.
func (j *Job) flags(cmd *cobra.Command, con *console.Console) {
	j.sharedFlags(cmd, con, "the run").TaskFlag(cmd, "fresh", false)
	f := cmd.Flags()
	j.record.Flag = "record"
	f.StringVar(&j.record.Path, "record", "", "write the answers of models and people to `FILE`, a script for --offline")
	f.Lookup("force").Usage = "with --record, --trace, --audit-anchor and --events: replace a file that exists"
	f.BoolVar(&j.reuse.on, "reuse", false, "use answers of earlier runs in the journal to identical prompts (default: the spec's)")
	f.BoolVar(&j.allowWidening, "allow-widening", false, "let runteam policy give the run, while it works, a policy that delivers more")
	j.Journal.AddNoJournalTo(cmd)
}

// sharedFlags adds the flags that resume has too; whole names what the time limit ends. It returns
// the completion of arguments and flags about the journal.
func (j *Job) sharedFlags(cmd *cobra.Command, con *console.Console, whole string) journals.Completer {
	j.SpecFlags.AddTo(cmd)
	j.AddMergeFlagsTo(cmd)
	j.AnswerFlags.AddTo(cmd)
	j.Limits.AddTo(cmd, whole)
	f := cmd.Flags()
	f.BoolVar(&j.Reveal, "reveal", false, "show secrets; on a terminal only, and not in records of the run")
	f.BoolVar(&j.noInput, "no-input", false, "ask no questions on the terminal: those to people stay open, and the run is suspended")
	f.BoolVar(&j.keepFiles, "keep-workspaces", false, "leave the workspaces of tasks when they end, and print where; not those with data above your clearance or confidential")
	f.IntVar(&j.Concurrency, "max-concurrency", 0, "run at most `N` tasks at once (default: the spec's, else 5)")
	f.StringVar(&j.Progress, "progress", "auto", "progress on stderr, as `MODE`: auto, live, plain or none")
	flags.Complete(cmd, "progress", progress.Modes)
	f.BoolVar(&j.stream, "stream", false, "print the answer while it is written, if one task or the coordinator writes it")
	j.trace.AddTo(cmd)
	j.events.AddTo(cmd)
	f.BoolVar(&j.record.Force, "force", false, "with --trace, --audit-anchor and --events: replace a file that exists")
	f.StringArrayVar(&j.reuse.fresh, "fresh", nil, "run `TASK`, a title or key, even if there is a cached answer (repeatable)")
	j.Journal.AddStoringTo(cmd)
	j.Journal.AddWorkspacesTo(cmd)
	offers := journals.NewCompleter(con, &j.Journal)
	offers.InputFlag(cmd)
	return offers
}

// messagesFlag adds --include-messages, a flag of the original.
func (j *Job) messagesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&j.includeMessages, "include-messages", false, "with JSON: add the prompts and answers of each agent that you may see to agentResults")
}

// check refuses flags that contradict each other or cannot be used here.
func (j *Job) check(cmd *cobra.Command, con *console.Console) error {
	changed := cmd.Flags().Changed
	switch {
	case j.Reveal && j.inspect: // what models write would reach the page up to the clearance of --reveal
		return exit.Usagef("--inspect shows the run in a browser, which gets no secrets: leave out --reveal, or --inspect")
	case j.Reveal && !con.IsTerminal(con.Stdout):
		return exit.Usagef("--reveal shows secrets on a terminal only, and standard output is not a terminal")
	case changed("max-concurrency") && j.Concurrency < 1:
		return exit.Usagef("--max-concurrency %d: write 1 or more", j.Concurrency)
	case j.includeMessages && !con.Settings.JSON():
		return exit.Usagef("--include-messages adds to the JSON of the result: add -o json")
	case j.inspect && j.Journal.None:
		return exit.Usagef("--inspect shows the run from the journal: leave out --no-journal, or --inspect")
	case changed("audit-key") && j.Journal.None && !changed("trace"):
		return exit.Usagef("--audit-key needs --trace or a journal")
	case j.record.Force && !changed("record") && !changed("trace") && !changed("events") && !changed("save"):
		needs := "--trace or --events"
		for _, flag := range []string{"save", "record"} {
			if cmd.Flags().Lookup(flag) != nil {
				needs = "--" + flag + ", " + needs
			}
		}
		return exit.Usagef("--force needs %s", needs)
	}
	if err := errors.Join(j.events.Check(con, &j.Progress), j.checkStream(con)); err != nil {
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
	if !j.inspect {
		j.attend = nil
	}
	if j.resumed == nil {
		if err := j.check(cmd, con); err != nil {
			return err
		}
	}
	file, err := j.loadSpec(cmd.Context(), con)
	if err != nil {
		return err
	}
	x := &execution{con: con, job: j, file: file}
	if err := x.openRecords(cmd); err != nil {
		return err
	}
	defer x.dismiss() // after the terminal is free
	defer x.release()
	err = x.perform(cmd.Context())
	unwritten := x.events.Close()
	if err != nil {
		return located(file, err)
	}
	return x.printOutcome(errors.Join(x.closeRecords(), unwritten))
}

// located returns the error that ended the run before it began, with places in the spec.
func located(file *specfile.File, err error) error {
	if errors.Is(err, engine.ErrAssertion) {
		return &exit.Error{Kind: exit.KindValidation, Err: file.Locate(err), Status: exit.StatusFailed}
	}
	return file.Locate(err)
}

// loadSpec reads the spec, and refuses one without tasks and goal.
func (j *Job) loadSpec(ctx context.Context, con *console.Console) (*specfile.File, error) {
	j.NoCalls, j.CallsTools, j.Journal.Program = j.Offline, true, con.Program
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

// Options returns the options of the spec with those of the flags.
func (j *Job) Options(file *specfile.File) engine.RunOptions {
	o := file.Run
	if j.Concurrency > 0 {
		o.MaxConcurrency = j.Concurrency
	}
	o.KeepWorkspaces, o.AllowWidening, o.Drain = j.keepFiles, j.allowWidening, j.drain
	if j.accepts != nil {
		o.UserAccepts = j.accepts
	}
	j.Limits.Apply(&o)
	if j.Reveal {
		o.UserAccepts, o.Reveal = new(label.Secret), true
	}
	if j.resumed != nil {
		if most := j.resumed.stored.Info.Accepts; most != nil && (o.UserAccepts == nil || *most < *o.UserAccepts) {
			o.UserAccepts = most // of who submitted it
		}
		o.KeepCaller(&j.resumed.stored.History)
	}
	return o
}
