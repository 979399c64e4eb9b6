package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/people"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A steerer sends commands and answers to the runs of a site.
type steerer struct{ *site }

// Steer sends a command; see [inspector.Steerer]. A run of this process gets it directly.
func (s steerer) Steer(ctx context.Context, run string, c steer.Command) (inspector.Taken, error) {
	found, err := journals.Find(ctx, s.j, run)
	if err != nil {
		return inspector.Taken{}, problem(err)
	}
	if c.Task, err = s.taskOf(ctx, found.Run, c.Task); err != nil {
		return inspector.Taken{}, problem(err)
	}
	out := inspector.Taken{Command: c.Kind, By: c.By, Time: s.con.Now()}
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

// withoutInputs returns the error of a run that refuses a policy, without the problems that depend on
// the texts of inputs, for a viewer who may see less than the user of the run.
func (s steerer) withoutInputs(ctx context.Context, run string, err error) error {
	found, is := errors.AsType[task.Problems](err)
	if !is {
		return err
	}
	v, failed := s.viewerOf(ctx, run)
	if failed != nil {
		return failed
	}
	if !v.Narrows() {
		return err
	}
	found = slices.Clone(found)
	for i := range found {
		if p := &found[i]; errors.Is(p, record.ErrInputValue) {
			p.Message, p.Hint = "it does not fit the inputs of the run, which this viewer may not see", "send it from a viewer with the clearance of the user of the run to learn why"
		}
	}
	return fmt.Errorf("%w: %w", steer.ErrRefused, found)
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

// taskOf returns the name of a task for a command. For a viewer who cannot see all names of items, it is the ID
// of a task that the viewer can see.
func (s steerer) taskOf(ctx context.Context, run, name string) (string, error) {
	v, err := s.viewerOf(ctx, run)
	if err != nil || name == "" || !v.Narrows() {
		return name, err
	}
	t, err := journals.TraceFor(ctx, s.j, run, s.accepts)
	if err != nil {
		return "", err
	}
	known, err := t.Find(name)
	return string(known.ID), err
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

// Answer answers a question; see [inspector.Steerer]. A viewer who is not shown a question cannot answer
// it.
func (s steerer) Answer(ctx context.Context, run, question string, a inspector.Answer) (taken bool, err error) {
	found, err := journals.Find(ctx, s.j, run)
	if err != nil {
		return false, problem(err)
	}
	list, err := s.j.Questions(ctx, found.Run)
	if err != nil {
		return false, problem(journals.ReadError(ctx, err))
	}
	i := slices.IndexFunc(list, func(q *journal.Question) bool { return q.ID() == question })
	if i < 0 {
		return false, &inspector.Error{Code: inspector.NotFound, Message: "the run has no such question", Hint: "read the open questions of the run again: they may have changed"}
	}
	v, err := s.viewerOf(ctx, found.Run)
	if err != nil {
		return false, problem(err)
	}
	if v.Hides(list[i].Label) {
		return false, &inspector.Error{Code: inspector.Forbidden, Message: "the question is above the clearance of this viewer", Hint: "start runteam serve with a higher --accepts"}
	}
	if list[i].Answer != nil {
		by := list[i].Answer
		return false, problem(&journal.AnsweredError{By: by.By, Time: by.Time})
	}
	text, err := people.AnswerText(list[i], a.Fields, a.Text, a.Reason)
	if err != nil {
		return false, problem(err)
	}
	taken, err = s.j.AnswerQuestion(ctx, found.Run, question, journal.PersonAnswer{By: s.con.UserName(), Text: text, Reason: a.Reason})
	return taken, problem(err)
}
