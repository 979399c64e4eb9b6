package journals

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/task"
)

// An Outlook is what the answers of people mean for a run that has ended, or waits for them.
type Outlook struct {
	Refused  bool // the run [IsRefused]
	Answered bool // it is suspended, and no question is open any more
}

// FindOutlook returns the outlook of a run.
func FindOutlook(ctx context.Context, j *journal.Journal, s *journal.Summary) (o Outlook, err error) {
	switch s.Status {
	case string(engine.StatusError):
		o.Refused, err = IsRefused(ctx, j, s.Run)
	case string(engine.StatusSuspended):
		list, failed := j.Questions(ctx, s.Run)
		o.Answered, err = !slices.ContainsFunc(list, (*runstate.Question).Open), failed
	}
	return o, err
}

// RefusedByPerson says why no command resumes a run that [IsRefused].
const RefusedByPerson = "refused by a person, which resuming does not change: start a new run"

// IsRefused reports whether a run failed only because a person refused its plan, or what its tasks
// need. The answers count for the run, so one that is resumed fails again.
func IsRefused(ctx context.Context, j *journal.Journal, run string) (bool, error) {
	list, err := j.Questions(ctx, run)
	if err != nil || !slices.ContainsFunc(list, func(q *runstate.Question) bool { return q.Approval != "" }) {
		return false, err
	}
	s, err := j.Load(ctx, run)
	if err != nil || s.History.End == nil || s.History.End.Status != string(engine.StatusError) {
		return false, err
	}
	refused := false
	st := runstate.Of(&s.History)
	for _, t := range st.Planned() {
		if end := st.EndOf(t); end.Status == task.Failed && end.Root == "" && !end.Accepted {
			if !slices.ContainsFunc(list, func(q *runstate.Question) bool { return refuses(q, &end) }) {
				return false, nil // another failure, which a resumed run may not have
			}
			refused = true
		}
	}
	for _, e := range s.History.End.Errors {
		if e.Code != codes.PlanRefused {
			return false, nil
		}
		refused = true
	}
	return refused, nil
}

// refuses reports whether a person refused what a task needs, so that the task failed.
func refuses(q *runstate.Question, t *record.TaskEnd) bool {
	var form struct{ Decision string }
	return q.Task == t.Task && q.Approval != "" && q.Answer != nil && t.Code == gate.CodeWithheld &&
		json.Unmarshal([]byte(q.Answer.Text), &form) == nil && form.Decision == "no"
}
