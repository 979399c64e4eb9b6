package journal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/task"
)

// ErrNoQuestion reports a task that waits for no person.
var ErrNoQuestion = errors.New("it waits for no answer")

// errChanged reports a question in place of which its task asks another one.
var errChanged = fmt.Errorf("%w: it asks something else by now", ErrNoQuestion)

// whyEnded returns the error of an answer to a question whose task has ended.
func whyEnded(q *runstate.Question) error {
	switch {
	case q.Unused:
		return fmt.Errorf("%w: the run does not need it any more", ErrNoQuestion)
	case q.Failed:
		return fmt.Errorf("%w: it failed meanwhile, as at the end of its time", ErrNoQuestion)
	}
	return fmt.Errorf("%w: the question was answered where the run works", ErrNoQuestion)
}

// ErrAnswered reports a question that was answered before. An [*AnsweredError] wraps it.
var ErrAnswered = errors.New("it was answered already")

// An AnsweredError says who answered a question first, and when.
type AnsweredError struct {
	By   string
	Time time.Time
}

func (e *AnsweredError) Error() string {
	return fmt.Sprintf("%v by %s at %s; the first answer counts", ErrAnswered, e.By, e.Time.UTC().Format(time.RFC3339))
}

// Unwrap returns ErrAnswered.
func (e *AnsweredError) Unwrap() error { return ErrAnswered }

// Questions returns what [runstate.State.Questions] does for a run, which is named as for
// [Journal.Find], with the answers that wait until a process takes them. It reads only the
// rows about tasks of people.
func (a *archive) Questions(ctx context.Context, run string) ([]*runstate.Question, error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, err
	}
	return a.questions(ctx, r)
}

func (a *archive) questions(ctx context.Context, r row) ([]*runstate.Question, error) {
	waiting, err := a.waitingAnswers(ctx, r.n, r.id) // first: what is taken meanwhile is in the lines
	if err != nil {
		return nil, err
	}
	ids, err := a.questioned(ctx, r)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	s, err := a.loadTasks(ctx, r, ids...)
	if err != nil {
		return nil, err
	}
	list := runstate.Of(&s.History).Questions()
	for _, q := range list {
		for i := range waiting {
			if w := &waiting[i]; q.Open() && w.Key == q.Key && w.Task == q.Task && w.Missing == "" {
				q.Answer = w
			}
		}
	}
	return list, nil
}

// questioned returns the tasks of a run that a person was asked about.
func (a *archive) questioned(ctx context.Context, r row) (ids []task.ID, err error) {
	d := &decoder{vault: a.vault, run: r.id, stored: &Stored{}}
	if err := a.decodeMarked(ctx, r, d, (*markedRow).hasQuestions); err != nil {
		return nil, err
	}
	for _, q := range runstate.Of(&d.stored.History).Questions() {
		ids = append(ids, q.Task)
	}
	return ids, nil
}

// hasQuestions reports whether a row may have a question to a person.
func (r *markedRow) hasQuestions() (found bool) {
	r.each(func(m mark) { found = found || m == questions })
	return found
}

// question returns the question of a run that is meant, if its task asks it now. Of several, it is one that is
// open.
func (a *archive) question(ctx context.Context, r row, isMeant func(*runstate.Question) bool) (*runstate.Question, error) {
	list, err := a.questions(ctx, r)
	if err != nil {
		return nil, err
	}
	return theQuestion(list, isMeant)
}

// theQuestion returns the question of a list that is meant.
func theQuestion(list []*runstate.Question, isMeant func(*runstate.Question) bool) (*runstate.Question, error) {
	var found *runstate.Question
	for _, q := range list {
		if isMeant(q) && (found == nil || !found.Open() && q.Open()) {
			found = q
		}
	}
	if found == nil {
		return nil, ErrNoQuestion
	}
	return found, nil
}

// Answer leaves the answer to the open question about a task of a run, which is named as for
// [Journal.Find]; answer returns it, and an error keeps the question open. Who, Text, Time and
// Reason are what it sets. The process that works on the run takes the answer, or the next one
// that resumes the run. Answer waits for the former up to [takeWait], and reports whether it took
// the answer. The error wraps [ErrNoQuestion], [ErrAnswered] or, if that process does not take
// it, [ErrRefused]; or [record.ErrAnswerer] if By is none of the users of the question. Of two answers at the same time, one
// is refused.
func (j *Journal) Answer(ctx context.Context, run string, id task.ID, answer func(*runstate.Question) (record.Answer, error)) (taken bool, err error) {
	return j.answer(ctx, run, about(id), answerRules{}, answer)
}

// about returns whether a question is about a task.
func about(id task.ID) func(*runstate.Question) bool {
	return func(q *runstate.Question) bool { return q.Task == id }
}

