// Package explain is the command explain: it shows what each prompt of a run contained and where
// each byte came from.
package explain

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/history"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// explainFlags are the arguments and flags of explain.
type explainFlags struct {
	journals.ReadFlags
	path        string // of a trace; empty to read the run from the journal
	contains    string
	hasContains bool // --contains is given
	search      trace.Search
	stored      *journals.StoredRun // with the output files of the run; nil if it has none, or they are not shown
}

// Command returns the command explain.
func Command(con *console.Console) *cobra.Command {
	e := &explainFlags{}
	e.MayBeFile = true
	cmd := &cobra.Command{
		Use:   "explain [RUN|FILE] [TASK]",
		Short: "Show what each prompt of a run contained, where it came from, and what was withheld",
		Long: `explain reads a run of the journal: the newest, or the one whose ID begins with
RUN. If a file of that name exists it reads that file, a trace that "runteam run
--trace FILE" wrote; - is standard input. For each prompt it shows every range of
bytes with its source, what was withheld and by which rule, and what existed but was
not granted. With --contains it shows where a text occurs and who introduced it. TASK
is as for runteam show; TASK alone is a task of the newest run. Of what the user of the
run may not see, it shows source, label and rule, and positions count nothing of it.`,
		Example: `  runteam explain                              the newest run
  runteam explain 0195c3a1 "Score fraud"
  runteam explain --contains "policy 4417"
  runteam run claims.yaml --offline --trace claims.jsonl
  runteam explain claims.jsonl`,
		Args: e.Arguments(2, "a RUN or FILE and a TASK (quote a title of several words)"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			e.hasContains = cmd.Flags().Changed("contains")
			return explain(con, cmd, e)
		},
	}
	e.AddTo(cmd)
	cmd.Flags().StringVar(&e.contains, "contains", "", "show where `TEXT` occurs, and who introduced it")
	flags.Complete(cmd, "contains", nil)
	journals.NewCompleter(con, &e.Flags).Arguments(cmd, true, true)
	return cmd
}

func explain(con *console.Console, cmd *cobra.Command, e *explainFlags) error {
	if e.hasContains && strings.TrimSpace(e.contains) == "" {
		return exit.Usagef("--contains is empty: write the text to look for")
	}
	read := e.readRun
	if e.Run != "" && files.IsFile(con.WorkDir, e.Run) {
		e.path, read = e.Run, e.readFile
	}
	t, err := read(cmd, con)
	if err != nil {
		return err
	}
	x, err := chosenPart(t, Query{e.path, e.Task, e.contains, e.hasContains, e.search})
	if err != nil {
		return &exit.Error{Kind: exit.KindUsage, Err: err}
	}
	if x.Search != nil {
		return con.PrintResult(x, x.writeSearch)
	}
	x.AddFiles(e.stored)
	if con.Settings.JSON() {
		x.addPrompts()
	}
	return con.PrintResult(x, func(w io.Writer) {
		x.write(w)
		history.WriteFiles(w, x.Files)
	})
}

// Text returns what explain prints about a run in a journal.
func Text(ctx context.Context, j *journal.Journal, run string) (string, error) {
	t, err := j.Trace(ctx, run)
	if err != nil {
		return "", journals.ReadError(ctx, err)
	}
	x, err := chosenPart(t, Query{})
	if err != nil {
		return "", err
	}
	var b strings.Builder
	x.write(&b)
	return b.String(), nil
}

// readRun reads what it needs of a run in the journal.
func (e *explainFlags) readRun(cmd *cobra.Command, con *console.Console) (t *trace.Trace, err error) {
	j, found, err := e.OpenRun(cmd, con)
	if err != nil {
		return nil, err
	}
	defer j.Close()
	switch {
	case e.hasContains:
		t, e.search, err = j.Search(cmd.Context(), found.Run, e.contains)
	case e.Task != "":
		t, err = j.TraceTask(cmd.Context(), found.Run, e.Task)
	default:
		t, err = j.Trace(cmd.Context(), found.Run)
	}
	if err != nil || e.hasContains || !slices.ContainsFunc(t.Handoffs, IsOfFiles) {
		return t, journals.ReadError(cmd.Context(), err)
	}
	e.stored, err = journals.Load(cmd.Context(), con, j, found, "") // the versions of other tasks too
	return t, err
}

// IsOfFiles reports whether a decision is about output files.
func IsOfFiles(h event.Handoff) bool { return h.Source.Kind == handoff.Files }

