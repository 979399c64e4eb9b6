package serve

import (
	"context"
	"errors"
	"slices"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/people"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/steer"
)

// A steerer sends commands and answers to the runs of a site.
type steerer struct{ *site }

// Steer sends a command; see [inspector.Steerer]. A run of this process gets it directly.
func (s steerer) Steer(ctx context.Context, run string, c steer.Command) (inspector.Taken, error) {
	found, err := journals.Find(ctx, s.j, run)
	if err != nil {
		return inspector.Taken{}, problem(err)
	}
	out := inspector.Taken{Command: c.Kind, By: c.By, Time: s.con.Now(), Waits: c.Kind == steer.Message && found.Holder == nil}
	return out, problem(s.send(ctx, found.Run, c))
}

// send sends a command to a run with an ID.
func (s steerer) send(ctx context.Context, run string, c steer.Command) error {
	err := s.live.monitor(run).Steer(ctx, c)
	if errors.Is(err, steer.ErrNotRunning) { // here
		err = s.j.Steer(ctx, run, c)
	}
	if errors.Is(err, steer.ErrNotRunning) {
		return s.resume(ctx, run, &c)
	}
	return err
}

// resume carries out a command to a run that no process works on: only a run of a served spec can be resumed.
func (s steerer) resume(ctx context.Context, run string, c *steer.Command) error {
	found, err := s.j.Find(ctx, run)
	if err != nil {
		return problem(journals.ReadError(ctx, err))
	}
	ended := found.Status == string(engine.StatusOK) || found.Command == "" || found.Command == journals.ExperimentCommand
	switch {
	case c.Kind != steer.Resume || s.starts == nil || ended:
		return s.notRunning(ctx, run)
	case c.Reason != "":
		return &inspector.Error{Code: inspector.Invalid, Message: "a reason is stored with the end of a pause, and no process works on the run", Hint: "leave it out", Problems: []inspector.Problem{{Pointer: "/reason", Message: "it would not be stored"}}}
	}
	return s.starts.Resume(ctx, run)
}

// notRunning returns the error of a command to a run that no process works on.
func (s steerer) notRunning(ctx context.Context, run string) error {
	found, err := s.j.Find(ctx, run)
	if err != nil {
		return problem(journals.ReadError(ctx, err))
	}
	message, next, err := s.flags.NotRunning(ctx, s.j, &found)
	if err != nil {
		return problem(err)
	}
	return &inspector.Error{Code: inspector.Conflict, Message: message, Hint: next}
}

// Answer answers a question; see [inspector.Steerer].
func (s steerer) Answer(ctx context.Context, run, question string, a inspector.Answer) (taken bool, err error) {
	if run == "" {
		return s.answerAsPerson(ctx, question, a)
	}
	found, err := journals.Find(ctx, s.j, run)
	if err != nil {
		return false, problem(err)
	}
	return s.answer(ctx, s.j, found.Run, question, a)
}

// answerAsPerson answers a question of a run that is not there for the viewer.
func (s steerer) answerAsPerson(ctx context.Context, id string, a inspector.Answer) (taken bool, err error) {
	open, err := s.outside(ctx)
	if err != nil {
		return false, problem(err)
	}
	for i := range open {
		if open[i].ForPerson().ID == id {
			return s.answer(ctx, s.whole, open[i].Run, open[i].ID, a)
		}
	}
	return false, errNoQuestion
}

// errNoQuestion reports a question that is not open.
var errNoQuestion = &inspector.Error{Code: inspector.NotFound, Message: "there is no such question", Hint: "read the open questions again: they may have changed"}

// answer answers a question of a run with an ID.
func (s steerer) answer(ctx context.Context, j *journal.Journal, run, question string, a inspector.Answer) (taken bool, err error) {
	list, err := j.Questions(ctx, run)
	if err != nil {
		return false, problem(journals.ReadError(ctx, err))
	}
	i := slices.IndexFunc(list, func(q *runstate.Question) bool { return q.ID() == question })
	if i < 0 {
		return false, errNoQuestion
	}
	if list[i].Answer != nil {
		by := list[i].Answer
		return false, problem(&journal.AnsweredError{By: by.By, Time: by.Time})
	}
	text, err := people.AnswerText(list[i], a.Fields, a.Text, a.Reason)
	if err != nil {
		return false, problem(err)
	}
	taken, err = j.AnswerQuestion(ctx, run, question, journal.PersonAnswer{By: s.con.UserName(), Text: text, Reason: a.Reason})
	return taken, problem(err)
}
