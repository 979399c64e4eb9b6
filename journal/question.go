package journal

import (
	"context"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// A Question is a question to a person that has no answer yet: for the result of a task, or
// the approval of something.
type Question struct {
	Run      string // its ID
	ID       string // of the question, within the run; it changes with what is shown
	Task     task.ID
	Title    string               // of the task; "Letter[3]#2" is item 3 in round 2
	Name     string               // of an item that has a name, "Letter[Ann]#2"; empty for any other task
	Tool     string               // whose call needs an approval; empty for the result of a task
	Call     string               // the ID of that call, with its turn: "…/turn/2/call_1" in the second
	Approval string               // what else needs one: "plan", or the name of a declassifier
	Agent    string               // the person who is asked
	Users    []string             // names of who may answer; none if anybody may
	Asked    time.Time            // when
	Label    label.Classification // of what the person is shown
	Prompt   string               // the same, without what is above the clearance of the run's user
	Schema   string               // JSON Schema of the answer, with its fields and choices; empty for a text
}

// An Answer is the answer to a [Question].
type Answer struct {
	By     string // who answers; required
	Text   string // JSON if the question has a schema
	Reason string // stored with the answer; may be empty
}

// Questions returns the open questions of all runs that can still use an answer, those of the
// newest run first.
func (j *Journal) Questions(ctx context.Context) ([]Question, error) {
	list, err := j.stored.OpenQuestions(ctx, "")
	if err != nil {
		return nil, err
	}
	open := make([]Question, len(list))
	for i := range list {
		q := &list[i]
		open[i] = Question{q.Run, q.ID, q.Task, q.Title, q.Name, q.Tool, q.Call, q.Approval, q.Agent, q.Users, q.Asked, q.Label, q.Prompt, q.Schema}
	}
	return open, nil
}

// Answer stores the answer to a question, which is named by its Run and ID. The process that works
// on the run looks for answers every second; Answer waits up to five seconds for it, and reports
// whether it took the answer. If no process works on the run, taken is false, and
// [team.Team.Resume] uses the answer.
//
// If ctx ends while it waits, the answer is stored all the same.
//
// The error wraps [ErrNoQuestion], [ErrAnswered], [ErrAnswerForm], [ErrAnswerer], [ErrAnswerRefused] or
// [ErrUnknownRun] where these apply. ErrAnswerForm leaves the question open.
//
// [team.Team.Resume]: https://pkg.go.dev/github.com/runteam/runteam/team#Team.Resume
func (j *Journal) Answer(ctx context.Context, run, question string, a Answer) (taken bool, err error) {
	taken, err = j.stored.AnswerQuestion(ctx, run, question, journal.PersonAnswer{By: a.By, Text: a.Text, Reason: a.Reason})
	if err != nil {
		return false, fmt.Errorf("answer question %q of run %q: %w", question, run, err)
	}
	return taken, nil
}
