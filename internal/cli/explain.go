package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/trace"
)

// explaining is one look at a run or a trace, as the arguments ask for it.
type explaining struct {
	looking
	path, task string // an empty path is the run of looking
	contains   string
	follow     bool // --contains was given
	search     trace.Search
}

func (a *app) explainCommand() *cobra.Command {
	e := &explaining{}
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
				return usageError("%s takes a RUN or FILE and a TASK, not %d arguments: quote a title of several words", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			e.follow = cmd.Flags().Changed("contains")
			if err := e.arguments(args); err != nil {
				return err
			}
			if e.run != "" && isFile(e.run) {
				e.path = e.run
			}
			if len(args) == 2 {
				if e.task = args[1]; e.task == "" {
					return usageError("TASK is empty: write a title, a key or an id, or leave it out")
				}
			}
			return a.explain(cmd, e)
		},
	}
	e.flags(cmd)
	cmd.Flags().StringVar(&e.contains, "contains", "", "say where `TEXT` occurs, and who brought it in")
	complete(cmd, "contains", nil)
	newCompleter(a, &e.journaling).arguments(cmd, true, true)
	return cmd
}

func (a *app) explain(cmd *cobra.Command, e *explaining) error {
	if e.follow && strings.TrimSpace(e.contains) == "" {
		return usageError("--contains is empty: write the text to look for")
	}
	t, err := e.trace(cmd, a)
	if err != nil {
		return err
	}
	x, err := e.of(t)
	if err != nil {
		return &fault{kind: kindUsage, err: err}
	}
	if a.settings.json() {
		return satisfied(a.printJSON(x))
	}
	var b strings.Builder
	if x.Search != nil {
		x.writeSearch(&b)
	} else {
		x.write(&b)
	}
	return satisfied(a.printText(b.String()))
}

// trace returns the record, of a file or of a run of the journal, as far as it is needed.
func (e *explaining) trace(cmd *cobra.Command, a *app) (*trace.Trace, error) {
	if e.path != "" {
		return e.read(cmd.Context(), a.stdin)
	}
	j, err := e.open(cmd, a)
	if err != nil {
		return nil, neither(e.run, err)
	}
	defer j.Close()
	run, err := meant(cmd.Context(), j, e.run)
	if err != nil {
		return nil, err
	}
	t, err := e.stored(cmd.Context(), j, run)
	if e.task == "" && errors.Is(err, journal.ErrUnknownRun) && e.run != "" { // perhaps a task of the newest run
		if newest := e.ofNewest(cmd.Context(), j); newest != nil {
			return newest, nil
		}
	}
	if err != nil {
		err = unloaded(whyEnded(cmd.Context(), err))
		if e.task == "" {
			err = nearTask(cmd.Context(), j, e.run, err)
		}
		return nil, neither(e.run, err)
	}
	return t, nil
}

// stored reads what is needed of a run of the journal.
func (e *explaining) stored(ctx context.Context, j *journal.Journal, run string) (t *trace.Trace, err error) {
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
func (e *explaining) ofNewest(ctx context.Context, j *journal.Journal) *trace.Trace {
	run, err := meant(ctx, j, "")
	if err != nil {
		return nil
	}
	with := *e
	with.task = e.run
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
func (e *explaining) read(ctx context.Context, stdin io.Reader) (*trace.Trace, error) {
	in := stdin
	if e.path != "-" {
		file, err := openInput(ctx, e.path)
		if err != nil {
			return nil, unread(e.path, plainly(err))
		}
		defer file.Close()
		in = file
	}
	o := trace.ReadOptions{Task: e.task}
	if e.follow {
		o = trace.ReadOptions{Finder: trace.NewFinder(e.contains)}
	}
	t, err := trace.ReadWith(newUntil(ctx, in), o)
	switch {
	case errors.Is(err, trace.ErrFormat):
		return nil, &fault{kind: kindValidation, err: fmt.Errorf("%s: %w", e.path, err)}
	case err != nil:
		return nil, unread(e.path, plainly(err))
	}
	if e.follow {
		e.search = o.Finder.Search(t)
	}
	return t, nil
}

// explained is what explain says, in JSON.
type explained struct {
	File    string            `json:"file,omitempty"` // none for a run of the journal
	Run     string            `json:"runId,omitempty"`
	Name    string            `json:"name,omitempty"`
	Time    time.Time         `json:"time,omitzero"`
	Whole   bool              `json:"whole"` // the run came to its end, and the trace with it
	Torn    bool              `json:"torn,omitempty"`
	Partial bool              `json:"partial,omitempty"` // only what is about one task was read
	Prompts []explainedPrompt `json:"prompts"`
	Unsent  []unsent          `json:"unsent,omitempty"`
	Text    string            `json:"contains,omitempty"`
	Search  *found            `json:"found,omitempty"`

	trace *trace.Trace
	task  string // the title of the one task that was asked for
}

// unsent is a task that had no prompt, at least not in one attempt, since what
// it needs was held.
type unsent struct {
	trace.Task
	Held []event.Handoff `json:"held"`
}

// of says what was asked of a trace.
func (e *explaining) of(t *trace.Trace) (*explained, error) {
	x := &explained{File: e.path, Run: t.Run, Name: t.Name, Time: t.Time, Whole: t.Result != nil && !t.Torn, Torn: t.Torn, Partial: t.Partial, Prompts: []explainedPrompt{}, trace: t}
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
