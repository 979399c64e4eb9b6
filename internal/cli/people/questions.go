package people

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// A questionDocument is an open question, in JSON. Prompt and form are as the user of the run may
// see them.
type questionDocument struct {
	Run    string               `json:"runId"`
	Name   string               `json:"name,omitempty"`
	Status string               `json:"status"` // of the run
	Task   task.ID              `json:"task"`
	Title  string               `json:"title"`
	Named  string               `json:"taskName,omitempty"` // of an instance, by the keys of its items
	Agent  string               `json:"agent"`
	Asked  time.Time            `json:"askedAt"`
	Label  label.Classification `json:"label"`
	Prompt string               `json:"prompt"`
	Fields []fieldDocument      `json:"fields,omitempty"` // none for a text or a single value
	Answer string               `json:"answerCommand"`
}

// A fieldDocument is a field of an answer, in JSON.
type fieldDocument struct {
	Name     string `json:"name"`
	About    string `json:"description,omitempty"`
	Kind     string `json:"kind"`
	Choices  []any  `json:"choices,omitempty"`
	Required bool   `json:"required"`
}

// QuestionsCommand returns the command questions.
func QuestionsCommand(con *console.Console) *cobra.Command {
	read := &journals.ReadFlags{}
	cmd := &cobra.Command{
		Use:   "questions [RUN]",
		Short: "List the open questions to people, of all runs of the journal or of one",
		Long: `questions lists the questions to people that have no answer yet: of all runs of the
journal, or of the one whose ID begins with RUN. It shows what the person is shown,
as far as the user of the run may see it, and the command that answers.`,
		Example: `  runteam questions
  runteam questions 1f3c -o json`,
		Args: read.Arguments(1, "one RUN"),
		RunE: func(cmd *cobra.Command, _ []string) error { return listQuestions(con, cmd, read) },
	}
	read.AddTo(cmd)
	journals.NewCompleter(con, &read.Flags).Arguments(cmd, false, false)
	return cmd
}

func listQuestions(con *console.Console, cmd *cobra.Command, read *journals.ReadFlags) error {
	ctx := cmd.Context()
	j, err := read.Open(cmd, con)
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // nothing was written
	all, err := j.Newest(ctx, "", 1<<31-1)
	if err != nil {
		return journals.ReadError(ctx, err)
	}
	runs, short := all, journals.ShortIDs(all)
	if read.Run != "" {
		found, err := journals.Find(ctx, j, read.Run)
		if err != nil {
			return err
		}
		runs = []journal.Summary{found}
	}
	docs := []questionDocument{}
	for i := range runs {
		if runs[i].Status == string(engine.StatusOK) || runs[i].Command == journals.ExperimentCommand { // which is not resumed
			continue
		}
		of, err := documentsOf(ctx, j, &runs[i], short[runs[i].Run], &read.Flags)
		if err != nil {
			return journals.ReadError(ctx, err)
		}
		docs = append(docs, of...)
	}
	return con.PrintResult(docs, func(w io.Writer) { writeQuestions(w, docs, short) })
}

// documentsOf returns the open questions of a run.
func documentsOf(ctx context.Context, j *journal.Journal, run *journal.Summary, short string, g *journals.Flags) (docs []questionDocument, err error) {
	list, err := j.Questions(ctx, run.Run)
	if err != nil {
		return nil, err
	}
	for _, q := range list {
		if !q.Open() {
			continue
		}
		d := questionDocument{
			Run: run.Run, Name: run.Name, Status: run.Status, Task: q.Task, Title: q.Title, Agent: q.Agent, Asked: q.Time, Label: q.Label,
		}
		if f, err := newForm(q.Schema); err == nil {
			for _, one := range f.fields {
				d.Fields = append(d.Fields, fieldDocument{one.name, one.about, one.kind, one.choices, one.required})
			}
		}
		t, err := j.TraceTask(ctx, run.Run, string(q.Task))
		if err != nil {
			return nil, err
		}
		if known, err := t.Find(string(q.Task)); err == nil {
			d.Named = known.Name
		}
		d.Answer = CommandFor(g, short, cmp.Or(d.Named, q.Title), q)
		shown := promptOf(t, q)
		if d.Prompt = "[withheld]"; shown != nil {
			d.Prompt = promptText(shown)
		}
		docs = append(docs, d)
	}
	return docs, nil
}

// promptOf returns the prompt of a question as the user of the run may see it; nil if it is not
// recorded.
func promptOf(t *trace.Trace, q *journal.Question) *promptview.Shown {
	for i := range t.Prompts {
		if p := &t.Prompts[i]; p.Receipt.Session == q.Session {
			return &p.Shown
		}
	}
	return nil
}

// CommandFor returns an example of the command that answers a question of the task that people know
// by a name.
func CommandFor(g *journals.Flags, run, name string, q *journal.Question) string {
	args := []string{"…"}
	if f, err := newForm(q.Schema); err == nil && q.Missing == "" {
		args = f.arguments()
	}
	if q.Call != "" || q.Approval != "" {
		args = []string{"--set", "decision=yes"}
	}
	name = journals.TaskName(name, q.Task)
	if strings.HasPrefix(name, "-") {
		name = string(q.Task)
	}
	var text strings.Builder
	text.WriteString(g.Command("answer", run, name))
	for _, arg := range args {
		text.WriteString(" " + format.ShellWord(arg))
	}
	return text.String()
}

func writeQuestions(w io.Writer, docs []questionDocument, short map[string]string) {
	if len(docs) == 0 {
		fmt.Fprintln(w, "no open questions")
		return
	}
	for i := range docs {
		d := &docs[i]
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %q for %s, asked %s, %v\n", journals.Heading(d.Name, short[d.Run]), terminal.CleanLine(cmp.Or(d.Named, d.Title)), terminal.CleanLine(d.Agent), d.Asked.Local().Format(time.DateTime), d.Label)
		for line := range strings.Lines(d.Prompt) {
			fmt.Fprintf(w, "  │ %s\n", strings.TrimSuffix(line, "\n"))
		}
		for k := range d.Fields {
			f := &d.Fields[k]
			text := f.Name + ": " + f.Kind
			if len(f.Choices) > 0 {
				words := make([]string, len(f.Choices))
				for n, c := range f.Choices {
					words[n] = wordOf(c)
				}
				text = f.Name + ": " + format.List(words, len(words))
			}
			if !f.Required {
				text += " (may be left out)"
			}
			fmt.Fprintf(w, "  %s\n", terminal.CleanLine(text))
		}
		fmt.Fprintf(w, "  %s\n", d.Answer)
	}
}
