package people

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/runteam/runteam/internal/cli/exit"
	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/task"
)

// minQuestion is the least number of characters that name a question. With fewer of them, the ID of
// another question could begin in the same way by chance.
const minQuestion = 6

// checkQuestion returns an error unless the answer may serve the question: it names this one, or no
// question, which is not enough for an approval.
func (a *answerFlags) checkQuestion(q *runstate.Question, run string) error {
	switch {
	case a.question == "" && q.Approves():
		return exit.Usagef("task %q: an approval is for one question: copy its command, with --question, from %s", a.task, a.Command("questions", run))
	case a.question == "":
		return nil
	case len(a.question) < minQuestion:
		return exit.Usagef("--question %q: write at least %d characters of the ID", a.question, minQuestion)
	case strings.Trim(strings.ToLower(a.question), "0123456789abcdef") != "":
		return exit.Usagef("--question %q: it is not the ID of a question; copy it from %s", a.question, a.Command("questions", run))
	case !a.isMeant(q):
		return a.stale(run)
	}
	return nil
}

// isMeant reports whether the answer names the question.
func (a *answerFlags) isMeant(q *runstate.Question) bool {
	return strings.HasPrefix(q.ID(), strings.ToLower(a.question))
}

// stale returns the error of an answer to a question that is not asked anymore.
func (a *answerFlags) stale(run string) error {
	return exit.Usagef("task %q: the question has changed; see %s", a.task, a.Command("questions", run))
}

// findQuestion returns the last question about the task, and what people know the task by.
func (a *answerFlags) findQuestion(ctx context.Context, j *journal.Journal, run string) (q *runstate.Question, name string, err error) {
	list, err := j.Questions(ctx, run)
	if err != nil {
		return nil, "", journals.ReadError(ctx, err)
	}
	slices.SortStableFunc(list, func(x, y *runstate.Question) int { return cmp.Compare(a.rank(x), a.rank(y)) })
	names := make(naming.TaskList, len(list))
	for i, q := range list {
		names[i] = naming.TaskNames{Title: q.Title, ID: string(q.Task), Name: approvalTitle(q)}
	}
	if i, known := names.Find(a.task); known {
		return list[i], list[i].Title, nil
	}
	known, err := journal.FindTask(ctx, j, run, a.task) // by its key, or by the name of an instance
	if err != nil && !errors.Is(err, task.ErrUnknown) {
		return nil, "", journals.ReadError(ctx, err)
	}
	for _, q := range list {
		if err == nil && q.Task == known.ID {
			return q, cmp.Or(known.Name, known.Title), nil
		}
	}
	if len(list) == 0 && err == nil {
		return nil, "", exit.Usagef("run %s has asked no person", journals.ShortRun(run))
	}
	waiting, failed := j.OpenQuestions(ctx, run)
	if failed != nil {
		return nil, "", journals.ReadError(ctx, failed)
	}
	return nil, "", a.unknown(waiting, known.Title, err)
}

// rank orders questions of tasks with equal names: the one that is meant, open ones, others.
func (a *answerFlags) rank(q *runstate.Question) int {
	switch {
	case a.question != "" && a.isMeant(q):
		return 0
	case q.Open():
		return 1
	}
	return 2
}

// unknown returns the error of a name that no question has.
func (a *answerFlags) unknown(waiting []journal.OpenQuestion, title string, err error) error {
	var open []string
	for i := range waiting {
		open = append(open, cmp.Or(waiting[i].Name, waiting[i].Title))
	}
	hint := "no question is open"
	if len(open) > 0 {
		hint = "those that wait for an answer: " + format.List(open, 5)
	}
	if err != nil {
		if near, ok := naming.Nearest(a.task, open); ok {
			hint = fmt.Sprintf("did you mean %q?", near)
		}
		return &exit.Error{Kind: exit.KindUsage, Err: &naming.UnknownTaskError{Name: a.task, Hint: hint}}
	}
	return exit.Usagef("task %q has asked no person; %s", title, hint)
}

// approvalTitle returns the title in the prompt of a question that approves something; empty for another one.
func approvalTitle(q *runstate.Question) string {
	switch {
	case ApprovesPlan(q.Approval, q.Task):
		return plan.PlanApprovalTitle
	case q.Approves():
		return plan.ApprovalTitle(cmp.Or(q.Tool, q.Approval))
	}
	return ""
}
