package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/readyqueue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/sharedmem"
	"github.com/runteam/runteam/task"
)

// RunTasks checks tasks against a roster, runs them, and returns what became of each.
// An error means that the run could not start.
func RunTasks(ctx context.Context, t *plan.Roster, specs []task.Spec, o Options) (*Result, error) {
	start := time.Now()
	carryBus(t, &o.Options)
	p, err := t.Check(specs, o.Options, start)
	if err != nil {
		return nil, err
	}
	return runPlan(ctx, p, o, start)
}

// runPlan runs a checked plan.
func runPlan(ctx context.Context, p *plan.Plan, o Options, start time.Time) (*Result, error) {
	if broken := p.Broken(); len(broken) > 0 {
		return nil, broken
	}
	if found := o.checkKeeping(); len(found) > 0 {
		return nil, found
	}
	r, err := newRun(p.Roster(), o, start)
	if err != nil {
		return nil, err
	}
	if o.Answer != nil {
		if err := r.answer(ctx, *o.Answer); err != nil {
			return nil, err
		}
	}
	if err := r.follow(p); err != nil {
		return nil, err
	}
	if err := r.claim(ctx); err != nil {
		return nil, err
	}
	defer r.releaseClaims()
	return r.run(ctx), nil
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
	// mu guards what workers and monitors share: phase, queue, tasks, steps, mail
	// and all that [run.settle] changes. No code of the caller runs under it.
	mu sync.Mutex

	team     *plan.Roster
	options  Options
	id       string
	start    time.Time
	log      record.Log       // the run in the journal; nil without one
	ledger   *ledger          // what becomes durable; nil without a journal
	past     *past            // what there was before; nil if nothing was
	fresh    map[task.ID]bool // the tasks that are run anew whatever there was
	batch    *batch           // what becomes durable with what just ended
	asides   sync.WaitGroup   // those who wait for the journal to tell somebody
	unkept   error            // why the journal failed
	bus      *bus
	budgets  *budgets
	limitLog limitLog
	inputs   []*envelope.Envelope // parallel to options.Inputs
	mail     *mail                // nil without messages
	memory   sharedmem.Writer
	recall   *recall // who may read what was written; nil if nobody may
	watch    *watch  // who looks at the run from outside; nil if nobody does

	// Of a plan; nil until there is one.
	plan   *plan.Plan
	queue  *readyqueue.Queue
	tasks  []TaskResult
	faults []*envelope.Envelope // of each task, why it failed by itself
	free   []*attempt           // whose buffers may be used again

	// Of a goal; nil without one.
	goal       *plan.Goal
	council    *council
	planned    []*envelope.Envelope // of each task, its description if that is context, see provenance.go
	asked      map[StepKind]int     // how many steps of each kind were taken
	steps      []Step
	answers    bool               // the coordinator answers the goal
	output     string             // the answer
	synthesis  *envelope.Envelope // the same; nil without a coordinator that answered
	plansOnly  bool               // nothing runs
	unplanned  *TaskError         // why there is no plan
	unanswered *TaskError         // why there is no answer

	phase       Phase
	answered    bool      // a model call was answered
	called      bool      // a model call was made
	recalled    bool      // an answer was there from before
	agentGo     bool      // an agent answered without a model call
	overdrawn   exhausted // which budget had not enough left for a call
	warnings    []string
	warned      map[string]bool // the warnings of model calls among them
	truncations int             // pieces of context that a limit cut
	context     Context         // what was sent, for the receipt at the end
	made        int             // bytes of all results so far
}

