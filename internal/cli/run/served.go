package run

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/cli/connect"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/progress"
	"github.com/runteam/runteam/internal/cli/report"
	"github.com/runteam/runteam/internal/cli/source"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// Served holds how a server runs specs for its clients: the flags of the server, which hold for each
// run. Its methods are safe for concurrent use once the flags are read.
type Served struct {
	connect.AnswerFlags
	flags.Limits
	Settings    source.SpecFlags // models, variables of the environment and tools; the paths are not used
	Journal     journals.Flags
	Concurrency int
	Accepts     *label.Classification // what a client may see; nil means confidential
}

// AddTo adds the flags to a command, without those of the journal.
func (s *Served) AddTo(cmd *cobra.Command) {
	s.Settings.AddSettingsTo(cmd)
	s.AnswerFlags.AddTo(cmd)
	s.Limits.AddTo(cmd, "each run")
	cmd.Flags().IntVar(&s.Concurrency, "max-concurrency", 0, "run at most `N` tasks of a run at once (default: the spec's, else 5)")
}

// Check refuses flags that contradict each other.
func (s *Served) Check(cmd *cobra.Command) error {
	if cmd.Flags().Changed("max-concurrency") && s.Concurrency < 1 {
		return exit.Usagef("--max-concurrency %d: write 1 or more", s.Concurrency)
	}
	for _, check := range []func(*cobra.Command) error{s.Limits.Check, s.AnswerFlags.Check, s.Journal.Check} {
		if err := check(cmd); err != nil {
			return err
		}
	}
	return nil
}

// Outline reads the spec at path and returns what a client may give to a run of it.
func (s *Served) Outline(ctx context.Context, con *console.Console, path string) (*specfile.Outline, error) {
	if path == "-" {
		return nil, exit.Usagef("a served spec is read again for each run: name a file or a folder instead of -")
	}
	from := s.Settings
	from.Path, from.NoCalls, from.CallsTools, from.Unbound = path, s.Offline, true, true
	from.Results = s.Journal.Results(con)
	file, err := from.Load(ctx, quiet(con))
	if err != nil {
		return nil, err
	}
	return file.Outline(), nil
}

// A Request is what a client gives to a run of a served spec.
type Request struct {
	Inputs map[string]string `json:"inputs"` // texts, by the name of the input; each keeps the label of the spec
	Params map[string]string `json:"params"`
	Goal   string            `json:"goal"` // empty means the spec's
}

// MaxRequestText bounds the text of an input in a request, in bytes.
const MaxRequestText = 4 << 20

// check returns an error for texts that no input can have.
func (r *Request) check() error {
	for _, name := range slices.Sorted(maps.Keys(r.Inputs)) {
		switch text := r.Inputs[name]; {
		case strings.TrimSpace(text) == "":
			return exit.Usagef("input %q: it is empty; give a text", name)
		case len(text) > MaxRequestText:
			return exit.Usagef("input %q: it is larger than %s; give a shorter text", name, bytesize.Text(MaxRequestText))
		case strings.IndexByte(text, 0) >= 0:
			return exit.Usagef("input %q: it holds a zero byte; give a text", name)
		case strings.Contains(name, "="):
			return exit.Usagef("input %q: unknown input", name)
		}
	}
	return nil
}

// namesOfRequest are what messages call what a request gives.
var namesOfRequest = map[string]string{"Goal": "goal", "Inputs": "input", "Params": "parameter", "Models": "--model", "UserAccepts": "a higher clearance of the server"}

