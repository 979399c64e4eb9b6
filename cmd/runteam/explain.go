package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/trace"
)

// explaining is one look at a trace, as the arguments ask for it.
type explaining struct {
	path, task string
	contains   string
	follow     bool // --contains was given
}

func (a *app) explainCommand() *cobra.Command {
	e := &explaining{}
	cmd := &cobra.Command{
		Use:   "explain FILE [TASK]",
		Short: "Show what each prompt of a run contained, where it came from, and what was withheld",
		Long: `explain reads the trace of a run, which "runteam run --trace FILE" writes. For
each prompt it shows every range of bytes with its source, what was withheld by
which rule, and what was there and not sent. With --contains it says where a
text occurs, and who brought it in. TASK is a title, a key or an id, or a step
of the coordinator; FILE may be - for standard input. What is above the
clearance of whoever the run was for is not in the trace: of it explain shows
the source, the label and the length.`,
		Example: `  runteam run claims.yaml --offline --trace claims.jsonl
  runteam explain claims.jsonl
  runteam explain claims.jsonl "Score fraud"
  runteam explain claims.jsonl --contains "policy 4417"`,
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return usageError("%s needs the FILE that \"run --trace FILE\" wrote", cmd.CommandPath())
			case len(args) > 2:
				return usageError("%s takes a FILE and a TASK, not %d arguments: quote a title of several words", cmd.CommandPath(), len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			e.path, e.follow = args[0], cmd.Flags().Changed("contains")
			if len(args) == 2 {
				e.task = args[1]
				if e.task == "" {
					return usageError("TASK is empty: write a title, a key or an id, or leave it out")
				}
			}
			return a.explain(e)
		},
	}
	cmd.Flags().StringVar(&e.contains, "contains", "", "say where `TEXT` occurs, and who brought it in")
	complete(cmd, "contains", nil)
	return cmd
}

func (a *app) explain(e *explaining) error {
	if e.follow && strings.TrimSpace(e.contains) == "" {
		return usageError("--contains is empty: write the text to look for")
	}
	t, err := e.read(a.stdin)
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

// read reads the trace.
func (e *explaining) read(stdin io.Reader) (*trace.Trace, error) {
	in := stdin
	if e.path != "-" {
		file, err := os.Open(e.path)
		if err != nil {
			return nil, &fault{kind: kindIO, err: fmt.Errorf("%s: %w", e.path, plainly(err))}
		}
		defer file.Close()
		in = file
	}
	t, err := trace.Read(in)
	switch {
	case errors.Is(err, trace.ErrFormat):
		return nil, &fault{kind: kindValidation, err: fmt.Errorf("%s: %w", e.path, err)}
	case err != nil:
		return nil, &fault{kind: kindIO, err: fmt.Errorf("%s: %w", e.path, plainly(err))}
	}
	return t, nil
}

// explained is what explain says, in JSON.
type explained struct {
	File    string            `json:"file"`
	Run     string            `json:"runId,omitempty"`
	Name    string            `json:"name,omitempty"`
	Time    time.Time         `json:"time,omitzero"`
	Whole   bool              `json:"whole"` // the run came to its end, and the trace with it
	Torn    bool              `json:"torn,omitempty"`
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
	x := &explained{File: e.path, Run: t.Run, Name: t.Name, Time: t.Time, Whole: t.Result != nil && !t.Torn, Torn: t.Torn, Prompts: []explainedPrompt{}, trace: t}
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
		x.Text, x.Search = e.contains, x.found(t.Contains(e.contains), only)
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
