package serve

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/people"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/inspector"
	"github.com/runteam/runteam/internal/journal"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/roles"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/steer"
)

// A steerer sends commands to the runs that a guest may steer.
type steerer struct{ *guest }

// Steer sends a command; see [inspector.Steerer]. A run of this process gets it directly.
func (s steerer) Steer(ctx context.Context, run string, c steer.Command) (inspector.Taken, error) {
	out := inspector.Taken{Command: c.Kind, By: c.By, Time: s.con.Now()}
	found, err := s.steerable(ctx, run)
	if err != nil {
		if s.mayUnseen(&c) && isAboutRun(err) {
			return out, s.steerUnseen(ctx, run, c)
		}
		return inspector.Taken{}, problem(err)
	}
	out.Waits = c.Kind == steer.Message && found.Holder == nil
	return out, problem(s.send(ctx, found.Run, c))
}

// isAboutRun reports whether an error is about which runs a guest may see or steer.
func isAboutRun(err error) bool {
	if denied, ok := errors.AsType[*inspector.Error](err); ok {
		return denied.Code == inspector.Forbidden
	}
	_, isAmbiguous := errors.AsType[*journal.AmbiguousRunError](err)
	return isAmbiguous || errors.Is(err, journal.ErrUnknownRun)
}

// steerable returns a run that the guest may steer.
func (g *guest) steerable(ctx context.Context, run string) (journal.Summary, error) {
	found, err := journals.Find(ctx, g.steers, run)
	if err == nil || !errors.Is(err, journal.ErrUnknownRun) {
		return found, err
	}
	if _, seen := journals.Find(ctx, g.j, run); seen == nil {
		return found, &inspector.Error{Code: inspector.Forbidden, Message: "you may see this run, and none of your roles steers it", Hint: "ask whoever runs the server for the role of an operator"}
	}
	return found, err
}

// mayUnseen reports whether the guest may send a command to runs that they may not see.
func (g *guest) mayUnseen(c *steer.Command) bool {
	isOfRun := c.Task == "" && (c.Kind == steer.Pause || c.Kind == steer.Cancel)
	return isOfRun && g.person != "" && g.has(roles.Operator, ofAll)
}

// steerUnseen sends a command to a run that the guest may not see, if there is such a run and it is of one of their specs. The
// guest does not learn whether: only that the journal could not be read.
func (s steerer) steerUnseen(ctx context.Context, run string, c steer.Command) error {
	list, err := s.unseen(ctx)
	if err != nil {
		return problem(err)
	}
	if slices.ContainsFunc(list, func(of unseenRun) bool { return of.Run == run }) {
		c.Reason = "" // which is for who sees the run
		_ = s.sendTo(ctx, s.whole, run, c)
	}
	return nil
}

// send sends a command to a run with an ID.
func (s steerer) send(ctx context.Context, run string, c steer.Command) error {
	err := s.sendTo(ctx, s.steers, run, c)
	for until := time.Now().Add(letGoTime); c.Kind == steer.Resume && errors.Is(err, steer.ErrRefused) && s.hasEnded(ctx, run) && time.Now().Before(until) && pause(ctx, lookTime); {
		err = s.sendTo(ctx, s.steers, run, c) // its process is about to let go of it
	}
	if errors.Is(err, steer.ErrNotRunning) {
		return s.resume(ctx, run, &c)
	}
	return err
}

// letGoTime is how long a resume waits until the process of a run that has ended lets go of it.
const letGoTime = 5 * time.Second

// hasEnded reports whether the journal has the end of a run.
func (s steerer) hasEnded(ctx context.Context, run string) bool {
	found, err := s.steers.Find(ctx, run)
	return err == nil && !found.Ended.IsZero()
}

// sendTo sends a command to a run of a journal, which this or another process works on.
func (s steerer) sendTo(ctx context.Context, j *journal.Journal, run string, c steer.Command) error {
	err := s.live.monitor(run).Steer(ctx, c)
	if errors.Is(err, steer.ErrNotRunning) { // here
		err = j.Steer(ctx, run, c)
	}
	return err
}

// resume carries out a command to a run that no process works on: only a run of a served spec can be resumed.
func (s steerer) resume(ctx context.Context, run string, c *steer.Command) error {
	found, err := s.steers.Find(ctx, run)
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
	return launcher{s.guest, s.starts}.Resume(ctx, run)
}

// notRunning returns the error of a command to a run that no process works on.
func (s steerer) notRunning(ctx context.Context, run string) error {
	found, err := s.steers.Find(ctx, run)
	if err != nil {
		return problem(journals.ReadError(ctx, err))
	}
	message, next, err := s.flags.NotRunning(ctx, s.steers, &found)
	if err != nil {
		return problem(err)
	}
	return &inspector.Error{Code: inspector.Conflict, Message: message, Hint: next}
}

// unseen lists the runs that a guest may pause and cancel without seeing them.
type unseen struct{ *guest }

// An unseenRun is a run that has not ended, as who may not see it may know it, in JSON.
type unseenRun struct {
	Run  string `json:"runId"`
	Spec string `json:"spec"`
	By   string `json:"starter"`
}

