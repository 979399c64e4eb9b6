package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// runPlan runs a checked plan.
func runPlan(ctx context.Context, p *plan.Plan, o RunOptions, start time.Time) (*Result, error) {
	broken := p.Broken()
	if len(o.Assert) > 0 && o.Turn != nil && o.Answer == nil && len(o.Conversation) == 0 { // later turns read what this one answers
		if later, err := PlanLaterTurn(p, o.Turn.Agent); err == nil {
			broken = later.Broken()
		}
	}
	if len(broken) > 0 {
		return nil, broken
	}
	if found := checkStored(&o); len(found) > 0 {
		return nil, found
	}
	r, err := newPlanRun(ctx, p, o, start)
	if err != nil {
		return nil, err
	}
	if err := r.setPlan(p); err != nil {
		return nil, err
	}
	return r.execute(ctx)
}

// newPlanRun prepares a run of a checked plan, with the policies that its earlier processes had.
func newPlanRun(ctx context.Context, p *plan.Plan, o RunOptions, start time.Time) (*run, error) {
	r, err := newRun(p.Roster(), o, start)
	if err != nil {
		return nil, err
	}
	if o.Answer != nil {
		if err := r.answer(ctx, *o.Answer); err != nil {
			return nil, err
		}
	}
	return r, r.restorePolicies()
}

// UsesOf grants all of the inputs.
func UsesOf(inputs []plan.Input) []task.Use {
	uses := make([]task.Use, len(inputs))
	for i, in := range inputs {
		uses[i].Name = in.Name
	}
	return uses
}

// A run is one execution of a plan, or of a goal that becomes one.
type run struct {
	*runScope
	*results                 // without a plan until there is one
	coordinator *coordinator // without a goal if there is none
	answers     bool         // the coordinator answers the goal
	plansOnly   bool         // nothing runs
	restores    bool         // the plan of a stored run is made again
	phase       record.Phase // guarded by the lock of the scope
}

func newRun(t *plan.Roster, o RunOptions, start time.Time) (*run, error) {
	scope, err := newRunScope(t, o, start)
	if err != nil {
		return nil, err
	}
	return &run{runScope: scope, results: &results{runScope: scope}, coordinator: &coordinator{run: scope}}, nil
}

// setPlan sets the plan of the run.
func (r *run) setPlan(p *plan.Plan) error {
	for {
		held := r.governed()
		governed, err := r.govern(p)
		if err != nil {
			return err
		}
		results, err := newResults(r.runScope, governed)
		if err != nil {
			return err
		}
		r.mu.Lock()
		if r.governed() == held {
			r.results = results
			r.mu.Unlock()
			return nil
		}
		r.mu.Unlock() // the policy was replaced meanwhile
	}
}

// execute runs a goal or a plan to its end. An error means that the run could not start.
func (r *run) execute(ctx context.Context) (*Result, error) {
	if err := r.claim(ctx); err != nil {
		return nil, err
	}
	defer r.releaseClaims()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.open(stop)
	if r.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.options.Timeout, fmt.Errorf("%w after %v", ErrTimeout, r.options.Timeout))
		defer cancel()
	}
	r.options.Monitor.Begin(r)
	r.announce()
	if !r.plansOnly {
		r.openMessages()
	}
	if c := r.coordinator; c.goal != nil && r.plan == nil {
		r.planGoal(ctx, c)
	}
	if r.plan != nil && !r.plansOnly {
		r.enter(record.PhaseRunning)
		r.work(ctx)
	}
	if r.answers && !r.plansOnly && r.plan != nil && ctx.Err() == nil && !r.stopped() && !isSuspended(r.tasks) && !r.isLeft(ctx) {
		r.enter(record.PhaseSynthesis)
		r.answerGoal(ctx, r.coordinator)
	}
	r.enter(record.PhaseEnded)
	return r.close(ctx), nil
}

// planGoal turns the goal into a plan.
func (r *run) planGoal(ctx context.Context, c *coordinator) {
	if p := c.shortcut(); p != nil && r.adopt(p) == nil {
		r.answers = false // the result of the task is the answer
		return
	}
	r.enter(record.PhasePlanning)
	c.unplanned = c.decompose(ctx, c.config.Approve != "" && (r.restores || !r.plansOnly), r.adopt)
}

