package team

import (
	"cmp"
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"
)

// dispatch starts tasks as they become ready and slots free, and settles what
// comes back. It returns when nothing runs and nothing can start: after the
// end of ctx, as soon as what was running has returned.
func (r *run) dispatch(ctx context.Context) {
	c := &crew{run: r, jobs: make(chan *attempt, cap(r.done))}
	defer func() {
		close(c.jobs)
		_ = c.workers.Wait() // attempts report through done; a worker returns no error
		r.timers.stop()
	}()
	ended, failed := ctx.Done(), r.ledger.failed()
	for r.batch = r.ledger.hold(); ; {
		if ctx.Err() == nil && !r.stopped() { // nothing starts after a cancel
			c.fill(ctx)
			r.prepareAhead(func(a *attempt) { c.launch(ctx, a) })
		} else {
			r.forbid()
		}
		r.ledger.release(r.batch) // with what just ended, and the rulings about what it made ready
		r.batch = nil
		if c.busy == 0 && (ctx.Err() != nil || r.stopped() || r.timers.empty()) {
			return
		}
		select {
		case a := <-r.done:
			r.batch = r.ledger.hold()
			c.arrive(ctx, a)
		case <-r.timers.next():
			for _, i := range r.timers.due(time.Now()) {
				r.must(r.queue.RequeueIndex(i, time.Now()))
			}
		case ask := <-r.watch.asks():
			r.answerWith(ask)
		case <-failed:
			failed, r.unkept = nil, cmp.Or(r.unkept, ErrJournal) // which error it was is told at the end
			r.warn("the journal failed: nothing more is begun, and what ended since is told with the result alone")
		case <-ended:
			ended = nil // attempts see it themselves; now only they are waited for
		}
	}
}

// A crew carries out the attempts of a run. Its workers live as long as the run
// does, since a new goroutine for each attempt would grow its stack anew each
// time; there are never more of them than attempts have been under way at once.
type crew struct {
	run     *run
	workers errgroup.Group
	jobs    chan *attempt
	hired   int // workers
	busy    int // attempts that have not come back
	running int // of these, those that hold a slot
}

// launch gives an attempt to a worker.
func (c *crew) launch(ctx context.Context, a *attempt) {
	if c.busy++; c.busy > c.hired {
		c.hired++
		c.workers.Go(func() error {
			for a := range c.jobs {
				perform(ctx, &a.exchange, a)
			}
			return nil
		})
	}
	c.jobs <- a
}

// fill gives the free slots to the best of the ready tasks.
func (c *crew) fill(ctx context.Context) {
	r := c.run
	for c.running < r.options.MaxConcurrency && ctx.Err() == nil {
		i, ok := r.next(c.running)
		if !ok {
			return
		}
		c.running++
		if a := r.ahead[i]; a != nil {
			r.permit(a)
			continue
		}
		a := r.attempt(i)
		r.takeOut(a)
		c.launch(ctx, a)
	}
}

// arrive takes an attempt back.
func (c *crew) arrive(ctx context.Context, a *attempt) {
	r := c.run
	if c.busy--; a.gone {
		c.hired--
	}
	if r.ahead[a.index] != a {
		c.running--
		r.settle(ctx, a)
		return
	}
	delete(r.ahead, a.index)
	if a.unbegun() {
		if errors.Is(a.err, ErrJournal) {
			r.unkept = cmp.Or(r.unkept, a.err)
		}
		r.release(a)
		return
	}
	r.takeOut(a) // it was answered, or refused, before its turn came
	r.settle(ctx, a)
}

// stopped reports whether nothing more is to be begun.
func (r *run) stopped() bool { return r.overdrawn != notExhausted || r.unkept != nil }

// answerWith tells somebody outside how the run stands, once that is durable.
func (r *run) answerWith(ask chan Snapshot) {
	s := r.snapshot()
	if r.ledger == nil {
		ask <- s
		return
	}
	b := r.ledger.latest()
	r.asides.Go(func() {
		if b != nil {
			<-b.done
		}
		ask <- s
	})
}
