package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// A scheduler decides what runs next. It starts tasks as they become ready and
// slots become free, and delays those that wait for a retry.
//
// Its workers do the scheduling: a worker records the end of an attempt under the lock of
// the run and takes the next ready task itself. The goroutine that
// called [scheduler.work] waits for timers, attempts that wait for people, a failed journal and
// the end of the context or of the process.
type scheduler struct {
	run        *results
	limit      int              // attempts at the same time
	timers     timers           // tasks that wait for a retry
	prefetched map[int]*attempt // by task: attempts whose prompt is prepared before a slot is free
	order      *replayOrder     // nil if the order of a replay does not matter

	running     int           // attempts that hold a slot
	busy        int           // attempts that have not ended, including prefetched ones
	begun       []*attempt    // attempts that no worker has yet
	held        []int         // tasks that [scheduler.nextReady] holds back
	slotless    []slotRequest // of children, and of parents of others
	replyWaits  []*turnWait   // of attempts among the busy ones, the oldest first
	personWaits personWaits   // attempts among the busy ones that wait for people
	spare       []*attempt    // attempts that have ended, whose memory later ones use: nothing refers to them any more
	write       *resultWrite  // of the attempt that has just ended; nil if there is none

	workers sync.WaitGroup
	idle    int           // workers that wait for an attempt
	jobs    chan *attempt // attempts for idle workers
	wake    chan struct{} // capacity 1; signals that an attempt waits for a person
	over    chan struct{} // closed when nothing runs and nothing can start
	crash   any           // the panic that ended a worker; nil if none did
}

func newScheduler(r *results) *scheduler {
	slots := min(r.options.MaxConcurrency, r.plan.Graph.Len())
	return &scheduler{
		run: r, limit: slots, order: newReplayOrder(r), timers: newTimers(),
		jobs: make(chan *attempt, 2*slots), // with those that are prefetched
		wake: make(chan struct{}, 1), over: make(chan struct{}),
	}
}

// work runs the tasks of the plan. It returns when nothing runs and nothing can
// start: after the end of ctx, as soon as all running attempts have returned.
func (s *scheduler) work(ctx context.Context) {
	r := s.run
	canceled, failed, drain := ctx.Done(), r.ledger.failed(), r.options.Drain
	r.mu.Lock()
	s.advance(ctx, nil)
	for waiting := true; waiting; {
		r.mu.Unlock()
		select {
		case <-s.over:
			waiting = false
		case <-s.timers.fired():
		case <-s.wake:
		case <-failed:
			failed = nil
		case <-drain:
			drain = nil
		case <-canceled:
			canceled = nil // attempts see it themselves; now only they are waited for
		}
		r.mu.Lock()
		if waiting {
			s.noticeFailure()
			s.advance(ctx, nil)
		}
	}
	r.mu.Unlock()
	s.timers.stop()
	if s.crash != nil {
		panic(s.crash)
	}
	close(s.jobs)
	s.workers.Wait()
}

// noticeFailure stops the run if the journal has failed.
func (s *scheduler) noticeFailure() {
	r := s.run
	select {
	case <-r.ledger.failed():
		if r.journalErr == nil {
			r.journalErr = ErrJournal // the cause is added at the end
			r.warn("the journal failed: no further task starts, and tasks that ended since are in the result alone")
		}
	default:
	}
}

// advance records an attempt that has ended, if there is one, and starts what can start
// now. It returns the attempt that the calling worker is to perform next, or nil. The
// result becomes durable together with the gate decisions of the tasks that it made ready.
func (s *scheduler) advance(ctx context.Context, ended *attempt) (next *attempt) {
	r := s.run
	free := ended != nil && !ended.gone
	r.batch = r.ledger.hold()
	if ended != nil {
		s.endAttempt(ctx, ended)
		if free {
			s.spare = append(s.spare, ended)
		}
	}
	if ended != nil {
		s.releaseHeld()
	}
	for _, i := range s.timers.due() {
		if !r.queue.Status(i).Terminal() { // nobody canceled it meanwhile
			must(r.queue.Requeue(i, time.Now()))
		}
	}
	grantSlots(s) // also after a budget is exhausted: what waits for a slot has begun, and ends by itself
	ending := ctx.Err() != nil || r.stopped() || r.isDraining()
	if !ending {
		r.branches.decide(ctx)
		if !r.steering.isPaused() {
			s.fill(ctx)
			s.prefetch(ctx)
		}
	} else {
		s.forbid()
	}
	r.ledger.release(r.batch)
	r.batch = nil
	for k, a := range s.begun {
		if s.begun[k] = nil; k == 0 && free {
			next = a
			continue
		}
		s.launch(ctx, a)
	}
	s.begun = s.begun[:0]
	if over := ending || s.timers.empty() && (!r.steering.isPaused() || r.queue.IsComplete()); over {
		if s.busy == s.waiting() {
			s.endQuietWaits(ctx)
		}
		if s.busy == 0 {
			s.finish()
		}
	}
	return next
}

