package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

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
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/specfile"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// An Attendant is what shows and steers a run in its process.
type Attendant struct {
	Stream  func(event.Delta) // takes what models write; nil if nobody watches
	Monitor *record.Monitor   // by which the run is steered
	Answers bool              // whether people answer questions while the run works, and it waits for that
	Ended   func()            // is called when the run has ended
	Close   func(ended bool)  // is called when the command has printed the result of the run, or if it did not begin
}

// Attend returns the attendant of a run that is about to begin.
type Attend func(ctx context.Context, run string, j *journals.Flags) (*Attendant, error)

// attendance says who accompanies a run, and who requested it.
type attendance struct {
	inspect bool   // of --inspect: attend is used
	attend  Attend // nil if nothing accompanies the run

	request *journals.Request // nil unless a client requested the run with a reason
	drain   <-chan struct{}   // closed when the process is to stop; nil if it never is
}

// attend has an attendant accompany the run, if it is to have one.
func (x *execution) attend(ctx context.Context) (err error) {
	if x.job.attend != nil {
		x.attendant, err = x.job.attend(ctx, x.file.Run.RunID, &x.job.Journal)
	}
	if x.attendant != nil && x.job.inspect && x.job.noInput {
		x.attendant.Answers = false
	}
	return err
}

// dismiss ends the attendance.
func (x *execution) dismiss() {
	if x.attendant != nil {
		x.attendant.Close(x.result != nil)
	}
}

// A Launch is a run that another command than run begins in its process, as a client of a server asks
// for it. It asks nothing on the terminal, prints only warnings, on stderr, and is stored in the journal.
type Launch struct {
	Spec        source.SpecFlags
	Answers     connect.AnswerFlags
	Limits      flags.Limits
	Concurrency int // tasks at once; 0 means as the spec says
	Journal     journals.Flags
	Accepts     *label.Classification // what the user may see; nil means confidential
	Attend      Attend
	Request     *journals.Request // who requested the run, and why; may be nil
	Starter     string            // who starts the run, as a server authenticated the person; empty without that
	Drain       <-chan struct{}   // closed when the process is to stop; see [engine.RunOptions]

	// Texts of inputs, by name, in place of files. The inputs keep the labels of the spec, and a
	// resumed run gets the texts from the journal.
	Texts   map[string]string
	endings map[string]string // of the paths of texts that were submitted, such as "=.csv"

	// Resume is the ID of a stored run to resume, with its spec and flags; empty begins a run. No
	// process may work on it, and it must have begun in the working directory of the console.
	Resume string

	// Claim is a submitted run of the Queue to work on, with the texts and parameters that were submitted; nil for any
	// other run.
	Claim *journal.Claim
	Queue *Queue
}

// MaxText bounds a text of [Launch.Texts], in bytes.
const MaxText = 4 << 20

// job returns the job of the run, or an error for texts that no input can have.
func (l *Launch) job() (*Job, error) {
	j := &Job{
		Command: "run", SpecFlags: l.Spec, AnswerFlags: l.Answers, Limits: l.Limits, Concurrency: l.Concurrency,
		Progress: "none", Journal: l.Journal, noInput: true, accepts: l.Accepts, starter: l.Starter, attendance: attendance{attend: l.Attend, request: l.Request, drain: l.Drain},
	}
	j.Names = namesOfRequest
	if l.Claim != nil {
		if err := l.claim(j); err != nil {
			return nil, err
		}
	}
	j.Inputs, j.Stored = slices.Clone(j.Inputs), slices.Clone(j.Stored)
	for _, name := range slices.Sorted(maps.Keys(l.Texts)) {
		text := l.Texts[name]
		switch {
		case strings.TrimSpace(text) == "":
			return nil, exit.Usagef("input %q: it is empty; give a text", name)
		case len(text) > MaxText:
			return nil, exit.Usagef("input %q: it is larger than %s; give a shorter text", name, bytesize.Text(MaxText))
		case strings.IndexByte(text, 0) >= 0 || !utf8.ValidString(text):
			return nil, exit.Usagef("input %q: it holds a zero byte, or is not UTF-8; give a text", name)
		case strings.Contains(name, "="):
			return nil, exit.Usagef("input %q: unknown input", name)
		}
		path := journal.GivenInput + name + l.endings[name]
		j.Inputs = append(j.Inputs, name+"="+path)
		j.Stored = append(j.Stored, specfile.StoredFile{Path: path, Found: path, Text: text, Label: label.Internal, Instead: true})
	}
	return j, nil
}