// job returns the job of one run of the spec at path.
func (s *Served) job(path string, r *Request) *Job {
	j := &Job{
		Command: "run", SpecFlags: s.Settings, AnswerFlags: s.AnswerFlags, Limits: s.Limits, Concurrency: s.Concurrency,
		Progress: "none", Journal: s.Journal, noInput: true, accepts: s.Accepts,
	}
	j.Path, j.Names = path, namesOfRequest
	for _, name := range slices.Sorted(maps.Keys(r.Inputs)) {
		j.Inputs = append(j.Inputs, name+"="+inputText+name)
		j.Stored = append(j.Stored, specfile.StoredFile{
			Path: inputText + name, Found: inputText + name, Text: r.Inputs[name], Label: label.Internal, Instead: true,
		})
	}
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		j.Params = append(j.Params, name+"="+r.Params[name])
	}
	if r.Goal != "" {
		j.Goal = source.GoalFlag{Text: r.Goal, Given: true, Literal: true}
	}
	return j
}

// quiet returns a console for a run of a server: what the run would print on stdout is dropped, and
// it reads nothing from stdin.
func quiet(con *console.Console) *console.Console {
	own := *con
	own.Stdin, own.Stdout = bytes.NewReader(nil), io.Discard
	return &own
}

// A Prepared run has passed every check, and begins with Run. Call Run or Close.
type Prepared struct {
	x      *execution
	start  func(context.Context, progress.Observer) (*engine.Result, error)
	closed bool
}

// Prepare reads the spec at path again, checks a run of it, and opens the journal. An error says why
// nothing was run.
func (s *Served) Prepare(ctx context.Context, con *console.Console, path string, r *Request) (*Prepared, error) {
	if err := r.check(); err != nil {
		return nil, err
	}
	x := &execution{con: quiet(con), job: s.job(path, r)}
	var err error
	if x.file, err = x.job.loadSpec(ctx, x.con); err != nil {
		return nil, err
	}
	p := &Prepared{x: x}
	if p.start, err = x.prepare(ctx); err != nil {
		p.Close()
		return nil, x.located(err)
	}
	return p, nil
}

// ID returns the ID of the run.
func (p *Prepared) ID() string { return p.x.file.Run.RunID }

// Plan returns the plan of the run; nil if the coordinator makes it.
func (p *Prepared) Plan() *engine.Plan { return p.x.plan }

// Close releases what the run has open. It may be called twice.
func (p *Prepared) Close() {
	if !p.closed {
		p.closed = true
		p.x.release()
	}
}

// Run runs to the end and closes p. A run that did not succeed is no error: its [Outcome] says so. An
// error says why nothing was run.
func (p *Prepared) Run(ctx context.Context, observer progress.Observer) (*Outcome, error) {
	defer p.Close()
	x := p.x
	var err error
	if x.result, err = p.start(ctx, observer); err != nil {
		return nil, x.located(err)
	}
	if err := x.closeRecords(); err != nil {
		return nil, err
	}
	return &Outcome{Result: x.result, Output: x.output(), Problem: x.problem()}, nil
}

// An Outcome is how a run of a served spec ended, in the form that the user may see.
type Outcome struct {
	Result  *engine.Result
	Problem string // why it did not succeed, and what to do; empty if it succeeded

	// Output are the tasks whose results form the answer. There are none if the coordinator
	// writes it.
	Output []task.ID
}

// Answer returns the answer. If the run failed, these are the completed results that no completed
// task has used.
func (o *Outcome) Answer() string { return report.Answer(o.Output, o.Result) }

// problem says why the run did not succeed, and what to do.
func (x *execution) problem() string {
	res := x.result
	if res.Success() && res.JournalErr == nil {
		return ""
	}
	ending := report.Ending{Result: res, Mode: "none", Spec: x.file.Path, Scripted: x.job.Offline}
	var b strings.Builder
	b.WriteString(ending.Text())
	if x.journal == nil {
		return b.String()
	}
	if err := res.JournalErr; err != nil {
		fmt.Fprintf(&b, "runteam: the journal does not have the end of the run: %v\n", err)
	}
	run := x.journal.shortID(res.RunID)
	fmt.Fprintf(&b, "Run %s is saved in %s. Next, where this server runs:\n", run, x.journal.folder)
	for _, next := range x.nextCommands(run) {
		fmt.Fprintf(&b, "  # %s\n  %s\n", next.question, next.command)
	}
	return b.String()
}
