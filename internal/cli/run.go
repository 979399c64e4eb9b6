package cli

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// job is one run, as flags ask for it.
type job struct {
	source
	stage
	limits
	command     string // as the result names it
	reveal      bool
	concurrency int
	progress    string
	record      newFile
	trace       tracing
	events      eventing
	journal     journaling
	reuse       reusing
	again       *resumption // nil for a new run

	includeMessages bool
	conversation    *conversation // nil unless the result includes messages
}

func (a *app) runCommand() *cobra.Command {
	j := &job{command: "run"}
	cmd := &cobra.Command{
		Use:   "run [SPEC]",
		Short: "Run the tasks of a spec, or plan and run a goal, and print the answer",
		Example: `  runteam run                                  the team.yaml of this folder
  runteam run claims.yaml --offline            without a key and without a network
  runteam run claims.yaml --model llama3.2     with OPENAI_BASE_URL=http://localhost:11434/v1
  runteam run claims.yaml --input claim=new.md -o json
  runteam run team.yaml --goal "Compare the two offers."
  runteam run claims.yaml --reuse              asks only for what changed since an earlier run
  runteam run claims.yaml --record script.yaml && runteam run claims.yaml --offline --script script.yaml
  runteam run --team team.json --goal "Compare the two offers." --pretty`,
		Args: atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 {
				j.path = args[0]
			}
			return a.runJob(cmd, j)
		},
	}
	j.flags(cmd, a)
	j.goalFlags(cmd)
	j.mergeFlags(cmd)
	cmd.Flags().Lookup("team").Annotations = map[string][]string{originalForm: {"true"}}
	j.messagesFlag(cmd)
	return cmd
}

func (a *app) taskCommand() *cobra.Command {
	j := &job{command: "task"}
	cmd := &cobra.Command{
		Use:         "task --file F [--team F]",
		Short:       "Run a tasks file of the TypeScript original, and print JSON",
		Example:     "  runteam task --file tasks.json --team team.json --pretty",
		Annotations: map[string]string{originalForm: "true"},
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError("%s takes no argument: write --file %s", cmd.CommandPath(), args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			if j.path == "" {
				return usageError("--file is required")
			}
			return a.runJob(cmd, j)
		},
	}
	j.flags(cmd, a)
	cmd.Flags().StringVar(&j.path, "file", "", "the tasks `FILE` (required)")
	j.mergeFlags(cmd)
	j.messagesFlag(cmd)
	return cmd
}

func (j *job) flags(cmd *cobra.Command, a *app) {
	f := cmd.Flags()
	j.source.flags(cmd)
	j.stage.flags(cmd)
	j.limits.flags(cmd, "the run")
	j.viewFlags(cmd)
	j.record.flag = "record"
	f.StringVar(&j.record.path, "record", "", "write what the models answered to `FILE`, a script for --offline")
	f.BoolVar(&j.record.force, "force", false, "with --record, --trace, --audit-anchor and --events: replace a file that exists")
	j.trace.flags(cmd)
	j.events.flags(cmd)
	j.reuse.flags(cmd)
	j.journal.flags(cmd)
	j.journal.mayKeep(cmd)
	offers := newCompleter(a, &j.journal)
	offers.taskFlag(cmd, "fresh", false)
	offers.inputFlag(cmd)
}

// messagesFlag adds a flag of the original.
func (j *job) messagesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&j.includeMessages, "include-messages", false, "with JSON: add the prompts and the answers of each agent to agentResults, as far as you may see them")
}

// viewFlags adds the flags of what is shown, and of how much runs at once.
func (j *job) viewFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&j.reveal, "reveal", false, "show what is secret too; on a terminal only, and records of the run keep it withheld")
	f.IntVar(&j.concurrency, "max-concurrency", 0, "run at most `N` tasks at once (default: the spec's, else 5)")
	f.StringVar(&j.progress, "progress", "auto", "progress on stderr, as `MODE`: auto, live, plain or none")
	complete(cmd, "progress", progressModes)
}

