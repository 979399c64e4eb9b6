// Package explain is the command explain: it shows what each prompt of a run contained and where
// each byte came from.
package explain

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/trace"
	"github.com/spf13/cobra"
)

// explainFlags is one look at a run or a trace, as the arguments ask for it.
type explainFlags struct {
	journals.ReadFlags
	path, task string // an empty path is the run of looking
	contains   string
	follow     bool // --contains was given
	search     trace.Search
}

// Command returns the command explain.
func Command(con *console.Console) *cobra.Command {
	e := &explainFlags{}
	cmd := &cobra.Command{
		Use:   "explain [RUN|FILE] [TASK]",
		Short: "Show what each prompt of a run contained, where it came from, and what was withheld",
		Long: `explain reads a run of the journal: the newest, or the one whose id begins with
RUN. If there is a file of that name it reads that, as a trace, which "runteam run
--trace FILE" writes; - is standard input. For each prompt it shows every range of
bytes with its source, what was withheld by which rule, and what was there and not
sent. With --contains it says where a text occurs, and who brought it in. TASK is
a title, a key, an id, or a step of the coordinator; TASK alone is one of the
newest run. What is above the clearance of the user of the run is not shown; its
source, label and size class (up to 1, 4, 16 KiB and so on) are, and positions
count the size class.`,
		Example: `  runteam explain                              the newest run
  runteam explain 0195c3a1 "Score fraud"
  runteam explain --contains "policy 4417"
  runteam run claims.yaml --offline --trace claims.jsonl
  runteam explain claims.jsonl`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return exit.Usagef("%s takes a RUN or FILE and a TASK, not %d arguments: quote a title of several words", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			e.follow = cmd.Flags().Changed("contains")
			if err := e.ParseRun(args); err != nil {
				return err
			}
			if e.Run != "" && files.IsFile(e.Run) {
				e.path = e.Run
			}
			if len(args) == 2 {
				if e.task = args[1]; e.task == "" {
					return exit.Usagef("TASK is empty: write a title, a key or an id, or leave it out")
				}
			}
			return explain(con, cmd, e)
		},
	}
	e.AddTo(cmd)
	cmd.Flags().StringVar(&e.contains, "contains", "", "say where `TEXT` occurs, and who brought it in")
	flags.Complete(cmd, "contains", nil)
	journals.NewCompleter(con, &e.Flags).Arguments(cmd, true, true)
	return cmd
}

func explain(con *console.Console, cmd *cobra.Command, e *explainFlags) error {
	if e.follow && strings.TrimSpace(e.contains) == "" {
		return exit.Usagef("--contains is empty: write the text to look for")
	}
	t, err := e.trace(cmd, con)
	if err != nil {
		return err
	}
	x, err := e.of(t)
	if err != nil {
		return &exit.Error{Kind: exit.KindUsage, Err: err}
	}
	if con.Settings.JSON() {
		return exit.IgnoreClosedPipe(con.PrintJSON(x))
	}
	var b strings.Builder
	if x.Search != nil {
		x.writeSearch(&b)
	} else {
		x.write(&b)
	}
	return exit.IgnoreClosedPipe(con.PrintText(b.String()))
}

// trace returns the record, of a file or of a run of the journal, as far as it is needed.
func (e *explainFlags) trace(cmd *cobra.Command, con *console.Console) (*trace.Trace, error) {
	if e.path != "" {
		return e.read(cmd.Context(), con.Stdin)
	}
	j, err := e.Open(cmd, con)
	if err != nil {
		return nil, journals.NeitherFileNorRun(e.Run, err)
	}
	defer j.Close()
	run, err := journals.ResolveRun(cmd.Context(), j, e.Run)
	if err != nil {
		return nil, err
	}
	t, err := e.stored(cmd.Context(), j, run)
	if e.task == "" && errors.Is(err, journal.ErrUnknownRun) && e.Run != "" { // perhaps a task of the newest run
		if newest := e.ofNewest(cmd.Context(), j); newest != nil {
			return newest, nil
		}
	}
	if err != nil {
		err = journals.ReadError(exit.Cause(cmd.Context(), err))
		if e.task == "" {
			err = journals.SuggestTask(cmd.Context(), j, e.Run, err)
		}
		return nil, journals.NeitherFileNorRun(e.Run, err)
	}
	return t, nil
}

