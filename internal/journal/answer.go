package journal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// A Question is a question to a person and what became of it.
type Question struct {
	record.Question
	Answer *record.Answer // nil if there is none that can be read
	Ended  bool           // the task has an end that is newer than the question
}

// Open reports whether the question can be answered.
func (q *Question) Open() bool { return q.Answer == nil && !q.Ended }

// ErrNoQuestion reports a task that waits for no person.
var ErrNoQuestion = errors.New("it waits for no answer")

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

// Questions returns the last question of each task of the history that a person was asked
// about, in the order of their tasks' first questions.
func (s *Stored) Questions() (list []*Question) {
	of := map[task.ID]*Question{}
	for i := range s.History.Log {
		switch e := &s.History.Log[i]; {
		case e.Question != nil:
			q := of[e.Question.Task]
			if q == nil {
				q = &Question{}
				of[e.Question.Task] = q
				list = append(list, q)
			}
			if q.Key != e.Question.Key {
				q.Answer = nil
			}
			q.Question, q.Ended = *e.Question, false
		case e.Answer != nil && e.Answer.Missing == "":
			if q := of[e.Answer.Task]; q != nil && q.Key == e.Answer.Key {
				q.Answer = e.Answer
			}
		case e.Exchange != nil && e.Exchange.Part == "":
			if q := of[e.Exchange.Task]; q != nil {
				q.Ended = true
			}
		}
	}
	return list
}

// Questions returns what [Stored.Questions] does for a run, which is named as for
// [Journal.Find]. It reads only the rows about tasks of people.
func (a *archive) Questions(ctx context.Context, run string) ([]*Question, error) {
	r, err := a.find(ctx, run)
	if err != nil {
		return nil, err
	}
	rows, err := a.store.marked(ctx, r.n)
	if err != nil {
		return nil, a.fail("read", err)
	}
	d := &decoder{vault: a.vault, run: r.id, stored: &Stored{}}
	for i := range rows {
		if !rows[i].hasQuestions() {
			continue
		}
		l, err := a.store.batchRow(ctx, rows[i].n, false)
		if err == nil {
			err = d.lines(l.text)
		}
		if err != nil {
			return nil, a.fail("read", err)
		}
	}
	var ids []task.ID
	for _, q := range d.stored.Questions() {
		ids = append(ids, q.Task)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	s, err := a.loadTasks(ctx, r, ids...)
	if err != nil {
		return nil, err
	}
	return s.Questions(), nil
}

// hasQuestions reports whether a row may have a question to a person.
func (r *markedRow) hasQuestions() (found bool) {
	r.each(func(m mark) { found = found || m == questions })
	return found
}

// answerWait is how long [Journal.Answer] waits for a process that works on the run. It is
// long enough for another answer.
const answerWait = time.Second

// Answer stores the answer to the open question about a task of a run, which is named as for
// [Journal.Find]; answer returns it, and an error keeps the question open. Who, Text, Time and
// Reason are what it sets. The error wraps [ErrNoQuestion], [ErrAnswered] or, while another
// process works on the run, [ErrLeased]. Of two answers at the same time, one is refused.
func (j *Journal) Answer(ctx context.Context, run string, id task.ID, answer func(*Question) (record.Answer, error)) error {
	r, s, err := j.reopenToAnswer(ctx, run)
	if err != nil {
		return err
	}
	o := newRequest(r, nil)
	a, err := s.answer(id, answer)
	if err == nil && a.Label > plainLimit && j.vault.sealer == nil {
		err = fmt.Errorf("%w: the question is above confidential, and without a key the journal can keep no answer to it", ErrNoKey)
	}
	if err == nil {
		err = o.add(&record.Entry{Answer: a})
	}
	if err != nil {
		_, closed := r.End(ctx)
		return errors.Join(err, closed)
	}
	o.close = true
	return r.await(ctx, o)
}

// reopenToAnswer opens a run without continuing it, so that its status stays.
func (j *Journal) reopenToAnswer(ctx context.Context, run string) (*Run, *Stored, error) {
	for until := time.Now().Add(answerWait); ; {
		r, s, err := j.reopen(ctx, run, func(context.Context, int64, lease) error { return nil })
		if !errors.Is(err, ErrLeased) || time.Now().After(until) {
			return r, s, err
		}
		if err := wait(ctx, answerWait/20); err != nil {
			return nil, nil, err
		}
	}
}

// answer returns the answer to the open question about a task.
func (s *Stored) answer(id task.ID, answer func(*Question) (record.Answer, error)) (*record.Answer, error) {
	all := s.Questions()
	i := slices.IndexFunc(all, func(q *Question) bool { return q.Task == id })
	if i < 0 {
		return nil, ErrNoQuestion
	}
	q := all[i]
	switch {
	case q.Answer != nil:
		return nil, &AnsweredError{q.Answer.By, q.Answer.Time}
	case q.Ended:
		return nil, ErrNoQuestion
	}
	a, err := answer(q)
	if err != nil {
		return nil, err
	}
	a.Session, a.Task, a.Title, a.Agent, a.Label, a.Key = q.Session, q.Task, q.Title, q.Agent, q.Label, q.Key
	return &a, nil
}