func newRun(t *plan.Roster, o Options, start time.Time) (*run, error) {
	r := &run{team: t, options: o, id: o.RunID, start: start, past: pastOf(&o.Options)}
	if r.id == "" {
		r.id = uuid.NewString()
	}
	if r.options.Random == nil {
		r.options.Random = rand.Float64
	}
	r.inputs = make([]*envelope.Envelope, len(o.Inputs))
	for i, in := range o.Inputs {
		h := envelope.Header{ID: plan.InputID(in.Name), Producer: envelope.User, Run: r.id, Classification: in.Classification, CreatedAt: start}
		if in.TTL > 0 {
			h.ExpiresAt = start.Add(in.TTL)
		}
		if in.Envelope != nil {
			h.DerivedFrom, h.Truncated = []envelope.ID{in.Source()}, in.Envelope.Truncated()
			if o.Replay == nil { // a replay reads what its run read
				h.ExpiresAt = envelope.Earliest(h.ExpiresAt, in.Envelope.ExpiresAt())
			}
		}
		e, err := envelope.New(h, envelope.Text(in.Text))
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", in.Name, err)
		}
		r.inputs[i] = e
		r.made += r.sizeOf(e)
	}
	return r, nil
}

// follow makes a plan the run's.
func (r *run) follow(p *plan.Plan) (err error) {
	if r.planned, err = r.plannedTexts(p); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.plan = p
	r.queue = readyqueue.New(p.Graph)
	r.tasks = make([]TaskResult, p.Graph.Len())
	r.faults = make([]*envelope.Envelope, p.Graph.Len())
	for i := range r.team.Config.Agents {
		if n := r.team.Config.Agents[i].MaxParallel; n > 0 {
			r.queue.Limit(r.team.Config.Agents[i].Name, n)
		}
	}
	r.remembering()
	r.refresh()
	r.redeliver()
	return nil
}

// run takes a goal or a plan to its end, and returns the result.
func (r *run) run(ctx context.Context) *Result {
	r.open()
	if r.options.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.options.Timeout, fmt.Errorf("%w after %v", ErrTimeout, r.options.Timeout))
		defer cancel()
	}
	r.watch = r.options.Monitor.begin(r)
	r.opened()
	if !r.plansOnly {
		r.openMail()
	}
	if r.goal != nil && r.plan == nil && !r.shortcut() {
		r.enter(PhasePlanning)
		r.unplanned = r.decompose(ctx)
	}
	if r.plan != nil && !r.plansOnly {
		r.enter(PhaseRunning)
		r.work(ctx)
	}
	if r.answers && !r.plansOnly && r.unplanned == nil && ctx.Err() == nil && r.overdrawn == notExhausted && r.unkept == nil {
		r.enter(PhaseSynthesis)
		r.synthesize(ctx)
	}
	r.enter(PhaseEnded)
	return r.close(ctx)
}

// enter notes how far the run is.
func (r *run) enter(phase Phase) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.phase = phase
}

// open opens what a run needs while it goes on.
func (r *run) open() {
	r.bus = newBus(r.subscribers(), r.id, newOwnEndpoints(r.team.EndpointNames(), r.team.Rules.Words()), r.team.Log)
	r.ledger = newLedger(r.log, r.bus.publish)
	r.bus.ledger = r.ledger
	r.begin()
	_, r.context = r.past.spent()
	r.budgets = newBudgets(r.team, &r.options.Options, r.bus)
	r.budgets.resume(r.past)
}

// close sums the run up, and waits until all of it is durable and told.
func (r *run) close(ctx context.Context) *Result {
	if err := r.ledger.flush(); err != nil {
		r.unkept = err
	}
	res := r.result(ctx)
	r.ledger.note(r.ending(res))
	if r.options.Reveal {
		r.reveal(res)
	}
	ev := event.Event{Type: event.RunComplete, Code: string(res.Status), Duration: res.EndedAt.Sub(res.StartedAt), Rounded: res.rounded()}
	ev.SetUsage(res.Usage)
	r.bus.emit(ev)
	if err := r.ledger.flush(); err != nil && res.Unkept == nil {
		res.Unkept, res.Status = err, StatusError
	}
	head, err := r.closeLog(ctx)
	if res.Audit = head; err != nil && res.Unkept == nil {
		res.Unkept = err
	}
	r.asides.Wait()
	r.bus.close() // subscribers may look at the run until here
	r.watch.end(r)
	return res
}

// opened tells that the run has begun, and what is worth a look before.
func (r *run) opened() {
	r.bus.emit(event.Event{Type: event.RunStart, Tasks: len(r.tasks)})
	if r.plan != nil {
		r.advise()
	}
	if r.options.Reveal {
		r.bus.emit(event.Event{Type: event.Reveal, Message: "the caller reads up to " + r.options.UserAccepts.String()})
	}
	if r.plan != nil {
		r.prepare()
	}
}