// stored reads what is needed of a run of the journal.
func (e *explainFlags) stored(ctx context.Context, j *journal.Journal, run string) (t *trace.Trace, err error) {
	switch {
	case e.follow:
		t, e.search, err = j.Search(ctx, run, e.contains)
		return t, err
	case e.task != "":
		return j.TraceTask(ctx, run, e.task)
	}
	return j.Trace(ctx, run)
}

// ofNewest takes what no run is called for a task of the newest run; nil if that
// has none of this name.
func (e *explainFlags) ofNewest(ctx context.Context, j *journal.Journal) *trace.Trace {
	run, err := journals.ResolveRun(ctx, j, "")
	if err != nil {
		return nil
	}
	with := *e
	with.task = e.Run
	t, err := with.stored(ctx, j, run)
	if err != nil {
		return nil
	}
	if _, err := t.Find(with.task); err != nil {
		return nil
	}
	*e = with
	return t
}

// read reads the trace of a file.
func (e *explainFlags) read(ctx context.Context, stdin io.Reader) (*trace.Trace, error) {
	in := stdin
	if e.path != "-" {
		file, err := files.OpenInput(ctx, e.path)
		if err != nil {
			return nil, journals.FileError(e.path, exit.WithoutPath(err))
		}
		defer file.Close()
		in = file
	}
	o := trace.ReadOptions{Task: e.task}
	if e.follow {
		o = trace.ReadOptions{Finder: trace.NewFinder(e.contains)}
	}
	t, err := trace.ReadWith(files.NewContextReader(ctx, in), o)
	switch {
	case errors.Is(err, trace.ErrFormat):
		return nil, &exit.Error{Kind: exit.KindValidation, Err: fmt.Errorf("%s: %w", e.path, err)}
	case err != nil:
		return nil, journals.FileError(e.path, exit.WithoutPath(err))
	}
	if e.follow {
		e.search = o.Finder.Search(t)
	}
	return t, nil
}

// Document is what explain says, in JSON.
type Document struct {
	File    string           `json:"file,omitempty"` // none for a run of the journal
	Run     string           `json:"runId,omitempty"`
	Name    string           `json:"name,omitempty"`
	Time    time.Time        `json:"time,omitzero"`
	Whole   bool             `json:"whole"` // the run came to its end, and the trace with it
	Torn    bool             `json:"torn,omitempty"`
	Partial bool             `json:"partial,omitempty"` // only what is about one task was read
	Prompts []PromptDocument `json:"prompts"`
	Unsent  []unsent         `json:"unsent,omitempty"`
	Text    string           `json:"contains,omitempty"`
	Search  *found           `json:"found,omitempty"`

	Trace *trace.Trace `json:"-"`
	task  string       // the title of the one task that was asked for
}

// unsent is a task that had no prompt, at least not in one attempt, since what
// it needs was held.
type unsent struct {
	trace.Task
	Held []event.Handoff `json:"held"`
}

// of says what was asked of a trace.
func (e *explainFlags) of(t *trace.Trace) (*Document, error) {
	x := &Document{File: e.path, Run: t.Run, Name: t.Name, Time: t.Time, Whole: t.Result != nil && !t.Torn, Torn: t.Torn, Partial: t.Partial, Prompts: []PromptDocument{}, Trace: t}
	only := func(string) bool { return true }
	if e.task != "" {
		tk, err := t.Find(e.task)
		if err != nil {
			return nil, err
		}
		x.task = tk.Title
		only = func(id string) bool { return id == string(tk.ID) }
	}
	if e.follow {
		x.Text, x.Search = e.contains, x.found(e.search, only)
		return x, nil
	}
	for i := range t.Prompts {
		if p := &t.Prompts[i]; only(string(p.Receipt.Task)) {
			x.Prompts = append(x.Prompts, x.prompt(p))
		}
	}
	for _, tk := range t.Tasks {
		if held := t.Held(tk.ID); len(held) > 0 && only(string(tk.ID)) {
			x.Unsent = append(x.Unsent, unsent{tk, held})
		}
	}
	return x, nil
}