// adopt sets a plan for the goal as the plan of the run.
func (r *run) adopt(p *plan.Plan) error {
	if r.restores {
		resumeFrom(r)
	}
	if err := r.setPlan(p); err != nil {
		return err
	}
	if r.bus.live() {
		list := outlineOf(r.plan)
		r.bus.emit(event.Event{Type: event.PlanReady, Tasks: len(list), Plan: list})
	}
	r.emitPlanWarnings()
	r.prepare()
	return nil
}

// answerGoal has the coordinator answer the goal from the results of the tasks.
func (r *run) answerGoal(ctx context.Context, c *coordinator) {
	memory, err := r.memoryOffers(ctx)
	if err != nil {
		r.warn(err.Error() + ", so the answer was made without it")
	}
	c.synthesize(ctx, r.completedOffers(), r.endedOffers(), memory)
}

// enter sets the phase of the run.
func (r *run) enter(phase record.Phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase = phase
}

// open prepares events, journal and budgets.
func (r *run) open(stop context.CancelCauseFunc) {
	r.bus = newBus(r.subscribers(), r.id, newOwnEndpoints(r.team.EndpointNames(), r.governed().Rules.Words()), r.team.Log)
	if len(r.bus.subs) > 0 {
		r.ledger = newLedger(r.id, r.log, r.bus.publish)
	} else if r.log != nil {
		r.ledger = newLedger(r.id, r.log, nil)
	}
	r.bus.ledger = r.ledger
	r.questions = newQuestions(r.runScope)
	r.deltas = newDeltas(r.options.Stream, r.team.Log)
	r.begin()
	_, r.context = r.memo.Spent()
	r.budgets = newBudgets(r.team, &r.options, r.bus)
	r.budgets.count(plan.PriorCalls(r.memo))
	r.budgets.count(r.options.EarlierCalls)
	r.steering = newSteering(r, stop)
}

// close makes the result, and waits until the run is durable and subscribers have it.
func (r *run) close(ctx context.Context) *Result {
	r.steering.close()
	if err := r.ledger.flush(); err != nil {
		r.journalErr = err
	}
	res := r.result(ctx)
	res.answer, res.calls, res.reads = answerEnvelope(r, res), r.budgets.paid(), r.turnReads
	if res.Status != StatusInterrupted {
		r.ledger.note(r.ending(res))
	}
	if r.options.Reveal {
		r.reveal(res)
	}
	if r.plan != nil {
		r.branches.leaveOut(res)
	}
	if err := r.ledger.flush(); err != nil && res.JournalErr == nil {
		res.JournalErr, res.Status = err, StatusError
	}
	removeAllFiles(ctx, r)
	head, err := r.closeLog(ctx)
	if res.Audit = head; err != nil && res.JournalErr == nil {
		res.JournalErr = err
	}
	r.pending.Wait()
	r.deltas.close()
	r.bus.close() // subscribers may look at the run until here
	r.options.Monitor.End(r)
	return res
}

// announce emits the warnings of the plan, and that the caller sees more than usual, and prepares the tasks.
func (r *run) announce() {
	if r.plan != nil {
		r.emitPlanWarnings()
	}
	if r.options.Reveal {
		r.bus.emit(event.Event{Type: event.Reveal, Problem: event.Problem{Message: "the caller reads up to " + r.options.UserAccepts.String()}})
	}
	if r.plan != nil {
		r.prepare()
	}
}

// emitPlanWarnings emits the warnings of the plan.
func (r *run) emitPlanWarnings() {
	for _, w := range r.plan.Warnings {
		r.bus.emit(event.Event{Type: event.Warning, Problem: event.Problem{Message: w.Error()}})
	}
}

