package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A command to the run that works is checked, made durable, and then takes effect; of several, one
// after the other. It comes from the program, or from another process that left it in the journal.

// pollEvery is how often a run looks for what other processes left in its journal.
const pollEvery = time.Second

// ErrCanceledTask ends the attempt at a task that somebody cancels.
var ErrCanceledTask = errors.New("the task was cancelled")

// ErrInterrupted ends a call of a model or a tool that somebody interrupts. The task goes on.
var ErrInterrupted = errors.New("the call was interrupted")

// errLost ends the calls of a run whose journal cannot be reached, or that another process has.
var errLost = fmt.Errorf("%w: its journal could not be written for too long, or another process works on it", ErrReleased)

// canceledTask is why a task that somebody canceled was skipped. Agents may read it, so the words
// of whoever canceled it are not in it.
const canceledTask = "Skipped: cancelled by the user."

// A steering lets commands into a run. A nil *steering lets none in: nobody could send one.
type steering struct {
	run  *run
	log  record.AnswerLog        // nil if no other process can leave commands
	stop context.CancelCauseFunc // ends the run
	end  context.CancelFunc      // ends the polling; nil if nothing polls
	poll sync.WaitGroup
	left sync.Mutex // held while the commands of other processes are read and applied
	one  sync.Mutex // held while a command takes effect

	// The lock of the run guards these.
	over      bool          // the run takes no more commands
	paused    chan struct{} // closed when the pause ends; nil if there is none
	pausedBy  string
	pausedAt  time.Time        // when the pause began
	pauses    time.Duration    // how long the pauses before lasted
	scheduler *scheduler       // nil unless tasks run
	working   map[int]*attempt // attempts that work or are prefetched, by task
	held      map[*holding]bool
	uncounted map[int]int // by task: attempts that use up no retry
}

// newSteering returns the steering of a run that opens, or nil if nobody can send a command.
func newSteering(r *run, stop context.CancelCauseFunc) *steering {
	log, _ := r.log.(record.AnswerLog)
	if r.plansOnly || log == nil && r.options.Monitor == nil {
		return nil
	}
	s := &steering{run: r, log: log, stop: stop, working: map[int]*attempt{}, uncounted: map[int]int{}, held: map[*holding]bool{}}
	if log != nil {
		var ctx context.Context
		ctx, s.end = context.WithCancel(context.Background())
		s.poll.Go(func() { s.pollLog(ctx) })
	}
	return s
}

// close lets no further command in.
func (s *steering) close() {
	if s == nil {
		return
	}
	if s.end != nil {
		s.end()
		s.poll.Wait()
	}
	s.one.Lock() // a command that takes effect is waited for
	s.run.mu.Lock()
	s.over = true
	s.run.mu.Unlock()
	s.one.Unlock()
	if s.log != nil {
		s.applyLeftCommands(context.Background()) // which refuses what still waits
	}
}