// check refuses flags that contradict each other or the place where they are used.
func (j *job) check(cmd *cobra.Command, a *app) error {
	changed := cmd.Flags().Changed
	switch {
	case j.reveal && !a.isTerminal(a.stdout):
		return usageError("--reveal shows what is secret on a terminal only, and standard output is none")
	case changed("max-concurrency") && j.concurrency < 1:
		return usageError("--max-concurrency %d: write 1 or more", j.concurrency)
	case j.includeMessages && !a.settings.json():
		return usageError("--include-messages adds to the JSON of the result: add -o json")
	case changed("audit-key") && j.journal.none && !changed("trace"):
		return usageError("--audit-key needs --trace or a journal")
	case changed("audit-key") && j.trace.keyFile == "":
		return usageError("--audit-key is empty: name a file")
	case j.events.toStdout() && a.settings.json():
		return usageError("--events %s and the JSON result both need standard output: write the events to a file or to /dev/stderr", j.events.file.path)
	case j.record.force && !changed("record") && !changed("trace") && !changed("events"):
		needs := "--record, --trace or --events"
		if cmd.Flags().Lookup("record") == nil {
			needs = "--trace or --events"
		}
		return usageError("--force needs %s", needs)
	}
	if j.events.toStdout() && j.progress == "auto" && a.isTerminal(a.stdout) {
		j.progress = "plain" // a table would be drawn over the events
	}
	j.reuse.given, j.journal.auditKey = changed("reuse"), j.trace.keyFile
	for _, check := range []func(*cobra.Command) error{j.limits.check, j.stage.check, j.journal.check} {
		if err := check(cmd); err != nil {
			return err
		}
	}
	return a.checkProgress(j.progress)
}

// runJob runs a spec and prints what it came to.
func (a *app) runJob(cmd *cobra.Command, j *job) error {
	if j.again == nil {
		if err := j.check(cmd, a); err != nil {
			return err
		}
	}
	j.noCalls = j.offline
	if j.results == nil {
		j.results = j.journal.results(a)
	}
	file, err := j.load(cmd.Context(), a)
	if err != nil {
		a.tellMissing(j.again)
		return err
	}
	if file.Goal == nil && len(file.Tasks) == 0 {
		return nothingTo("run", &j.source, file)
	}
	if err := j.reuse.settle(file, !j.journal.none, j.again); err != nil {
		return err
	}
	if file.Run.RunID = uuid.NewString(); j.again != nil {
		file.Run.RunID = j.again.stored.Info.Run
	}
	if err := a.checkOutputs(&j.journal, &j.record, &j.trace.file, &j.trace.anchor, &j.events.file); err != nil {
		return err
	}
	rec, err := j.recording(cmd, file)
	if err != nil {
		return err
	}
	used := append(j.reads(file), j.scriptOf(file), j.record.path, j.journal.path, j.journal.keyFile)
	kept, err := j.trace.begin(cmd, a, file, j.record.force, used...)
	if err != nil {
		return err
	}
	events, err := j.events.begin(cmd, a, j.record.force, append(used, j.trace.file.path, j.trace.anchor.path, j.trace.keyFile)...)
	if err != nil {
		return err
	}
	c, err := a.connector(cmd.Context(), &j.stage, file, rec)
	if err != nil {
		return err
	}
	defer c.close()
	c.lazy = j.again != nil || file.Run.Reuse
	file.Config.Logger = a.log
	t, err := build(file, c.connect)
	if err != nil {
		return err
	}
	r, err := a.runSpec(cmd.Context(), j, t, file, c, slices.Concat(kept.watch(), events.watch()), kept.recorder())
	unwritten := events.end()
	defer r.told.close()
	if errors.Is(err, team.ErrAssertion) {
		return &fault{kind: kindValidation, err: file.Locate(err), exit: statusFailed}
	}
	if err != nil {
		return file.Locate(err)
	}
	r.kept = errors.Join(rec.keep(), kept.end(r.Recorded()), unwritten)
	j.conversation.end(r.Result) // the trace has the prompts already
	r.Audit = kept.chained()
	r.told.end(r.Result)
	return a.report(j, r, rec, kept)
}

// finished is a run that ended.
type finished struct {
	*team.Result
	output []task.ID // whose results make the answer; none if the coordinator makes it
	kept   error     // why nothing was recorded that should have been
	told   *chronicle
	began  time.Time // by this command
	lost   bool      // of a result only a digest is kept, and nobody was warned of it
}