// work runs the plan.
func (r *run) work(ctx context.Context) {
	s := newScheduler(r.results)
	r.mu.Lock()
	skipCanceled(r.results)
	r.steering.begin(s)
	r.mu.Unlock()
	r.steering.applyFirst(ctx)
	s.work(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.steering.begin(nil)
	switch {
	case r.isLeft(ctx):
		return
	case ctx.Err() != nil:
		r.queue.SkipRemaining(func(i int) string { return abortReason(r.queue.Status(i)) }, time.Now())
	case r.overdrawn != notExhausted:
		r.queue.SkipRemaining(func(int) string { return r.overdrawn.skipReason() }, time.Now())
	case r.journalErr != nil:
		r.queue.SkipRemaining(func(int) string { return skippedByJournal }, time.Now())
	default:
		r.fresh.warnUnnamed(r.runScope)
		r.skipUnrepeated()
		keepOpen(r.results)
	}
	for i := range r.tasks {
		settle(r.results, i) // of what ended between two attempts
	}
	if !isSuspended(r.tasks) {
		r.bus.emit(event.Event{Type: event.AllComplete})
	}
}

// warn adds a warning to the result and emits it.
func (r *recorder) warn(text string) {
	r.warnings = append(r.warnings, text)
	r.bus.emit(event.Event{Type: event.Warning, Problem: event.Problem{Message: text}})
}

// Why tasks that had not ended were skipped.
const (
	skippedByAbort     = "Skipped: run aborted."
	interruptedByAbort = "Interrupted: run aborted." // the task had started
	skippedByJournal   = "Skipped: the journal failed."
)

// skipCodes are the codes of those of them that no error of the task has.
var skipCodes = map[string]string{canceledTask: codes.Canceled, skippedByJournal: codes.Journal}

// abortReason returns why a task that had this status is skipped after an abort.
func abortReason(s task.Status) string {
	if s == task.InProgress {
		return interruptedByAbort
	}
	return skippedByAbort
}

// prepare fills in what is known of each task before it runs, and follows the
// queue's cascades.
func (r *results) prepare() {
	g := r.plan.Graph
	links := 0
	for i := range g.Len() {
		links += len(g.Task(i).DependsOn)
	}
	ids := make([]task.ID, 0, links)
	receipts := make([]*prompt.Receipt, g.Len()) // room for one each: most tasks need no second attempt
	tasks := make([]TaskResult, g.Len())
	for i := range tasks {
		t := g.Task(i)
		from := len(ids)
		for _, d := range t.DependsOn {
			ids = append(ids, task.ID(d.Task))
		}
		tasks[i] = TaskResult{
			ID: t.ID, Key: t.Key, Title: t.Title, Description: r.described(i), Assignee: t.Assignee, Role: t.Role,
			Priority: t.Priority, Metadata: r.remarks(t), DependsOn: ids[from:len(ids):len(ids)], Label: r.plan.Labels[i], Receipts: receipts[i : i : i+1],
			Metrics: metricsBefore(r.memo, t.ID),
		}
	}
	r.mu.Lock()
	r.tasks = tasks
	r.mu.Unlock()
	if r.bus.live() || r.plan.Branches != nil {
		for i := range r.tasks {
			if r.queue.Status(i) == task.Pending {
				r.branches.becameReady(*g.Task(i))
			}
		}
		r.queue.On(readyqueue.Ready, r.branches.becameReady)
	}
	r.queue.On(readyqueue.NotNeeded, func(t task.Task) { r.cascaded(t, event.TaskNotNeeded) })
	r.queue.On(readyqueue.Failed, func(t task.Task) { r.cascaded(t, event.Error) })
	r.queue.On(readyqueue.Skipped, func(t task.Task) { r.cascaded(t, event.TaskSkipped) })
}

// ready emits that a task can start as soon as a slot is free.
func (r *results) ready(t task.Task) {
	r.bus.emit(event.Event{Type: event.TaskReady, Task: t.ID, Title: t.Title, Agent: t.Assignee})
}

// described returns the description of a task, unless the task's own text is
// above the caller's clearance. What the coordinator wrote passes the gate as a result
// does.
func (r *results) described(i int) string {
	t := r.plan.Graph.Task(i)
	switch {
	case t.Classification > r.accepts:
		return withheld(t.Classification)
	case r.plannedText(i) != nil:
		text, err := r.shortForUser(r.planned[i], gate.Source{Kind: handoff.Dependency, Name: string(t.ID)}, time.Now())
		if err != nil {
			return withheld(t.Classification)
		}
		return text
	}
	return t.Description
}

// remarks returns the metadata of a task, unless the task's own text is above
// the caller's clearance.
func (r viewer) remarks(t *task.Task) map[string]any {
	if t.Classification > r.accepts {
		return nil
	}
	return t.Metadata
}
