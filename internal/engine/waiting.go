package engine

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/person"
)

// A personTask is what an attempt has that may wait for a person.
type personTask struct {
	scheduler *scheduler // that performs it
	slotless  bool       // it holds no slot; guarded by the lock of the run
	answered  bool       // the journal has the answer
	approver  string     // the person who is asked about a call of a tool; empty if none is
	approves  string     // the tool
}

// A steeredTask is what an attempt has that commands reach.
type steeredTask struct {
	ctx       context.Context         // of the attempt
	lasting   context.Context         // of the run
	holding   *holding                // nil if no command can come
	canceled  bool                    // somebody canceled the task, and the attempt ended because of it
	interrupt context.CancelCauseFunc // ends the call that is being made; nil if none is. Guarded by the lock of the run
	outdated  bool                    // an interrupt came between two calls. Guarded by the lock of the run
}

// waiting returns how many attempts do nothing but wait for people or for replies.
func (s *scheduler) waiting() int { return s.personWaits.len() + len(s.replyWaits) }

// personWaits are the attempts whose persons do not answer now. They wait until another process
// answers, or until nothing else is left to do.
type personWaits struct{ list []personWait }

type personWait struct {
	attempt *attempt
	over    chan struct{} // closed when nothing else is left
}

func (p *personWaits) len() int { return len(p.list) }

// remove removes an attempt, unless it was removed before.
func (p *personWaits) remove(a *attempt) {
	p.list = slices.DeleteFunc(p.list, func(w personWait) bool { return w.attempt == a })
}

// giveUp ends the waits.
func (p *personWaits) giveUp() {
	for _, w := range p.list {
		close(w.over)
	}
	p.list = nil
}

// awaitAnswer asks a person, and returns when that has succeeded, or with the answer that has
// come from another process. A person who does not answer now may do that in another process,
// until the run has nothing else to do: then the error is errLater.
func awaitAnswer(ctx context.Context, a *attempt, key record.Key, ask func(context.Context) error) (given *record.Answer, err error) {
	given, err = a.run.questions.await(ctx, key, func(ctx context.Context) error {
		err := ask(ctx)
		if errors.Is(err, person.ErrLater) && a.run.questions.log != nil {
			err = a.scheduler.park(ctx, a)
		}
		return err
	})
	if given != nil {
		r := a.scheduler.run
		r.mu.Lock()
		defer r.mu.Unlock()
		if readyqueue.Continue(r.queue, a.index, time.Now()) == nil { // it came when the wait had ended for another reason
			r.tasks[a.index].WaitingFor = ""
		}
	}
	return given, err
}

// await asks a person, and returns when that has succeeded, or with the answer that has come from
// another process.
func (d *questions) await(ctx context.Context, key record.Key, ask func(context.Context) error) (given *record.Answer, err error) {
	ctx, q := d.ask(ctx, key)
	defer func() { given = d.end(key, q) }() // also if the function that asks panics
	return nil, ask(ctx)
}

// park waits for the end of ctx, or until the run has nothing else to do.
func (s *scheduler) park(ctx context.Context, a *attempt) error {
	over := make(chan struct{})
	s.run.mu.Lock()
	leaveTo(s.run, a)
	s.personWaits.list = append(s.personWaits.list, personWait{a, over})
	s.run.mu.Unlock()
	s.wakeUp()
	select {
	case <-over:
		return errLater
	case <-ctx.Done():
	}
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	s.personWaits.remove(a)
	if errors.Is(context.Cause(ctx), ErrAnswered) || errors.Is(context.Cause(ctx), ErrPolicyReplaced) || a.task.OnTimeout == "fail" { // it does not wait any more
		s.run.tasks[a.index].WaitingFor = ""
		must(readyqueue.Continue(s.run.queue, a.index, time.Now()))
	}
	return context.Cause(ctx)
}

// freeSlot lets another attempt start in place of a, which continues without a slot.
func (s *scheduler) freeSlot(a *attempt) {
	s.run.mu.Lock()
	a.slotless = true
	s.running--
	grantSlots(s)
	s.run.mu.Unlock()
	s.wakeUp()
}

// takeSlot gives an attempt a slot again. More attempts than there are slots may run then, until
// one of them ends: a conversation cannot wait, since its time limit does not.
func (s *scheduler) takeSlot(a *attempt) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	a.slotless = false
	s.running++
}

// wakeUp has [scheduler.work] start what can start now.
func (s *scheduler) wakeUp() {
	select {
	case s.wake <- struct{}{}:
	default: // it is going to look
	}
}
