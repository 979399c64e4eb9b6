package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
)

// ErrJournal reports a journal that failed. What was not durable by then is
// not told, and nothing more is begun.
var ErrJournal = errors.New("the journal of the run failed")

// A ledger writes a run to its journal and emits events once they are durable.
// Batches, and the entries within a batch, have one order. A nil *ledger writes nothing.
//
// A batch holds entries that become durable together. It is open until its last holder
// releases it: the gate decisions about the tasks that a result makes ready become
// durable with that result, and the calls of these tasks wait once. Entries that no call
// waits for join the next batch that one waits for, or are written a moment later.
type ledger struct {
	log     record.Log
	publish func(event.Event)
	broken  chan struct{} // closed with the first error

	mu      sync.Mutex  // guards the rest, and what is said of batches
	waiting []*batch    // not given to the journal yet, in order; the last one takes what comes
	given   *batch      // the last that was given
	moment  *time.Timer // until what nobody waits for is given; nil if it does not run
	err     error       // the first
}

// aMoment is the longest time that an entry waits for others if no call waits for it.
const aMoment = 10 * time.Millisecond

// A batch is what becomes durable at once.
type batch struct {
	entries []record.Entry
	news    []event.Event // for subscribers, once the batch is durable
	holds   int
	wanted  bool          // somebody waits for it, or will
	done    chan struct{} // closed when it is durable, or never will be
	err     error         // why it never will; set before done is closed
}

func newLedger(log record.Log, publish func(event.Event)) *ledger {
	if log == nil {
		return nil
	}
	return &ledger{log: log, publish: publish, broken: make(chan struct{})}
}

// hold opens a batch that waits for its holder, behind all others. What is
// added meanwhile goes there as well.
func (l *ledger) hold() *batch {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.last()
	if b.holds > 0 {
		b = l.next()
	}
	b.holds, b.wanted = 1, true
	return b
}

// join makes one more holder of a batch that is held.
func (l *ledger) join(b *batch) *batch {
	if b != nil {
		l.mu.Lock()
		b.holds++
		l.mu.Unlock()
	}
	return b
}

// release lets a batch go.
func (l *ledger) release(b *batch) {
	if b == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b.holds--
	l.give()
}

// add adds entries to a batch that is held, or to the last one if b is nil,
// and returns the batch to wait for.
func (l *ledger) add(b *batch, entries ...record.Entry) *batch {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b == nil {
		b = l.last()
	}
	b.entries, b.wanted = append(b.entries, entries...), true
	l.give()
	return b
}

// note adds entries that nobody waits for.
func (l *ledger) note(entries ...record.Entry) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.last()
	b.entries = append(b.entries, entries...)
	l.soon()
}

// tell adds an event: to the journal, but for decisions, which the records
// have, and for subscribers once it is durable.
func (l *ledger) tell(e event.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.last()
	b.news = append(b.news, e)
	if e.Type != event.Handed {
		kept := e
		kept.Receipt = nil // the record of the prompt has it
		b.entries = append(b.entries, record.Entry{Event: &kept})
	}
	l.soon()
}

// soon has what nobody waits for given in a moment.
func (l *ledger) soon() {
	if l.moment == nil {
		l.moment = time.AfterFunc(aMoment, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.moment = nil
			l.want()
		})
	}
}

// want has all that was added by now given.
func (l *ledger) want() {
	if n := len(l.waiting); n > 0 {
		l.waiting[n-1].wanted = true
		l.give()
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

// give gives the journal, in order, the batches that are wanted and that
// nobody holds.
func (l *ledger) give() {
	for len(l.waiting) > 0 && l.waiting[0].holds == 0 && l.waiting[0].wanted {
		b := l.waiting[0]
		l.waiting[0] = nil
		l.waiting = l.waiting[1:]
		if len(b.entries)+len(b.news) == 0 {
			close(b.done) // nobody waits for nothing
			continue
		}
		l.given = b
		l.log.Append(b.entries, func(err error) { l.kept(b, err) })
	}
}

// kept takes in that a batch is durable, or why it is not. Batches come in
// their order.
func (l *ledger) kept(b *batch, err error) {
	if err != nil {
		l.mu.Lock()
		if l.err == nil {
			l.err = fmt.Errorf("%w: %w", ErrJournal, err)
			close(l.broken)
		}
		b.err = l.err
		l.mu.Unlock()
	}
	for _, e := range b.news {
		if b.err == nil || bare(e.Type) {
			l.publish(e)
		}
	}
	b.entries, b.news = nil, nil
	close(b.done)
}

// bare reports whether an event may be told though it could not be kept: it
// says how the run comes to its end, and of no result.
func bare(t event.Type) bool {
	switch t {
	case event.TaskSkipped, event.Error, event.Warning, event.AllComplete, event.RunComplete:
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
		return because(ctx, ctx.Err())
	}
}

// latest returns the batch with which all is durable that was added by now; nil
// if there is none.
func (l *ledger) latest() *batch {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.waiting); n > 0 {
		b := l.waiting[n-1]
		l.want()
		return b
	}
	return l.given
}

// tail returns the batch of the entry that was added last, or nil if that entry
// is already durable.
func (l *ledger) tail() *batch {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.waiting); n > 0 {
		return l.waiting[n-1]
	}
	return l.given
}

// flush returns when all that was added is durable, and why it is not.
func (l *ledger) flush() error {
	if l == nil {
		return nil
	}
	if b := l.latest(); b != nil {
		<-b.done
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.moment != nil && len(l.waiting) == 0 {
		l.moment.Stop()
		l.moment = nil
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