// namesOfRequest are what messages call what a client gives.
var namesOfRequest = map[string]string{"Goal": "goal", "Inputs": "input", "Params": "parameter", "Models": "--model", "UserAccepts": "a higher clearance of the server"}

// Prepare reads the spec, checks the run, and opens the journal. An error says why nothing was run.
func (l Launch) Prepare(ctx context.Context, con *console.Console) (*Prepared, error) {
	j, err := l.job()
	if err != nil {
		return nil, err
	}
	con = silent(con)
	if l.Resume != "" {
		if err := l.resume(ctx, con, j); err != nil {
			return nil, err
		}
	}
	x := &execution{con: con, job: j}
	if x.file, err = j.loadSpec(ctx, con); err != nil {
		if j.resumed != nil {
			_ = j.resumed.close() // nothing was written
		}
		return nil, err
	}
	p := &Prepared{x: x}
	if p.start, err = x.prepare(ctx); err != nil {
		p.Close()
		return nil, located(x.file, err)
	}
	return p, nil
}

// silent returns a console of its own for a launch, since reading a spec changes the environment: without input and output.
func silent(con *console.Console) *console.Console {
	own := *con
	own.Stdin, own.Stdout = bytes.NewReader(nil), io.Discard
	return &own
}

// gives reports whether the launch replaces a flag of the run that it resumes.
func (l *Launch) gives(flag string) bool {
	return flag == "offline" && l.Answers.Offline || flag == "script" && l.Answers.Script != ""
}

// resume has the job resume a stored run, with the flags of that run. The journal stays open if there is
// no error.
func (l *Launch) resume(ctx context.Context, con *console.Console, j *Job) error {
	opened, err := j.open(con, journals.ToChange)
	if err != nil {
		return err
	}
	again := &resumed{openJournal: opened}
	restore := func() error {
		if err := again.load(ctx, j, l.Resume); err != nil {
			return err
		}
		if here, err := con.WorkDir.Getwd(); err != nil || here != again.invocation.Folder {
			return exit.Usagef("run %s was begun in another folder, %s: resume it there", journals.ShortRun(l.Resume), again.invocation.Folder)
		}
		return j.restore(ctx, l.gives, con, again)
	}
	if err := restore(); err != nil {
		return errors.Join(err, opened.close())
	}
	return nil
}

// A Prepared run has passed every check. Call Run or Close.
type Prepared struct {
	x      *execution
	start  func(context.Context, progress.Observer) (*engine.Result, error)
	closed bool
}

// ID returns the ID of the run.
func (p *Prepared) ID() string { return p.x.file.Run.RunID }

// Close releases what the run has open. It may be called twice.
func (p *Prepared) Close() {
	if !p.closed {
		p.closed = true
		p.x.release()
		p.x.dismiss()
	}
}

// Run runs to the end and closes p. A run that did not succeed is no error: its [Outcome] says so. An
// error says why nothing was run.
func (p *Prepared) Run(ctx context.Context, observer progress.Observer) (*Outcome, error) {
	defer p.Close()
	x := p.x
	var err error
	if x.result, err = p.start(ctx, observer); err != nil {
		return nil, located(x.file, err)
	}
	if err := x.closeRecords(); err != nil {
		return nil, err
	}
	return &Outcome{Result: x.result, Output: outputOf(x.plan, x.file), Problem: p.problem()}, nil
}

// An Outcome is how a run ended, in the form that its user may see.
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
func (p *Prepared) problem() string {
	x, res := p.x, p.x.result
	if res.Success() && res.JournalErr == nil {
		return ""
	}
	ending := report.Ending{Result: res, Mode: "none", Spec: x.file.Path, Scripted: x.job.Offline}
	var b strings.Builder
	b.WriteString(ending.Text())
	if err := res.JournalErr; err != nil {
		fmt.Fprintf(&b, "runteam: the journal does not have the end of the run: %v\n", err)
	}
	run := x.journal.shortID(res.RunID)
	fmt.Fprintf(&b, "Run %s is saved in %s%s. Next, where this server runs:\n", run, x.journal.at.Place(), withoutEnd(res))
	for _, next := range x.nextCommands(run) {
		fmt.Fprintf(&b, "  # %s\n  %s\n", next.question, next.command)
	}
	return b.String()
}
