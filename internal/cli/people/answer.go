package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/console"
	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/files"
	"github.com/runteam/runteam/internal/cli/flags"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/username"
	"github.com/runteam/runteam/task"
	"github.com/spf13/cobra"
)

// answerFlags are the arguments and flags of answer.
type answerFlags struct {
	journals.Flags
	run, task, text string
	hasText         bool
	set             []string
	file            string
	by, reason      string
	question        string // the beginning of its ID
}

// An answerDocument is a stored answer, in JSON.
type answerDocument struct {
	Run   string    `json:"runId"`
	Task  task.ID   `json:"task"`
	Title string    `json:"title"`
	Agent string    `json:"agent"`
	By    string    `json:"by"`
	Time  time.Time `json:"answeredAt"`
	Taken bool      `json:"taken"`         // by the process that works on the run
	Open  int       `json:"openQuestions"` // that the run still has

	name string // what people know the task by
}

// AnswerCommand returns the command answer.
func AnswerCommand(con *console.Console) *cobra.Command {
	a := &answerFlags{}
	cmd := &cobra.Command{
		Use:   "answer RUN TASK [TEXT]",
		Short: "Answer the question of a run to a person",
		Long: `answer stores the answer to the open question about a TASK (a title, the name of
an item such as Mail[ann@x.org], a key or an ID, or "coordinator" for its plan) of the
run whose ID begins with RUN. The command questions prints the whole command, with the
ID of the question: an answer with --question serves no other one, even if the task asks
something else by now. An approval needs it. A
process that works on the run takes it within two seconds; runteam resume continues a
suspended run with it. The answer is TEXT, the contents of a file, or with an
outputSchema its fields, each with --set. It is for exactly this question: if the task
shows something else when the run is resumed, the person is asked again. The first
answer counts. A run with commands that are not confined takes answers only while it is
suspended, since such a command could answer in place of the person.`,
		Example: `  runteam answer 1f3c "Decide" --set choice=send --set note="Fine."
  runteam answer 1f3c coordinator --question 3fa9c1d2 --set decision=edit --set plan=@plan.json
  runteam answer 1f3c "Review" "The second paragraph is wrong."
  runteam answer 1f3c "Review" --file review.md --reason "as discussed"`,
		Args: a.arguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return answer(con, cmd, a) },
	}
	a.AddStoringTo(cmd)
	f := cmd.Flags()
	f.StringArrayVar(&a.set, "set", nil, "the value of a field, as `FIELD=VALUE` (repeatable); @FILE is the JSON in a file")
	f.StringVar(&a.question, "question", "", "the answer is only for the question whose `ID` begins so; an approval needs it")
	f.StringVar(&a.file, "file", "", "the answer is in `FILE`; - is standard input")
	f.StringVar(&a.by, "by", "", "`NAME` of who answers (default: the user of this computer)")
	f.StringVar(&a.reason, "reason", "", "`TEXT` that is stored with the answer, and is its field reason if it has one that is not set")
	journals.NewCompleter(con, &a.Flags).Arguments(cmd, true, false)
	return cmd
}

func (a *answerFlags) arguments(cmd *cobra.Command, args []string) error {
	if len(args) < 2 || args[0] == "" || args[1] == "" {
		return exit.Usagef("%s needs a RUN and a TASK: runteam questions lists them", cmd.CommandPath())
	}
	if err := flags.AtMost(3, "a RUN, a TASK and a TEXT (quote a text of several words)")(cmd, args); err != nil {
		return err
	}
	if a.run, a.task = args[0], args[1]; len(args) == 3 {
		a.text, a.hasText = args[2], true
	}
	return nil
}

