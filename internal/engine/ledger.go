package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runevents"
	"github.com/runteam/runteam/internal/runstate"
)

// ErrJournal reports a journal that failed. Events that were not durable by then are not
// emitted, and no further task starts.
var ErrJournal = errors.New("the journal of the run failed")

// A ledger writes a run to its journal and emits the events of its entries once they are durable; without a
// journal, at once. Batches, and the entries within a batch, have one order. A nil *ledger takes nothing.
//
// A batch holds entries that become durable together. It is open until its last holder
// releases it: the gate decisions about the tasks that a result makes ready become
// durable with that result, and the calls of these tasks wait once. Entries that no call
// waits for join the next batch that one waits for, or are written a moment later.
type ledger struct {
	log     record.Log // nil without a journal
	publish func(event.Event)
	broken  chan struct{} // closed with the first error

	events  *runevents.Events // used by the caller who submits
	derived []event.Event     // of the batch that is submitted

	mu         sync.Mutex  // guards the rest, and the fields of batches
	waiting    []*batch    // not submitted yet, in order; new entries join the last one
	submitted  *batch      // the last one that was submitted
	submitting bool        // a caller submits, with the lock released
	timer      *time.Timer // until entries that no call waits for are submitted; nil if it does not run
	err        error       // the first
}

// submitDelay is the longest time that an entry waits for others if no call waits for it.
const submitDelay = 10 * time.Millisecond

// A batch is what becomes durable at once.
type batch struct {
	entries []record.Entry
	events  []event.Event // for subscribers, once the batch is durable
	holds   int
	wanted  bool          // a call waits for it, or will
	done    chan struct{} // closed when it is durable, or never will be
	err     error         // why it never will; set before done is closed
}

// newLedger returns the ledger of a run, which passes events on to publish; nil if nobody reads them.
func newLedger(run string, log record.Log, publish func(event.Event)) *ledger {
	l := &ledger{log: log, publish: publish, broken: make(chan struct{})}
	l.events = runevents.New(run, func(e event.Event) {
		if publish != nil {
			l.derived = append(l.derived, e)
		}
	})
	if log != nil && log.History() != nil {
		runstate.Each(log.History(), l.events.Add)
		l.derived = nil // an earlier process emitted them
	}
	return l
}

// stores reports whether there is a journal.
func (l *ledger) stores() bool { return l != nil && l.log != nil }

// emit emits the events of entries that nobody stores.
func (l *ledger) emit(entries []record.Entry) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range entries {
		l.events.Add(&entries[i])
	}
	for _, e := range l.derived {
		l.publish(e)
	}
	l.derived = l.derived[:0]
}

// hold opens a batch that waits for its holder, behind all others. What is
// added meanwhile goes there as well.
func (l *ledger) hold() *batch {
	if !l.stores() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.last()
	if b.holds > 0 || l.submitting && b.wanted { // the latter is about to be submitted
		b = l.next()
	}
	b.holds, b.wanted = 1, true
	return b
}

// join adds a holder to a batch that has one.
func (l *ledger) join(b *batch) *batch {
	if b != nil {
		l.mu.Lock()
		b.holds++
		l.mu.Unlock()
	}
	return b
}

// release ends one hold of a batch.
func (l *ledger) release(b *batch) {
	if b == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.holds--
	l.submit()
}

// add adds entries to a batch that has a holder, or to the last one if b is nil,
// and returns the batch to wait for.
func (l *ledger) add(b *batch, entries ...record.Entry) *batch {
	if !l.stores() {
		l.emit(entries)
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b == nil {
		b = l.last()
	}
	b.entries, b.wanted = append(b.entries, entries...), true
	l.submit()
	return b
}

// note adds entries that no call waits for.
func (l *ledger) note(entries ...record.Entry) {
	if !l.stores() {
		l.emit(entries)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.last()
	b.entries = append(b.entries, entries...)
	l.submitSoon()
}

// submitSoon submits entries that no call waits for after submitDelay.
func (l *ledger) submitSoon() {
	if l.timer == nil {
		l.timer = time.AfterFunc(submitDelay, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.timer = nil
			l.submitAll()
		})
	}
}

// submitAll submits all that was added by now.
func (l *ledger) submitAll() {
	if n := len(l.waiting); n > 0 {
		l.waiting[n-1].wanted = true
		l.submit()
	}
}

// last returns the batch that takes what comes.
func (l *ledger) last() *batch {
	if n := len(l.waiting); n > 0 {
		return l.waiting[n-1]
	}
	return l.next()
}

// next opens a batch.
func (l *ledger) next() *batch {
	b := &batch{done: make(chan struct{})}
	l.waiting = append(l.waiting, b)
	return b
}

// submit passes the journal, in order, the batches that a call waits for and that have no
// holder. The journal encodes a batch in Append, so the lock is released meanwhile: one
// caller submits at a time, also what becomes ready until it is done.
func (l *ledger) submit() {
	if l.submitting {
		return
	}
	l.submitting = true
	defer func() { l.submitting = false }()
	for len(l.waiting) > 0 && l.waiting[0].holds == 0 && l.waiting[0].wanted {
		b := l.waiting[0]
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
		if len(b.entries) == 0 {
			close(b.done) // an empty batch is durable
			continue
		}
		l.submitted = b
		l.mu.Unlock()
		for i := range b.entries {
			l.events.Add(&b.entries[i])
		}
		b.events, l.derived = l.derived, nil
		l.log.Append(b.entries, func(err error) { l.committed(b, err) })
		l.mu.Lock()
	}
}

// committed ends a batch that is durable, or that failed. Batches end in their order.
func (l *ledger) committed(b *batch, err error) {
	if err != nil {
		l.mu.Lock()
		if l.err == nil {
			l.err = fmt.Errorf("%w: %w", ErrJournal, err)
			close(l.broken)
		}
		b.err = l.err
		l.mu.Unlock()
	}
	for _, e := range b.events {
		if b.err == nil || isEmittedUnstored(e.Type) {
			l.publish(e)
		}
	}
	b.entries, b.events = nil, nil
	close(b.done)
}

// isEmittedUnstored reports whether an event is emitted although it could not be stored:
// it says how the run ended, and nothing of a result.
func isEmittedUnstored(t event.Type) bool {
	switch t {
	case event.TaskSkipped, event.TaskNotNeeded, event.Error, event.Warning, event.AllComplete, event.RunComplete:
		return true
	}
	return false
}

// wait returns when a batch is durable.
func (l *ledger) wait(ctx context.Context, b *batch) error {
	if b == nil {
		return nil
	}
	select {
	case <-b.done:
		return b.err
	case <-ctx.Done():
		return withCause(ctx, ctx.Err())
	}
}

// latest returns the batch with which all is durable that was added by now; nil
// if there is none.
func (l *ledger) latest() *batch {
	if !l.stores() {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.waiting); n > 0 {
		b := l.waiting[n-1]
		l.submitAll()
		return b
	}
	return l.submitted
}

// tail returns the batch of the entry that was added last, or nil if that entry
// is already durable.
func (l *ledger) tail() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.waiting); n > 0 {
		return l.waiting[n-1]
	}
	return l.submitted
}

// flush returns when all that was added is durable, and why it is not.
func (l *ledger) flush() error {
	if !l.stores() {
		return nil
	}
	if b := l.latest(); b != nil {
		<-b.done
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.timer != nil && len(l.waiting) == 0 {
		l.timer.Stop()
		l.timer = nil
	}
	return l.err
}

// failed delivers once the journal has failed; it never does without one.
func (l *ledger) failed() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.broken
}