// answer is [Journal.Answer] for the question that is meant.
func (j *Journal) answer(ctx context.Context, run string, isMeant func(*runstate.Question) bool, rules answerRules, answer func(*runstate.Question) (record.Answer, error)) (taken bool, err error) {
	if err := j.writable(); err != nil {
		return false, j.fail("write", err)
	}
	r, err := j.find(ctx, run)
	if err != nil {
		return false, err
	}
	q, n, err := j.leaveAnswer(ctx, r, isMeant, rules, answer)
	for errors.Is(err, errAskedMeanwhile) {
		first := q.Key
		q, n, err = j.leaveAnswer(ctx, r, func(q *runstate.Question) bool { return isMeant(q) && q.Key == first }, rules, answer)
	}
	switch {
	case errors.Is(err, errCommandWaits):
		return false, j.answeredFirst(ctx, r, isMeant)
	case err != nil:
		return false, err
	}
	if taken, err = (&sentCommand{j, r, n}).awaitTaken(ctx, q); taken || err != nil {
		return taken, err
	}
	_, err = j.Requeue(ctx, r.id) // whoever worked on it may have let go of it
	return false, err
}

// leaveAnswer adds the answer to the question that is meant to the commands of the run, and returns
// the command's number. The error is errAskedMeanwhile if the question may not be the last of its
// task anymore, and errCommandWaits if it has an answer.
func (j *Journal) leaveAnswer(ctx context.Context, r row, isMeant func(*runstate.Question) bool, rules answerRules, answer func(*runstate.Question) (record.Answer, error)) (q *runstate.Question, n int64, err error) {
	seen, _, _, err := j.store.last(ctx, r.n) // first: what is asked meanwhile is in later rows
	if err != nil {
		return nil, 0, j.fail("read", err)
	}
	list, err := j.questions(ctx, r)
	if err == nil {
		q, err = theQuestion(list, isMeant)
	}
	if err != nil {
		return nil, 0, err
	}
	a, err := answerOf(q, answer)
	if err == nil {
		err = rules.check(&r, q, a.By, list)
	}
	if err == nil && j.vault.hides(a.Label) && j.vault.sealer == nil {
		err = fmt.Errorf("%w: the question is above confidential, and without a key the journal can keep no answer to it", ErrNoKey)
	}
	if err != nil {
		return nil, 0, err
	}
	line, err := encodeAnswer(j.vault, r.id, a)
	if err != nil {
		return nil, 0, err
	}
	add := func() (int64, error) {
		return j.store.commands.addAnswer(ctx, r.n, seen, a.Key, line, rules.checkWaiting(j, &r, q, a.By))
	}
	n, err = add()
	if errors.Is(err, errCommandWaits) {
		freed, failed := j.endUnreadable(ctx, r, q)
		switch {
		case failed != nil:
			err = failed
		case freed:
			n, err = add()
		}
	}
	if errors.Is(err, record.ErrAnswerer) {
		return nil, 0, err
	}
	return q, n, j.fail("write", err)
}

// endUnreadable ends the wait of an answer to a question that was altered or is none, so that another
// one can be given. It reports whether there was one.
func (j *Journal) endUnreadable(ctx context.Context, r row, q *runstate.Question) (ended bool, err error) {
	c, err := j.store.commands.answerTo(ctx, r.n, q.Key)
	if c == nil || err != nil {
		return false, err
	}
	a, err := (&decoder{vault: j.vault, run: r.id}).answer(c.line)
	if err == nil && !isForged(a.Missing) && a.Key == q.Key && a.Task == q.Task {
		return false, nil
	}
	return j.store.commands.end(ctx, c.n, "it cannot be read: it is "+ErrAltered.Error())
}

// answeredFirst returns the error of an answer that came second.
func (j *Journal) answeredFirst(ctx context.Context, r row, isMeant func(*runstate.Question) bool) error {
	q, err := j.question(ctx, r, isMeant)
	if err != nil {
		return err
	}
	if q.Answer == nil {
		return ErrAnswered
	}
	return &AnsweredError{q.Answer.By, q.Answer.Time}
}

// answerOf returns the answer to a question, if it is open.
func answerOf(q *runstate.Question, answer func(*runstate.Question) (record.Answer, error)) (*record.Answer, error) {
	switch {
	case q.Answer != nil:
		return nil, &AnsweredError{q.Answer.By, q.Answer.Time}
	case q.Ended:
		return nil, whyEnded(q)
	}
	a, err := answer(q)
	if err == nil {
		err = q.CheckUser(a.By)
	}
	if err != nil {
		return nil, err
	}
	a.Session, a.Task, a.Title, a.Agent, a.Label, a.Key = q.Session, q.Task, q.Title, q.Agent, q.Label, q.Key
	return &a, nil
}
