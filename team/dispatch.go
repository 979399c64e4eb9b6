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
//
// Attempts run on workers that live as long as the run does, since a new
// goroutine for each would grow its stack anew each time. There are never more
// of them than attempts have been under way at once.
func (r *run) dispatch(ctx context.Context) {
	var workers errgroup.Group
	jobs := make(chan *attempt, cap(r.done))
	defer func() {
		close(jobs)
		_ = workers.Wait() // attempts report through done; a worker returns no error
		r.timers.stop()
	}()
	hired, busy := 0, 0
	launch := func(a *attempt) {
		if busy++; busy > hired {
			hired++
			workers.Go(func() error {
				for a := range jobs {
					perform(ctx, &a.exchange, a)
				}
				return nil
			})
		}
		jobs <- a
	}
	ended, failed := ctx.Done(), r.ledger.failed()
	r.batch = r.ledger.hold()
	for running := 0; ; {
		for running < r.options.MaxConcurrency && ctx.Err() == nil && !r.stopped() { // nothing starts after a cancel
			i, ok := r.next(running)
			if !ok {
				break
			}
			running++
			if a := r.ahead[i]; a != nil {
				r.permit(a)
				continue
			}
			a := r.attempt(i)
			r.takeOut(a)
			launch(a)
		}
		if ctx.Err() == nil && !r.stopped() {
			r.prepareAhead(launch)
		} else {
			r.forbid()
		}
		r.ledger.release(r.batch) // with what just ended, and the rulings about what it made ready
		r.batch = nil
		if busy == 0 && (ctx.Err() != nil || r.stopped() || r.timers.empty()) {
			return
		}
		select {
		case a := <-r.done:
			if busy--; a.gone {
				hired--
			}
			r.batch = r.ledger.hold()
			if r.ahead[a.index] != a {
				running--
			} else if delete(r.ahead, a.index); a.unbegun() {
				if errors.Is(a.err, ErrJournal) {
					r.unkept = cmp.Or(r.unkept, a.err)
				}
				r.release(a)
				continue
			} else { // it was answered, or refused, before its turn came
				r.takeOut(a)
			}
			r.settle(ctx, a)
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

// stopped reports whether nothing more is to be begun.
func (r *run) stopped() bool { return r.overdrawn || r.unkept != nil }

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