// runSpec carries a spec to its end: its goal, or its tasks.
func (a *app) runSpec(ctx context.Context, j *job, t *team.Team, file *specfile.File, c *connector, observers []func(event.Event), rec recorder) (out finished, err error) {
	o := j.options(file)
	if j.includeMessages {
		j.conversation = &conversation{}
	}
	if rec := j.conversation.recorder(rec); rec != nil {
		o.Recorder = rec
	}
	var plan *team.Plan
	start := func(ctx context.Context, watch []func(event.Event)) (*team.Result, error) {
		o.Subscribers = out.told.watched(append(watch, observers...))
		if file.Goal != nil {
			return t.RunTeam(ctx, *file.Goal, &o)
		}
		return t.RunTasks(ctx, file.Tasks, &o)
	}
	if file.Goal == nil {
		if plan, err = t.Plan(file.Tasks, &o); err != nil {
			return out, err
		}
		if file.Run.Answer == nil {
			out.output = plan.Output
		}
	}
	a.warn(append(warnings(file, plan), c.strays...))
	if out.told, err = a.chronicle(j, file); err != nil {
		return out, err
	}
	if err := out.told.options(ctx, &o); err != nil {
		return out, err
	}
	warned := out.told.unkeyed(plan, file)
	if warned {
		a.warnKeyless()
	}
	a.tellChanges(j, file, out.told)
	if err := a.tellReuse(ctx, j, file, out.told); err != nil {
		return out, err
	}
	out.began = a.now()
	if out.Result, err = a.follow(ctx, j.progress, plan, start); err == nil {
		err = out.told.unbegun()
	}
	if err != nil {
		return out, err
	}
	out.Command, out.lost = j.command, !warned && out.told.lost(out.Result)
	return out, nil
}

// options are the spec's, with the flags over them.
func (j *job) options(file *specfile.File) team.RunOptions {
	o := file.Run
	if j.concurrency > 0 {
		o.MaxConcurrency = j.concurrency
	}
	j.limits.apply(&o)
	if j.reveal {
		o.UserAccepts, o.Reveal = new(label.Secret), true
	}
	return o
}

// report prints the result on stdout, and on stderr what became of the run.
func (a *app) report(j *job, res finished, rec *recording, kept *keeper) error {
	var err error
	if a.settings.json() {
		err = a.apart(func() error { return a.printDocument(func(w io.Writer) error { return res.WriteJSON(w) }) })
	} else if text := answer(res.output, res.Result); text != "" {
		if j.events.toStdout() {
			a.say("\n%s\n", strings.TrimRight(clean(text), "\n"))
		} else {
			err = a.apart(func() error { return a.printText(text) })
		}
	}
	shown := *res.Result
	if j.again != nil {
		shown.StartedAt = res.began // how long this command took
	}
	a.summarize(&shown, a.mode(j.progress))
	a.tellKept(j, res)
	status := statusOf(res.Result)
	for _, err := range []error{err, res.kept} {
		if err != nil {
			a.complain(err, nil)
			status = max(status, statusFailed)
		}
	}
	if rec != nil && res.kept == nil && (j.progress != "none" || rec.empty()) {
		a.say("%s", rec.summary(res.Result))
	}
	if kept.chained() != "" && (j.progress != "none" || kept.anchor == nil) {
		a.say("%s", kept.summary(j.progress != "none"))
	}
	if status == statusOK {
		return nil
	}
	return ended(status)
}

// apart sets the result off from what stands around it where a person sees both.
func (a *app) apart(print func() error) error {
	if a.isTerminal(a.stdout) && a.isTerminal(a.stderr) {
		a.say("")
		defer a.say("")
	}
	return print()
}

// statusOf returns the exit status of a run.
func statusOf(res *team.Result) int {
	if stop, ok := errors.AsType[*interrupted](res.Cause); ok {
		return stop.status()
	}
	switch {
	case res.Unkept != nil, keyless(res):
		return statusNoRun
	case res.Success():
		return statusOK
	case res.Status == team.StatusBudget, res.Status == team.StatusTimeout: // a limit of the user ended it, whether or not an endpoint would have answered
		return statusFailed
	case !res.Answered:
		return statusNoRun
	}
	return statusFailed
}

// keyless reports whether a model was not called because its key is missing. An
// endpoint that answers that it requires one has been called.
func keyless(res *team.Result) bool {
	return slices.ContainsFunc(res.Errors, func(e team.TaskError) bool {
		failed, ok := errors.AsType[*llm.Error](&e)
		return ok && failed.Status == 0 && errors.Is(failed, llm.ErrNoKey)
	})
}
