package team

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// dispatch starts tasks as they become ready and slots free, and settles what
// comes back. It returns when nothing runs and nothing can start: after the
// end of ctx, as soon as what was running has returned.
//
// Attempts run on workers that live as long as the run does, since a new
// goroutine for each would grow its stack anew each time. There are never more
// of them than attempts have run at once.
func (r *run) dispatch(ctx context.Context) {
	var workers errgroup.Group
	jobs := make(chan *attempt, cap(r.done))
	defer func() {
		close(jobs)
		_ = workers.Wait() // attempts report through done; a worker returns no error
		r.timers.stop()
	}()
	ended := ctx.Done()
	for running, hired := 0, 0; ; {
		for running < r.options.MaxConcurrency && ctx.Err() == nil && !r.overdrawn { // nothing starts after a cancel
			i, ok := r.queue.NextReady()
			if !ok {
				break
			}
			if running++; running > hired {
				hired++
				workers.Go(func() error {
					for a := range jobs {
						perform(ctx, &a.exchange, a)
					}
					return nil
				})
			}
			jobs <- r.attempt(i)
		}
		if running == 0 && (ctx.Err() != nil || r.overdrawn || r.timers.empty()) {
			return
		}
		select {
		case a := <-r.done:
			running--
			if a.gone {
				hired--
			}
			r.settle(ctx, a)
		case <-r.timers.next():
			for _, i := range r.timers.due(time.Now()) {
				r.must(r.queue.RequeueIndex(i, time.Now()))
			}
		case ask := <-r.watch.asks():
			ask <- r.snapshot()
		case <-ended:
			ended = nil // attempts see it themselves; now only they are waited for
		}
	}
}