// advise tells what is worth a look in the plan.
func (r *run) advise() {
	for _, w := range r.plan.Warnings {
		r.bus.emit(event.Event{Type: event.Warning, Message: w.Error()})
	}
}

// work runs the plan.
func (r *run) work(ctx context.Context) {
	newScheduler(r).work(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case ctx.Err() != nil:
		r.queue.SkipRemaining(skippedByAbort, time.Now())
	case r.overdrawn != notExhausted:
		r.queue.SkipRemaining(r.overdrawn.skipReason(), time.Now())
	case r.unkept != nil:
		r.queue.SkipRemaining(skippedByJournal, time.Now())
	default:
		r.skipUnrepeated()
	}
	for i := range r.tasks {
		r.returnMail(i) // of what ended between two attempts
	}
	r.bus.emit(event.Event{Type: event.AllComplete})
}

// warn notes what the caller should know of a run that goes on.
func (r *run) warn(text string) {
	r.warnings = append(r.warnings, text)
	r.bus.emit(event.Event{Type: event.Warning, Message: text})
}

// Why what had not ended did not run.
const (
	skippedByAbort   = "Skipped: run aborted."
	skippedByJournal = "Skipped: the journal failed."
)

// prepare fills in what is known of each task before it runs, and follows the
// queue's cascades.
func (r *run) prepare() {
	g := r.plan.Graph
	links := 0
	for i := range r.tasks {
		links += len(g.Task(i).DependsOn)
	}
	ids := make([]task.ID, 0, links)
	receipts := make([]*prompt.Receipt, len(r.tasks)) // room for one each: most tasks need no second attempt
	tasks := make([]TaskResult, len(r.tasks))
	for i := range tasks {
		t := g.Task(i)
		from := len(ids)
		for _, d := range t.DependsOn {
			ids = append(ids, task.ID(d.Task))
		}
		tasks[i] = TaskResult{
			ID: t.ID, Key: t.Key, Title: t.Title, Description: r.described(i), Assignee: t.Assignee, Role: t.Role,
			Priority: t.Priority, Metadata: r.remarks(t), DependsOn: ids[from:len(ids):len(ids)], Label: r.plan.Labels[i], Receipts: receipts[i : i : i+1],
			Metrics: r.past.counted(t.ID).metrics(),
		}
	}
	r.mu.Lock()
	r.tasks = tasks
	r.mu.Unlock()
	if r.bus.live() {
		for i := range r.tasks {
			if r.queue.Status(i) == task.Pending {
				r.ready(*g.Task(i))
			}
		}
		r.queue.On(readyqueue.Ready, r.ready)
	}
	r.queue.On(readyqueue.Failed, func(t task.Task) { r.cascaded(t, event.Error) })
	r.queue.On(readyqueue.Skipped, func(t task.Task) { r.cascaded(t, event.TaskSkipped) })
}

// ready tells that a task waits for nothing but a slot.
func (r *run) ready(t task.Task) {
	r.bus.emit(event.Event{Type: event.TaskReady, Task: t.ID, Title: t.Title, Agent: t.Assignee})
}

// described returns the description of a task, unless the task's own text is
// above the caller's clearance. What the coordinator wrote takes the road of a
// result.
func (r *run) described(i int) string {
	t := r.plan.Graph.Task(i)
	switch {
	case t.Classification > r.options.RecordClearance():
		return withheld(t.Classification)
	case r.plannedText(i) != nil:
		text, err := r.shortForUser(r.planned[i], handoff.Source{Kind: handoff.Dependency, Name: string(t.ID)}, time.Now())
		if err != nil {
			return withheld(t.Classification)
		}
		return text
	}
	return t.Description
}

// remarks returns the metadata of a task, unless the task's own text is above
// the caller's clearance.
func (r *run) remarks(t *task.Task) map[string]any {
	if t.Classification > r.options.RecordClearance() {
		return nil
	}
	return t.Metadata
}
