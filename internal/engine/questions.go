package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// ErrAnswered ends the context in which a person is asked: another process has the answer.
var ErrAnswered = errors.New("the question was answered in another process")

// questions are the open questions of a run to people, and the answers to them that are in the
// journal. It is safe for concurrent use.
type questions struct {
	run *runScope
	log record.AnswerLog // nil without a journal that takes answers

	mu    sync.Mutex
	open  map[record.Key]*question      // by the masked key
	taken map[record.Key]*record.Answer // those that this process has used, the same
}

// A question is one that is asked now.
type question struct {
	arrive context.CancelCauseFunc // ends the asking
	answer *record.Answer          // of another process; nil until it has come
}

// newQuestions returns the questions of a run that opens.
func newQuestions(r *runScope) *questions {
	d := &questions{run: r, open: map[record.Key]*question{}, taken: map[record.Key]*record.Answer{}}
	d.log, _ = r.recorder.log.(record.AnswerLog)
	return d
}

// mask returns a key in the form of the journal.
func (d *questions) mask(key record.Key) record.Key {
	if d.log != nil {
		return d.log.Mask(key)
	}
	return d.run.memo.Mask(key)
}

// given returns the answer that the journal has to a question that is about to be asked: in its
// lines, or waiting. It returns nil if there is none.
func (d *questions) given(ctx context.Context, id task.ID, key record.Key) (*record.Answer, error) {
	return d.of(ctx, id, d.mask(key))
}

// of returns the answer that the journal has to the question with a masked key, or nil.
func (d *questions) of(ctx context.Context, id task.ID, key record.Key) (*record.Answer, error) {
	d.mu.Lock()
	a := cmp.Or(d.taken[key], d.run.memo.Given(key))
	d.mu.Unlock()
	if a != nil && a.Task == id {
		return a, nil
	}
	if d.log == nil {
		return nil, nil
	}
	list, err := d.waiting(ctx)
	switch {
	case err != nil && ctx.Err() != nil: // the run ends, and its journal has not failed
		return nil, withCause(ctx, err)
	case err != nil:
		return nil, errors.Join(ErrJournal, err)
	}
	for i := range list {
		if a := &list[i]; a.Key == key && a.Task == id && a.Missing == "" {
			return a, nil
		}
	}
	return nil, nil
}

// waiting returns the answers that other processes left. It refuses those of people who cannot answer for the person.
func (d *questions) waiting(ctx context.Context) (list []record.Answer, err error) {
	all, err := d.log.Waiting(ctx)
	for i := range all {
		q := record.Question{Agent: all[i].Agent, Users: d.run.team.Find(all[i].Agent).Users()}
		wrong := q.CheckUser(all[i].By)
		if wrong == nil {
			list = append(list, all[i])
		} else if err = d.refuse(ctx, &all[i], wrong.Error()); err != nil {
			return nil, err
		}
	}
	return list, err
}

// take records that an answer of the journal is used, before whatever follows from it.
func (d *questions) take(x *modelCall, a *record.Answer) {
	d.mu.Lock()
	isNew := cmp.Or(d.taken[a.Key], d.run.memo.Given(a.Key)) != a
	d.taken[a.Key] = a
	d.mu.Unlock()
	if isNew {
		d.run.ledger.add(x.batch, record.Entry{Answer: a})
	}
}

// warnChanged warns before an approval is asked for if the last one that its task asked for was
// answered, and is not used: it was about something else.
func (d *questions) warnChanged(ctx context.Context, x *modelCall) error {
	b := d.run.memo.Task(x.task.ID)
	if b == nil || !d.run.memo.Is(memo.Own) || b.Approval == nil || b.Approval.Key == d.mask(x.key) {
		return nil
	}
	old, err := d.of(ctx, x.task.ID, b.Approval.Key)
	d.mu.Lock()
	used := d.taken[b.Approval.Key] != nil
	d.mu.Unlock()
	if old != nil && !used {
		d.run.mu.Lock()
		defer d.run.mu.Unlock()
		d.run.warn(fmt.Sprintf("%q: what has to be approved has changed since %s answered, so %s is asked again", x.about.title, old.By, x.caps.Agent))
	}
	return err
}

// refuse tells the process that left an answer why it is not used.
func (d *questions) refuse(ctx context.Context, a *record.Answer, why string) error {
	if d.log == nil || a.Command == 0 {
		return nil
	}
	if err := d.log.Refuse(context.WithoutCancel(ctx), a.Command, why); err != nil { // its sender waits
		return errors.Join(ErrJournal, err)
	}
	return nil
}

// ask opens a question, which is durable. The context that it returns ends when another process
// has answered it.
func (d *questions) ask(ctx context.Context, key record.Key) (context.Context, *question) {
	ctx, arrive := context.WithCancelCause(ctx)
	q := &question{arrive: arrive}
	if d.log == nil {
		return ctx, q
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[d.mask(key)] = q
	return ctx, q
}

// end closes a question, and returns the answer of another process, if one has come.
func (d *questions) end(key record.Key, q *question) *record.Answer {
	defer q.arrive(nil)
	if d.log == nil {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, d.mask(key))
	return q.answer
}

// look passes on the answers to open questions that other processes left. A journal that cannot be
// read now is read again later.
func (d *questions) look(ctx context.Context) {
	d.mu.Lock()
	none := len(d.open) == 0
	d.mu.Unlock()
	if none {
		return
	}
	list, err := d.waiting(ctx)
	refused := map[*record.Answer]string{}
	d.mu.Lock()
	for i := range list {
		a := &list[i]
		q := d.open[a.Key]
		switch who := d.run.team.Config.Unconfined(); {
		case q == nil || q.answer != nil:
		case who != "":
			refused[a] = "agent " + who + " has commands that are not confined, which could answer in place of the person; answer on the terminal of the run, or once it is suspended"
		case a.Missing != "":
			refused[a] = "it cannot be read: it is " + a.Missing
		default:
			q.answer = a
			q.arrive(ErrAnswered)
		}
	}
	d.mu.Unlock()
	for a, why := range refused {
		err = errors.Join(err, d.refuse(ctx, a, why))
	}
	if err != nil && ctx.Err() == nil {
		d.run.team.Log.Warn("answers of other processes could not be read", "error", err)
	}
}

// isAnswered reports whether the answer of another process has come.
func (d *questions) isAnswered(q *question) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return q != nil && q.answer != nil
}

// notify has arrive called when another process answers an open question. It reports false if one has.
func (d *questions) notify(q *question, arrive context.CancelCauseFunc) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if q.answer != nil {
		return false
	}
	asking := q.arrive
	q.arrive = func(cause error) {
		asking(cause)
		arrive(cause)
	}
	return true
}