func answer(con *console.Console, cmd *cobra.Command, a *answerFlags) error {
	ctx := cmd.Context()
	texts, err := a.read(ctx, con, cmd)
	if err != nil {
		return err
	}
	j, _, err := journals.Open(con, &a.Flags, journals.ToChange)
	if err != nil {
		return err
	}
	defer j.Close() //nolint:errcheck // the answer is durable already
	found, err := journals.Find(ctx, j, a.run)
	if err != nil {
		return err
	}
	q, name, err := a.findQuestion(ctx, j, found.Run)
	if err == nil {
		err = a.checkQuestion(q, journals.ShortRun(found.Run))
	}
	if err != nil {
		return err
	}
	text, err := a.answerTo(con, q, texts)
	if err != nil {
		return err
	}
	out := answerDocument{Run: found.Run, Task: q.Task, Title: q.Title, name: name, Agent: q.Agent, By: a.answerer(con, q), Time: con.Now()}
	out.Taken, err = j.AnswerQuestion(ctx, found.Run, q.ID(), journal.PersonAnswer{By: out.By, Text: text, Reason: a.reason})
	if errors.Is(err, journal.ErrNoQuestion) && a.question != "" && q.Open() {
		err = a.stale(journals.ShortRun(found.Run)) // it changed since it was found
	}
	if err != nil {
		return answerError(ctx, a, err)
	}
	list, err := j.Questions(ctx, found.Run)
	if err != nil {
		return journals.ReadError(ctx, err)
	}
	for _, q := range list {
		if q.Open() {
			out.Open++
		}
	}
	return con.PrintResult(out, func(w io.Writer) {
		fmt.Fprintf(w, "answered %q as %s", terminal.CleanLine(out.name), terminal.CleanLine(out.By))
		if out.Open > 0 {
			fmt.Fprintf(w, "; %s left in this run", format.Plural(out.Open, "open question"))
		}
		next := a.Command("resume", journals.ShortRun(out.Run))
		switch {
		case out.Taken:
			next = "The run has taken the answer."
		case found.Holder != nil:
			next = "The run has not taken the answer yet. It uses it when it asks, or when it is resumed."
		case found.Command == "":
			next = journals.StartedByProgram
		}
		fmt.Fprintf(w, "\n%s\n", next)
	})
}

// read reads the answer from the arguments and flags: the fields, or a text.
func (a *answerFlags) read(ctx context.Context, con *console.Console, cmd *cobra.Command) (fields map[string]string, err error) {
	given := 0
	for _, is := range []bool{a.hasText, len(a.set) > 0, cmd.Flags().Changed("file")} {
		if is {
			given++
		}
	}
	if given != 1 {
		return nil, exit.Usagef("write the answer as TEXT, with --file, or with --set for each field")
	}
	if len(a.set) > 0 {
		return flags.Pairs("set", "FIELD=VALUE", a.set)
	}
	if a.hasText {
		return nil, nil
	}
	a.text, err = files.ReadText(ctx, con.Stdin, con.WorkDir, "--file", a.file, journal.MaxAnswer)
	return nil, err
}

// answerTo returns the text of the answer to a question.
func (a *answerFlags) answerTo(con *console.Console, q *runstate.Question, fields map[string]string) (string, error) {
	return answerOf(q, a.reason, func(f *form) (string, error) {
		f.readFrom(con.WorkDir)
		if fields != nil {
			return f.set(fields)
		}
		return f.text(a.text)
	})
}

// answerOf returns the text of the answer that take takes from the form of a question.
func answerOf(q *runstate.Question, reason string, take func(*form) (string, error)) (string, error) {
	if q.Missing != "" {
		return "", exit.Errorf(exit.KindRuntime, "the form of the question cannot be read: it is %s", q.Missing)
	}
	f, err := newForm(q.Schema)
	if err != nil {
		return "", err
	}
	text, err := take(f)
	if err != nil && q.Schema == record.RefusalForm {
		return "", exit.Errorf(exit.KindValidation, "%q: %s", q.Title, record.RefusedUnseen)
	}
	if err != nil {
		return "", err
	}
	return f.withReason(text, reason)
}

// answerer returns the name of who answers a question.
func (a *answerFlags) answerer(con *console.Console, q *runstate.Question) string {
	name, _ := UserOf(q.Users, cmp.Or(strings.TrimSpace(a.by), con.UserName()))
	return name
}

// UserOf returns the name of somebody as the users of a question have it, and whether it is among them; any name is if there
// are none.
func UserOf(users []string, name string) (string, bool) {
	if same, err := username.Parse(name); err == nil && slices.Contains(users, same) {
		return same, true
	}
	return name, len(users) == 0 || slices.Contains(users, name)
}

// answerError returns the error of an answer that was not stored.
func answerError(ctx context.Context, a *answerFlags, err error) error {
	switch {
	case errors.Is(err, journal.ErrRefused): // it may say why with the others
		return exit.Errorf(exit.KindRuntime, "task %q: %w", a.task, err)
	case errors.Is(err, journal.ErrAnswered), errors.Is(err, journal.ErrNoQuestion):
		return exit.Usagef("task %q: %w", a.task, err)
	case errors.Is(err, record.ErrAnswerer):
		return exit.Usagef("task %q: %w, and --by NAME says who does", a.task, err)
	case errors.Is(err, journal.ErrAnswerForm):
		return exit.Errorf(exit.KindValidation, "task %q: %w", a.task, err)
	}
	return journals.ReadError(ctx, err)
}