// finish ends the wait of [scheduler.work].
func (s *scheduler) finish() {
	select {
	case <-s.over:
	default:
		close(s.over)
	}
}

// fill gives the free slots to the best of the ready tasks.
func (s *scheduler) fill(ctx context.Context) {
	r := s.run
	for s.running < s.limit && ctx.Err() == nil {
		i, ok := s.next()
		if !ok {
			return
		}
		s.running++
		if a := s.prefetched[i]; a != nil {
			s.permit(a)
			continue
		}
		a := s.newAttempt(ctx, i)
		r.takeOut(a, a.start)
		s.busy++
		s.begun = append(s.begun, a)
	}
}

// newAttempt returns the next attempt at a task. It reuses the memory of one that has
// ended, if there is one.
func (s *scheduler) newAttempt(ctx context.Context, i int) *attempt {
	var a *attempt
	if n := len(s.spare); n > 0 {
		a, s.spare = s.spare[n-1], s.spare[:n-1]
	} else {
		a = new(attempt)
	}
	s.run.gather(a, i)
	a.scheduler = s
	s.run.steering.attach(ctx, a)
	return a
}

// drop forgets a task that is not to be started any more.
func (s *scheduler) drop(i int) {
	s.held = slices.DeleteFunc(s.held, func(k int) bool { return k == i })
	s.timers.remove(i)
}

// next returns the task to start next.
func (s *scheduler) next() (i int, ok bool) {
	if s.order != nil {
		return s.order.next(s.run.queue, s.running)
	}
	return s.nextReady()
}

// endAttempt records an attempt that has ended.
func (s *scheduler) endAttempt(ctx context.Context, a *attempt) {
	r := s.run
	s.busy--
	a.canceled = r.steering.detach(a)
	if s.prefetched[a.index] != a {
		if !a.slotless {
			s.running--
		}
	} else {
		delete(s.prefetched, a.index)
		if a.neverStarted() {
			if errors.Is(a.err, ErrJournal) {
				r.journalErr = cmp.Or(r.journalErr, a.err)
			}
			r.tasks[a.index].addReceipts(a)
			if a.canceled {
				must(r.queue.Skip(a.index, canceledTask, time.Now()))
			}
			return
		}
		if a.holding.isReplaced() {
			return // its prompt is built again
		}
		r.takeOut(a, time.Now()) // it was answered, or refused, before its turn came
	}
	if a.holding.isReplaced() {
		revoke(r, a)
	}
	if retry := r.endAttempt(ctx, a); !retry.IsZero() {
		s.timers.add(a.index, retry)
	}
	if a.err == nil {
		s.write = r.memory.remember(&r.tasks[a.index])
	}
}

// launch gives an attempt to an idle worker, or to a new one.
func (s *scheduler) launch(ctx context.Context, a *attempt) {
	if s.idle > 0 {
		s.idle--
		s.jobs <- a
		return
	}
	s.workers.Go(func() { s.perform(ctx, a) })
}

// perform performs attempts until the run is over. A worker lives as long as
// the run, since the stack of a new goroutine for each attempt would have to grow each
// time. An agent can end the goroutine, as a failed assertion of a test
// does; then another worker takes over.
func (s *scheduler) perform(ctx context.Context, a *attempt) {
	defer func() {
		if p := recover(); p != nil { // a bug of ours; the caller's goroutine panics with it
			s.run.mu.Lock()
			defer s.run.mu.Unlock()
			s.crash = p
			s.finish()
		} else if a != nil {
			a.gone = true
			_, _ = s.takeNext(ctx, a)
		}
	}()
	for a != nil {
		perform(a.ctx, &a.modelCall, a)
		next, waits := s.takeNext(ctx, a)
		if a = next; waits {
			a = <-s.jobs
		}
	}
}

// takeNext hands in an attempt that has ended, writes its result to the shared memory, and returns the
// next attempt, or nil; waits says that the worker is to wait for one.
func (s *scheduler) takeNext(ctx context.Context, ended *attempt) (next *attempt, waits bool) {
	gone := ended.gone
	next, write := s.handIn(ctx, ended)
	if write != nil {
		writeResult(ctx, s.run, write)
	}
	if next != nil || gone {
		return next, false
	}
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	if waits = s.idle < cap(s.jobs); waits {
		s.idle++
	}
	return nil, waits
}

// handIn records an attempt that has ended. It returns the next attempt, or nil, and what is to be written
// to the shared memory, or nil.
func (s *scheduler) handIn(ctx context.Context, ended *attempt) (next *attempt, write *resultWrite) {
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	next = s.advance(ctx, ended)
	write, s.write = s.write, nil
	return next, write
}

// stopped reports whether no further task may start.
func (r *tally) stopped() bool { return r.overdrawn != notExhausted || r.journalErr != nil }