// readFile reads a trace.
func (e *explainFlags) readFile(cmd *cobra.Command, con *console.Console) (*trace.Trace, error) {
	in, err := files.OpenInput(cmd.Context(), con.Stdin, con.WorkDir, e.path)
	if err != nil {
		return nil, journals.RecordError(cmd.Context(), e.path, err)
	}
	defer in.Close()
	o := trace.ReadOptions{Task: e.Task}
	if e.hasContains {
		o = trace.ReadOptions{Finder: trace.NewFinder(e.contains)}
	}
	t, err := trace.ReadWith(in, o)
	if errors.Is(err, trace.ErrFormat) {
		return nil, exit.Errorf(exit.KindValidation, `%s: %w; a trace is a file that "runteam run --trace FILE" writes`, e.path, err)
	}
	if err == nil && e.hasContains {
		e.search = o.Finder.Search(t)
	}
	return t, journals.RecordError(cmd.Context(), e.path, err)
}

// A Document is what explain prints, in JSON.
type Document struct {
	File    string           `json:"file,omitempty"` // none for a run of the journal
	Run     string           `json:"runId,omitempty"`
	Name    string           `json:"name,omitempty"`
	Time    time.Time        `json:"time,omitzero"`
	Whole   bool             `json:"whole"` // the run ended, and the trace has its end
	Torn    bool             `json:"torn,omitempty"`
	Partial bool             `json:"partial,omitempty"` // it is about one task, which the run began with
	Prompts []PromptDocument `json:"prompts"`
	Unsent  []unsent         `json:"unsent,omitempty"`
	Rounds  []string         `json:"rounds,omitempty"` // that have the prompts of the only task to explain, if it is a loop or has judges
	Text    string           `json:"contains,omitempty"`
	Search  *found           `json:"found,omitempty"`

	// Files are the output files of the tasks that are explained, each with the versions of it that it replaces.
	Files []history.ArtifactDocument `json:"outputFiles,omitempty"`

	Trace  *trace.Trace    `json:"-"`
	chosen []*trace.Prompt // of which the Prompts are
	task   string          // the title of the only task to explain; empty for all
	only   task.ID         // its ID
}

// AddFiles adds the output files from the run as the journal has all of it; nil adds none.
func (x *Document) AddFiles(k *journals.StoredRun) {
	if k != nil && x.Search == nil {
		x.Files = history.OutputFiles(k, x.only)
	}
}

// unsent is a task with an attempt that had no prompt, since context that the task needs was
// withheld.
type unsent struct {
	trace.Task
	Withheld []event.Handoff `json:"held"`
}

// A Query says which part of a trace is explained: of a task, or of all if Task is empty, the prompts,
// or where a text was found.
type Query struct {
	File        string // of the trace; empty for a run of the journal
	Task        string
	Contains    string
	HasContains bool
	Found       trace.Search
}

// NewDocument returns the part of a trace that is asked for.
func NewDocument(t *trace.Trace, q Query) (*Document, error) {
	x, err := chosenPart(t, q)
	if err == nil {
		x.addPrompts()
	}
	return x, err
}

// chosenPart returns the part of a trace that is asked for, without the documents of its prompts.
func chosenPart(t *trace.Trace, q Query) (*Document, error) {
	x := &Document{File: q.File, Run: t.Run, Name: t.Name, Time: t.Time, Whole: t.Ended() && !t.Torn, Torn: t.Torn, Prompts: []PromptDocument{}, Trace: t}
	only, isInHead := func(string) bool { return true }, false
	if q.Task != "" {
		tk, err := t.Find(q.Task)
		if err != nil {
			return nil, err
		}
		x.task, x.only, isInHead = tk.Title, tk.ID, t.InHead(tk.ID)
		only = func(id string) bool { return id == string(tk.ID) }
	}
	if q.HasContains {
		x.Text, x.Search = q.Contains, x.found(q.Found, only)
		return x, nil
	}
	x.Partial = isInHead
	for i := range t.Prompts {
		if p := &t.Prompts[i]; only(string(p.Receipt.Task)) {
			x.choose(p)
		}
	}
	for _, tk := range t.Tasks() {
		if held := t.Withheld(tk.ID); len(held) > 0 && only(string(tk.ID)) {
			x.Unsent = append(x.Unsent, unsent{tk, held})
		}
	}
	x.Rounds = x.rounds()
	return x, nil
}