// Unseen lists them, the newest first; see [inspector.Unseen].
func (u unseen) Unseen(ctx context.Context) (any, error) {
	list, err := u.guest.unseen(ctx)
	return list, problem(err)
}

func (g *guest) unseen(ctx context.Context) ([]unseenRun, error) {
	seen, err := g.steers.Newest(ctx, "", math.MaxInt)
	if err != nil {
		return nil, journals.ReadError(ctx, err)
	}
	all, err := g.whole.Newest(ctx, "", math.MaxInt)
	if err != nil {
		return nil, journals.ReadError(ctx, err)
	}
	list, known := []unseenRun{}, make(map[string]bool, len(seen))
	for i := range seen {
		known[seen[i].Run] = true
	}
	for i := range all {
		s := &all[i]
		if _, may := g.may(roles.Operator, s.Spec, ofAll); may && s.Ended.IsZero() && !known[s.Run] {
			list = append(list, unseenRun{s.Run, s.Spec, s.Starter})
		}
	}
	return list, nil
}

// An answerer answers questions as the persons as whom a guest may.
type answerer struct{ *guest }

// Answer answers a question; see [inspector.Answerer].
func (s answerer) Answer(ctx context.Context, run, question string, a inspector.Answer) (taken bool, err error) {
	if run == "" {
		return s.answerAsPerson(ctx, question, a)
	}
	found, err := journals.Find(ctx, s.j, run)
	if err != nil {
		return false, problem(err)
	}
	return s.answer(ctx, &found, question, a)
}

// answerAsPerson answers a question of a run that is not there for the guest.
func (s answerer) answerAsPerson(ctx context.Context, id string, a inspector.Answer) (taken bool, err error) {
	open, err := s.outside(ctx)
	if err != nil {
		return false, problem(err)
	}
	for i := range open {
		if open[i].ForPerson().ID == id {
			found, err := s.whole.Find(ctx, open[i].Run)
			if err != nil {
				return false, errNoQuestion
			}
			return s.answer(ctx, &found, open[i].ID, a)
		}
	}
	return false, errNoQuestion
}

// errNoQuestion reports a question that is not open.
var errNoQuestion = &inspector.Error{Code: inspector.NotFound, Message: "there is no such question", Hint: "read the open questions again: they may have changed"}

// answer answers a question of a run, whether the guest may see that or not.
func (s answerer) answer(ctx context.Context, of *journal.Summary, question string, a inspector.Answer) (taken bool, err error) {
	list, err := s.whole.Questions(ctx, of.Run)
	if err != nil {
		return false, problem(journals.ReadError(ctx, err))
	}
	i := slices.IndexFunc(list, func(q *runstate.Question) bool { return q.ID() == question })
	if i < 0 {
		return false, errNoQuestion
	}
	q := list[i]
	answer, err := s.answerAs(of, q.Agent, q.Label)
	if err != nil {
		return false, err
	}
	if q.Answer != nil {
		return false, problem(&journal.AnsweredError{By: q.Answer.By, Time: q.Answer.Time})
	}
	if answer.Text, err = people.AnswerText(q, a.Fields, a.Text, a.Reason); err != nil {
		return false, problem(err)
	}
	answer.Reason = a.Reason
	taken, err = s.whole.AnswerQuestion(ctx, of.Run, question, answer)
	return taken, problem(err)
}

// deny says at each question why the guest may not answer it, if so.
func (s answerer) deny(ctx context.Context, docs []people.QuestionDocument) error {
	for i := range docs {
		d := &docs[i]
		of, err := s.whole.Newest(ctx, d.Run, 1)
		if err == nil && len(of) > 0 {
			var answer journal.PersonAnswer
			if answer, err = s.answerAs(&of[0], d.Agent, d.Label); err == nil {
				err = s.whole.CheckAnswerer(ctx, d.Run, d.ID, answer)
			}
		}
		denied, isDenied := errors.AsType[*inspector.Error](err)
		switch {
		case isDenied:
			d.Denied = denied.Message
		case errors.Is(err, record.ErrAnswerer):
			d.Denied = err.Error()
		case err != nil && !errors.Is(err, journal.ErrUnknownRun) && !errors.Is(err, journal.ErrNoQuestion): // else it is gone
			return journals.ReadError(ctx, err)
		}
	}
	return nil
}

// answerAs returns an answer of the guest as a person of a run, without a text; an error if none of their roles allows it.
func (s answerer) answerAs(of *journal.Summary, person string, level label.Classification) (answer journal.PersonAnswer, err error) {
	accepts, may := s.may(roles.Approver, of.Spec, func(r *roles.Grant) bool { return slices.Contains(r.As, person) })
	if !may || level > accepts {
		return answer, &inspector.Error{Code: inspector.Forbidden, Message: "this is asked of " + person + ", and none of your roles answers as that person", Hint: "ask whoever runs the server for the role of an approver"}
	}
	accepts, self := s.may(roles.Approver, of.Spec, func(r *roles.Grant) bool { return r.Self && slices.Contains(r.As, person) })
	return journal.PersonAnswer{By: s.by, Apart: s.person != "", NotStarter: s.person != "" && (!self || level > accepts)}, nil
}
