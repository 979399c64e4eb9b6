package people

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/promptview"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// A QuestionDocument is an open question, in JSON. Prompt and form are as the user of the run may
// see them.
type QuestionDocument struct {
	Run    string               `json:"runId,omitempty"` // empty for a person who may not see the run; see [QuestionDocument.ForPerson]
	ID     string               `json:"id"`              // of the question, within the run; it changes with what is shown
	Name   string               `json:"name,omitempty"`
	Status string               `json:"status,omitempty"` // of the run
	Task   task.ID              `json:"task,omitempty"`
	Title  string               `json:"title,omitempty"`
	Named  string               `json:"taskName,omitempty"` // of an instance, by the keys of its items
	Tool   string               `json:"tool,omitempty"`     // whose call needs an approval
	Call   string               `json:"call,omitempty"`     // the ID of that call
	What   string               `json:"approval,omitempty"` // what else needs one: "plan", or the name of a declassifier
	Agent  string               `json:"agent,omitempty"`
	Users  []string             `json:"users,omitempty"`  // names of who can answer; none if anybody can
	Denied string               `json:"denied,omitempty"` // why the viewer of a server may not answer; empty if they may
	Asked  time.Time            `json:"askedAt,omitzero"`
	Label  label.Classification `json:"label"`
	Asks   promptview.Asked     `json:"asks"`             // the question in words for people
	Prompt string               `json:"prompt"`           // the same as an agent would see it
	Fields []fieldDocument      `json:"fields,omitempty"` // none for a text or a single value
	Schema json.RawMessage      `json:"schema,omitempty"` // of the answer; none for a text
	Answer string               `json:"answerCommand,omitempty"`
}

// ForPerson returns the question for a person who answers it and may not see its run: what the person is shown, and the
// form of the answer, under an ID that says nothing of the run.
func (d *QuestionDocument) ForPerson() QuestionDocument {
	id := sha256.Sum256([]byte("question " + d.Run + " " + d.ID))
	return QuestionDocument{ID: hex.EncodeToString(id[:]), Denied: d.Denied, Label: d.Label, Asks: d.Asks, Prompt: d.Prompt, Fields: d.Fields, Schema: d.Schema}
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
	read, prompts := &journals.ReadFlags{}, false
	cmd := &cobra.Command{
		Use:   "questions [RUN]",
		Short: "List the open questions to people, of all runs of the journal or of one",
		Long: `questions lists the questions to people that have no answer yet: of all runs of the
journal, or of the one whose ID begins with RUN. It shows what to decide, the texts
that this is about, as far as the user of the run may see them, and the command that
answers. --prompt shows the prompt instead, as an agent would see it.`,
		Example: `  runteam questions
  runteam questions 1f3c -o json`,
		Args: read.Arguments(1, "one RUN"),
		RunE: func(cmd *cobra.Command, _ []string) error { return listQuestions(con, cmd, read, prompts) },
	}
	read.AddTo(cmd)
	cmd.Flags().BoolVar(&prompts, "prompt", false, "show each question as an agent would see it, with its envelopes")
	journals.NewCompleter(con, &read.Flags).Arguments(cmd, false, false)
	return cmd
}

func listQuestions(con *console.Console, cmd *cobra.Command, read *journals.ReadFlags, prompts bool) error {
	j, err := read.Open(cmd, con)
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // nothing was written
	docs, short, err := OpenQuestions(cmd.Context(), j, &read.Flags, read.Run)
	if err != nil {
		return err
	}
	return con.PrintResult(docs, func(w io.Writer) { writeQuestions(w, docs, short, prompts) })
}

// OpenQuestions returns the open questions of a run, or of all if run is empty, and the short IDs of all
// runs.
func OpenQuestions(ctx context.Context, j *journal.Journal, flags *journals.Flags, run string) (docs []QuestionDocument, short map[string]string, err error) {
	all, err := j.Newest(ctx, "", 1<<31-1)
	if err != nil {
		return nil, nil, journals.ReadError(ctx, err)
	}
	if run != "" {
		found, err := journals.Find(ctx, j, run)
		if err != nil {
			return nil, nil, err
		}
		run = found.Run
	}
	open, err := j.OpenQuestions(ctx, run)
	if err != nil {
		return nil, nil, journals.ReadError(ctx, err)
	}
	short = journals.ShortIDs(all)
	if err := journals.FindUnended(ctx, j, all, func(s *journal.Summary) bool {
		return slices.ContainsFunc(open, func(q journal.OpenQuestion) bool { return q.Run == s.Run })
	}); err != nil {
		return nil, nil, err
	}
	docs = make([]QuestionDocument, len(open))
	for i := range open {
		docs[i] = documentOf(&open[i], all, short, flags)
	}
	return docs, short, nil
}