// pollLog looks for commands and answers until ctx ends. If another process may work on the run, it lets go of the run.
func (s *steering) pollLog(ctx context.Context) {
	every := time.NewTicker(pollEvery)
	defer every.Stop()
	var lost <-chan struct{}
	if l, ok := s.log.(record.LeasedLog); ok {
		lost = l.Lost()
	}
	for {
		select {
		case <-lost:
			s.stop(errLost)
			lost = nil
		case <-every.C:
			s.run.questions.look(ctx)
			s.applyLeftCommands(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// applyFirst applies the messages that were left before the run was opened, so that its first tasks have them. Their senders
// do not wait for the outcome, so the run warns of those that were refused.
func (s *steering) applyFirst(ctx context.Context) {
	if s == nil || s.log == nil || !s.log.LeftBefore() {
		return
	}
	for _, c := range s.applyLeftCommands(ctx) {
		s.run.mu.Lock()
		s.run.warn(fmt.Sprintf("a message that %s left for the run was not delivered: %s", cmp.Or(c.By, "an unknown sender"),
			cmp.Or(c.Missing, "no agent of it that may read the message has that name and a task left")))
		s.run.mu.Unlock()
	}
}

// applyLeftCommands applies the commands that other processes left, and returns those that were refused. A journal that
// cannot be read now is read again later.
func (s *steering) applyLeftCommands(ctx context.Context) (denied []*record.LeftCommand) {
	s.left.Lock()
	defer s.left.Unlock()
	list, err := s.log.Commands(ctx)
	for i := range list {
		c := &list[i]
		if who := s.run.team.Config.Unconfined(); c.Missing == "" && (c.Text != "" || c.Policy != nil) && who != "" {
			c.Missing = "agent " + who + " has commands that are not confined, which could write in place of the user"
		}
		why := c.Missing
		if why == "" {
			failed := s.apply(ctx, c)
			if failed == nil || ctx.Err() != nil {
				continue
			}
			why = record.Refusal(failed)
		}
		denied = append(denied, c)
		err = errors.Join(err, s.log.Refuse(ctx, c.Number, why))
	}
	if err != nil && ctx.Err() == nil {
		s.run.team.Log.Warn("commands of other processes could not be read", "error", err)
	}
	return denied
}

// apply makes a command take effect. If the run refuses it, the error wraps [steer.ErrRefused].
func (s *steering) apply(ctx context.Context, c *record.LeftCommand) error {
	if err := c.Check(); err != nil {
		return err
	}
	s.one.Lock()
	defer s.one.Unlock()
	r := s.run
	r.mu.Lock()
	entry, do, b, err := recordCommand(s, c)
	r.mu.Unlock()
	if err != nil {
		return err
	}
	if err := r.ledger.wait(context.WithoutCancel(ctx), b); err != nil { // it takes effect once it is durable
		return fmt.Errorf("%s: %w", c.Kind, errors.Join(ErrJournal, err))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if entry.Policy == nil && (s.over || entry.Task != "" && s.scheduler == nil) {
		return refused("it has ended meanwhile")
	}
	if err := do(); err != nil {
		return fmt.Errorf("%w: %w", steer.ErrRefused, err)
	}
	return nil
}

// recordCommand adds a command to the ledger, and returns what it does once that is durable. A policy holds at once. The
// caller holds the lock of the run.
func recordCommand(s *steering, c *record.LeftCommand) (entry *record.Command, do func() error, b *batch, err error) {
	r := s.run
	if entry, do, err = s.prepare(c); err != nil {
		return nil, nil, nil, err
	}
	b = r.ledger.add(nil, record.Entry{Command: entry})
	if entry.Policy != nil {
		failed := do()
		do = func() error { return failed }
	}
	return entry, do, b, nil
}

// prepare checks a command, and returns what the journal has of it and what it does. The effect
// finds the run as it is then: a task may have ended meanwhile.
func (s *steering) prepare(c *record.LeftCommand) (entry *record.Command, do func() error, err error) {
	r := s.run
	entry = &record.Command{Kind: c.Kind, Agent: c.Agent, By: c.By, Reason: c.Reason, EventReason: r.bus.differing(c.Reason, string(c.Kind)), Time: c.Time, Number: c.Number}
	if c.Number != 0 {
		entry.Taken = time.Now()
	}
	switch {
	case s.over || r.phase == record.PhaseEnded:
		err = refused("it has ended")
	case c.Task != "":
		do, err = s.prepareTask(c, entry)
	case c.Kind == steer.Pause && s.paused != nil:
		err = refused("it is paused already, by %s", s.pausedBy)
	case c.Kind == steer.Pause:
		do = func() error { s.paused, s.pausedBy, s.pausedAt = make(chan struct{}), c.By, time.Now(); return nil }
	case c.Kind == steer.Resume && s.paused == nil:
		err = refused("it is not paused")
	case c.Kind == steer.Resume:
		do = func() error { s.resume(); return nil }
	case c.Kind == steer.Message:
		do, err = s.prepareMessage(c)
	case c.Kind == steer.ReplacePolicy:
		do, err = s.preparePolicy(c, entry)
	default:
		do = func() error { s.stop(&canceledError{by: c.By, reason: c.Reason}); return nil }
	}
	return entry, do, err
}

// refused returns the error of a command that the run refuses.
func refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{steer.ErrRefused}, args...)...)
}

// prepareTask is prepare for a command about one task.
func (s *steering) prepareTask(c *record.LeftCommand, entry *record.Command) (do func() error, err error) {
	i, err := s.find(c.Task)
	if err != nil {
		return nil, err
	}
	t, status := &s.run.tasks[i], s.run.queue.Status(i)
	entry.Task, entry.Title, entry.Agent = t.ID, t.Title, t.Assignee
	switch {
	case c.Kind == steer.Rerun:
		return s.prepareRerun(i)
	case status.Terminal():
		return nil, refused("task %q has ended: %s", t.Title, status)
	case c.Kind == steer.Interrupt:
		return s.prepareInterrupt(c, i)
	}
	return func() error { s.cancelTask(i); return nil }, nil
}

// find returns the task that a command names.
func (s *steering) find(name string) (i int, err error) {
	if s.scheduler == nil {
		return 0, refused("no task runs")
	}
	list := taskNames(s.run.tasks)
	i, known := list.Find(name)
	if !known {
		return 0, refused("%v", list.Unknown(name))
	}
	return i, nil
}

// begin lets commands reach the tasks of a plan, until of is nil. The lock of the run is held.
func (s *steering) begin(of *scheduler) {
	if s != nil {
		s.scheduler = of
	}
}

// resume ends a pause.
func (s *steering) resume() {
	if s.paused != nil {
		close(s.paused)
		s.paused, s.pausedBy = nil, ""
		s.pauses += time.Since(s.pausedAt)
		s.wakeUp()
	}
}

// wakeUp has the scheduler look at what can start now.
func (s *steering) wakeUp() {
	if s.scheduler != nil {
		s.scheduler.wakeUp()
	}
}

// isPaused reports whether nothing may begin. The lock of the run is held.
func (s *steering) isPaused() bool { return s != nil && s.paused != nil }

// pausedFor returns how long the run has been paused so far. The lock of the run is held.
func (s *steering) pausedFor() time.Duration {
	switch {
	case s == nil:
		return 0
	case s.paused != nil:
		return s.pauses + time.Since(s.pausedAt)
	}
	return s.pauses
}

// await returns when the run is not paused, or when ctx ends or the process is drained. It returns how long it has
// waited.
func (s *steering) await(ctx context.Context) (waited time.Duration) {
	if s == nil {
		return 0
	}
	began := time.Now()
	for {
		s.run.mu.Lock()
		paused := s.paused
		s.run.mu.Unlock()
		if paused == nil {
			return waited
		}
		select {
		case <-paused:
		case <-s.run.options.Drain:
			return time.Since(began)
		case <-ctx.Done():
			return time.Since(began)
		}
		waited = time.Since(began)
	}
}

// cancelTask ends a task, unless it has ended meanwhile.
func (s *steering) cancelTask(i int) {
	r := s.run
	if a := s.working[i]; a != nil {
		a.holding.canceled = true
		a.holding.cancel(ErrCanceledTask)
		return
	}
	if r.queue.Status(i).Terminal() {
		return
	}
	if sch := s.scheduler; sch != nil {
		sch.drop(i)
	}
	must(r.queue.Skip(i, canceledTask, time.Now()))
	s.wakeUp()
}

// skipCanceled skips the tasks that somebody canceled before the run was interrupted, unless the
// caller wants them now.
func skipCanceled(r *results) {
	if r.memo == nil {
		return
	}
	for _, t := range r.memo.State.Tasks() {
		if i, known := r.queue.Index(t.ID); known && t.Canceled && !r.fresh.has(t.ID) && !r.queue.Status(i).Terminal() {
			must(r.queue.Skip(i, canceledTask, time.Now()))
		}
	}
}

// prepareRerun is prepare for performing a task again.
func (s *steering) prepareRerun(i int) (do func() error, err error) {
	r := s.run
	t := &r.tasks[i]
	root, ended := r.queue.Root(i)
	switch status := r.queue.Status(i); {
	case status == task.Completed:
		return nil, refused("task %q has completed; cancel the run, and resume it with --fresh", t.Title)
	case status == task.NotNeeded:
		return nil, refused("task %q is not needed", t.Title)
	case !ended && s.working[i] != nil:
		return nil, refused("task %q runs; interrupt it, or cancel it first", t.Title)
	case !ended:
		return nil, refused("task %q has not run yet", t.Title)
	case root != i:
		return nil, refused("task %q ended because of %q; run that one again", t.Title, r.tasks[root].Title)
	}
	if err := readyqueue.CanReopen(r.queue, i); err != nil {
		return nil, refused("%w", err)
	}
	return func() error { return s.reopen(i) }, nil
}

// reopen takes back the end of a task, and of those that ended because of it.
func (s *steering) reopen(i int) error {
	r := s.run
	again, err := readyqueue.Reopen(r.queue, i, time.Now())
	if err != nil {
		return err
	}
	for _, k := range again {
		t := &r.tasks[k]
		t.Status, t.Result, t.Error, t.Call, r.faults[k] = "", "", nil, llm.CallInfo{}, nil
		delete(r.branches.decided, k)
		s.uncounted[k] = made(r.results, k)
	}
	s.wakeUp()
	return nil
}

// A canceledError is the cause of a run that somebody canceled.
type canceledError struct{ by, reason string }

func (e *canceledError) Error() string {
	text := "cancelled by " + e.by
	if e.reason != "" {
		text += ": " + e.reason
	}
	return text
}

// attach has a the attempt that commands about its task end or interrupt. The lock of the run is held.
func (s *steering) attach(ctx context.Context, a *attempt) {
	if a.ctx, a.lasting = ctx, ctx; s != nil {
		h := &holding{by: a.by, pairs: func() [][2]string { return pairsOf(s.run.results, a.index, a.by) }}
		a.ctx, h.cancel = context.WithCancelCause(ctx)
		s.working[a.index], a.holding, s.held[h] = a, h, true
	}
}

// detach ends what attach began, and reports whether somebody has canceled the task of the attempt.
func (s *steering) detach(a *attempt) (canceled bool) {
	canceled = errors.Is(a.err, errRecordedCancel)
	if s == nil {
		return canceled
	}
	canceled = canceled || a.holding.canceled && a.err != nil
	a.holding.cancel(nil)
	delete(s.held, a.holding)
	if s.working[a.index] == a {
		delete(s.working, a.index)
	}
	return canceled
}

// call returns the context of a call of a model or a tool that an interrupt ends. The call has ended
// when end is called.
func (s *steering) call(ctx context.Context, a *attempt) (called context.Context, end func()) {
	if s == nil || a == nil {
		return ctx, func() {}
	}
	a = ofTask(a)
	called, interrupt := context.WithCancelCause(ctx)
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	a.interrupt = interrupt
	return called, func() {
		s.run.mu.Lock()
		a.interrupt = nil
		s.run.mu.Unlock()
		interrupt(nil)
	}
}

// isInterrupted reports whether somebody interrupted a call that ended with an error. ctx is that of
// the attempt.
func isInterrupted(ctx context.Context, err error) bool {
	return errors.Is(err, ErrInterrupted) && ctx.Err() == nil
}