// documentOf returns the document of an open question of one of these runs.
func documentOf(q *journal.OpenQuestion, runs []journal.Summary, short map[string]string, g *journals.Flags) QuestionDocument {
	d := QuestionDocument{
		Run: q.Run, ID: q.ID, Task: q.Task, Title: q.Title, Named: q.Name, Tool: q.Tool, Call: q.Call, What: q.Approval, Schema: json.RawMessage(q.Schema), Agent: q.Agent, Users: q.Users, Asked: q.Asked, Label: q.Label, Asks: q.Asks, Prompt: q.Prompt,
		Answer: CommandFor(g, cmp.Or(short[q.Run], q.Run), q),
	}
	if i := slices.IndexFunc(runs, func(s journal.Summary) bool { return s.Run == q.Run }); i >= 0 {
		d.Name, d.Status = runs[i].Name, runs[i].Status
	}
	if f, err := newForm(q.Schema); err == nil {
		for _, one := range f.fields {
			d.Fields = append(d.Fields, fieldDocument{one.name, one.about, one.kind, one.choices, one.required})
		}
	}
	return d
}

// shownID is how many characters of the ID of a question a command has.
const shownID = 8

// CommandFor returns an example of the command that answers a question.
func CommandFor(g *journals.Flags, run string, q *journal.OpenQuestion) string {
	args := []string{"…"}
	if f, err := newForm(q.Schema); err == nil {
		args = f.arguments()
	}
	if (q.Call != "" || q.Approval != "") && q.Schema != record.RefusalForm {
		args = []string{"--set", "decision=yes"}
	}
	name := journals.TaskName(cmp.Or(q.Name, q.Title), q.Task)
	if strings.HasPrefix(name, "-") {
		name = string(q.Task)
	}
	var text strings.Builder
	text.WriteString(g.Command("answer", run, name))
	if q.ID != "" {
		text.WriteString(" --question " + q.ID[:min(len(q.ID), shownID)])
	}
	switch len(q.Users) {
	case 0:
	case 1:
		text.WriteString(" --by " + format.ShellWord(q.Users[0]))
	default:
		text.WriteString(" --by NAME")
	}
	for _, arg := range args {
		text.WriteString(" " + format.ShellWord(arg))
	}
	return text.String()
}

// ApprovesPlan reports whether a question, by what it approves and the ID of its task, is about the
// plan of the coordinator. An entry of the policy can be called "plan" too.
func ApprovesPlan(what string, id task.ID) bool {
	return what == "plan" && strings.HasPrefix(string(id), handoff.Coordinator+"/")
}

// about names what is asked.
func (d *QuestionDocument) about() string {
	title := cmp.Or(d.Named, d.Title)
	switch of := cmp.Or(d.Tool, d.What); {
	case of == "":
		return fmt.Sprintf("%q", terminal.CleanLine(title))
	case ApprovesPlan(d.What, d.Task):
		return "approval of the plan"
	default:
		return fmt.Sprintf("approval of %s in %q", terminal.CleanLine(of), terminal.CleanLine(title))
	}
}

func writeQuestions(w io.Writer, docs []QuestionDocument, short map[string]string, prompts bool) {
	if len(docs) == 0 {
		fmt.Fprintln(w, "no open questions")
		return
	}
	for i := range docs {
		d := &docs[i]
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintf(w, "%s: %s for %s, asked %s, %v\n", journals.Heading(d.Name, short[d.Run]), d.about(), terminal.CleanLine(d.Agent), d.Asked.Local().Format(time.DateTime), d.Label)
		if prompts {
			writeQuoted(w, d.Prompt)
		} else {
			writeAsked(w, &d.Asks)
		}
		fmt.Fprintln(w)
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
		if len(d.Users) > 0 {
			fmt.Fprintf(w, "  only %s can answer\n", terminal.CleanLine(record.OneOf(d.Users)))
		}
		fmt.Fprintf(w, "  %s\n", d.Answer)
	}
}
