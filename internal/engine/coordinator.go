package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"golang.org/x/sync/errgroup"
)

// A coordinator plans the tasks for a goal and answers the goal from their results.
type coordinator struct {
	run    *runScope
	config *plan.Coordinator
	caps   gate.Capabilities // for this caller
	goal   *plan.Goal
	label  label.Classification // of a plan, and of the texts of its tasks

	// The context of each of its prompts.
	goalText *envelope.Envelope
	roster   *envelope.Envelope
	before   string // the system prompt around the roster
	after    string

	asked      map[StepKind]int // how many steps of each kind were taken
	steps      []Step           // guarded by the lock of the scope
	output     string           // the answer
	synthesis  *envelope.Envelope
	waitsFor   string     // the person who does not approve the plan yet; empty if none has to
	unplanned  *TaskError // why there is no plan
	unanswered *TaskError // why there is no answer
}

// newCoordinator returns the coordinator of a run for a goal, or what is wrong with the two.
func newCoordinator(scope *runScope, goal *plan.Goal) (*coordinator, task.Problems) {
	t := scope.team
	found := t.CheckGoal(goal)
	if len(found) > 0 {
		return nil, found
	}
	c := &coordinator{
		run: scope, config: t.Config.Coordinator, caps: t.Coordinator(&scope.options), goal: goal, asked: map[StepKind]int{},
	}
	c.before, c.after = planning.System(t.Duties(&scope.options))
	var err error
	if c.roster, err = newRoster(t.Members(), scope); err != nil {
		return nil, task.Problems{{Pointer: "/agents", Message: "the roster cannot be shown to the coordinator: " + err.Error(), Err: err}}
	}
	header := envelope.Header{ID: "goal", Producer: handoff.User, Run: scope.id, Classification: goal.Classification, CreatedAt: scope.start}
	if c.goalText, err = envelope.New(header, envelope.Text(goal.Text)); err != nil {
		return nil, task.Problems{{Pointer: "/goal", Message: err.Error(), Err: err}}
	}
	return c, nil
}

// newRoster returns what the coordinator reads of the members.
func newRoster(members []planning.Agent, of *runScope) (*envelope.Envelope, error) {
	manifest, err := planning.Manifest(members)
	if err != nil {
		return nil, err
	}
	header := envelope.Header{ID: "roster", Producer: handoff.User, Run: of.id, Classification: label.Internal, CreatedAt: of.start}
	return envelope.New(header, envelope.Payload{}.WithStructured(manifest))
}

// rosterFor returns the roster for a step. Only to plan, which assigns tasks by name, the coordinator
// reads names that the policy hides.
func rosterFor(c *coordinator, s *step) *envelope.Envelope {
	if s.layout != brief.Synthesis || !s.call.by.Rules.HidesIdentity() {
		return c.roster
	}
	members := c.run.team.Members()
	for i := range members {
		members[i].Name, members[i].Runtime = s.call.by.Rules.ShownName(members[i].Name), nil // these name agents
	}
	unnamed, err := newRoster(members, c.run)
	if err != nil { // too large, with numbers that are longer than the names
		unnamed, err = newRoster(nil, c.run)
		must(err)
	}
	return unnamed
}

// A step is one prompt to the coordinator.
type step struct {
	call    modelCall
	of      *coordinator
	kind    StepKind
	layout  brief.Layout
	compose func(*brief.Brief, []gate.Sealed) // adds what follows goal and roster
	said    int                               // texts of earlier turns, behind goal and roster
	whole   bool                              // a prompt that is too large is an error
	chunk   int                               // of a digest, from 1
	chunks  int
}

// step prepares a prompt to the coordinator. Each has the goal and the roster
// before what is offered.
func (c *coordinator) step(kind StepKind, layout brief.Layout, text string, offers []gate.Offer, compose func(*brief.Brief, []gate.Sealed)) *step {
	s := &step{of: c, kind: kind, layout: layout, compose: compose}
	c.asked[kind]++
	s.call.existed = c.run.totalBytes
	id := stepID(kind)
	s.call.run, s.call.number, s.call.does, s.call.caps, s.call.bound = c.run, c.run.memo.Counted(id).LastNumber()+c.asked[kind], c.config.Agent, &c.caps, c.caps.Clearance()
	s.call.limits, s.call.by = c.run.team.Limits(c.config.Limits), s.governs(id)
	s.call.task = &task.Task{ID: id, Spec: task.Spec{Title: string(kind), Description: text, Assignee: handoff.Coordinator, Source: provenance.Source{Origin: c.config.Origin}}}
	said := conversationFor(c, kind)
	s.said = len(said)
	s.call.offers = append(make([]gate.Offer, 0, 2+len(said)+len(offers)),
		gate.Offer{Source: gate.Source{Kind: handoff.Goal, Name: "goal"}, Title: "Goal", Envelope: c.goalText},
		gate.Offer{Source: gate.Source{Kind: handoff.Roster, Name: "roster"}, Title: "Team Roster", Envelope: rosterFor(c, s), As: task.Structured})
	s.call.offers = append(append(s.call.offers, said...), offers...)
	return s
}

// stepID returns the ID of the steps of a kind.
func stepID(kind StepKind) task.ID { return task.ID(handoff.Coordinator + "/" + string(kind)) }

// open takes the context through the gate and builds the prompt. After the end of ctx it
// returns an error.
func (s *step) open(ctx context.Context) (prompt.Prompt, error) {
	if ctx.Err() != nil {
		return prompt.Prompt{}, withCause(ctx, ctx.Err())
	}
	if err := s.call.seal(ctx); err != nil {
		return prompt.Prompt{}, err
	}
	c := s.of
	b := brief.Brief{
		Layout: s.layout, Untitled: true, Context: brief.Context{Goal: &s.call.sealed[0], Roster: &s.call.sealed[1], Conversation: s.call.sealed[2 : 2+s.said]}, GoalParams: c.goal.Source.Params,
		System: c.before, SystemParams: c.config.SystemParams, SystemOrigin: c.config.Origin.String(), Guidance: c.after,
		Whole: s.whole, Part: s.chunk, Parts: s.chunks,
	}
	if s.compose != nil {
		s.compose(&b, s.call.sealed[2+s.said:])
	}
	return s.call.build(&b)
}

func (s *step) started() *Outbox { return nil }

func (s *step) ended(context.Context) {}

// consult makes steps, as many at once as the run may, and returns when all
// have ended.
func (c *coordinator) consult(ctx context.Context, steps ...*step) {
	var g errgroup.Group
	g.SetLimit(max(c.run.options.MaxConcurrency, 1))
	replaced := make([][]*step, len(steps)) // of each step, those in whose place it was made
	for i, s := range steps {
		g.Go(func() error {
			for s.perform(ctx) {
				before := *s
				replaced[i] = append(replaced[i], &before)
				s.repeat()
			}
			return nil
		})
	}
	_ = g.Wait() // each step has its own error
	for i, s := range steps {
		for _, before := range replaced[i] {
			c.record(before)
		}
		c.record(s)
	}
}

// perform makes a step, and reports whether it must be made again because of another policy.
func (s *step) perform(ctx context.Context) (again bool) {
	c := s.of
	s.call.start = time.Now()
	s.call.began = s.call.start
	c.run.steering.await(ctx)
	of, end := c.run.steering.beginStep(ctx, &s.call, handoff.Coordinator)
	perform(of, &s.call, s)
	if end() {
		s.call.failure = failure{err: ErrPolicyReplaced, code: codes.PolicyReplaced, message: ErrPolicyReplaced.Error()}
		s.call.envelope, s.call.text, s.call.structured = nil, "", ""
		s.call.stream.takeBack()
		return true
	}
	return s.call.recalls && errors.Is(s.call.err, ErrPolicyReplaced)
}

// repeat prepares a step to be made again, by the policy that holds now.
func (s *step) repeat() {
	c := s.of
	again := step{of: s.of, kind: s.kind, layout: s.layout, compose: s.compose, whole: s.whole, chunk: s.chunk, chunks: s.chunks}
	again.call.run, again.call.request = s.call.run, s.call.request
	c.run.mu.Lock()
	c.asked[s.kind]++
	again.call.number = c.run.memo.Counted(s.call.task.ID).LastNumber() + c.asked[s.kind]
	c.run.mu.Unlock()
	again.call.by, again.call.recalls = c.run.governed(), false
	for _, o := range s.call.offers {
		o.Translated, o.Title = nil, again.call.by.Rules.JudgeTitle(o.Title, o.Assignee)
		again.call.offers = append(again.call.offers, o)
	}
	again.call.offers[1].Envelope = rosterFor(c, &again)
	if s.call.stream != nil {
		again.call.stream = newStream(&again.call)
	}
	*s = again
}

// governs returns the roster by whose policy a step is made: that of then, for one that an earlier
// process has made.
func (s *step) governs(id task.ID) *plan.Roster {
	c := s.of
	b := c.run.memo.Task(id)
	if b == nil || b.LastAttempt() == nil {
		return c.run.governed()
	}
	by := c.run.find(b.LastAttempt().Policy)
	if by == nil {
		return c.run.governed()
	}
	if c.run.memo.Is(memo.Strict) {
		if t := c.run.find(b.LastAttempt().ReadBy); t != nil {
			c.run.policies.now.Store(t)
		}
		return by
	}
	s.call.recalls = by.Rules != c.run.governed().Rules
	return by
}

// record adds a step to the result. A step whose prompt was too large is left out, since
// its work is done in parts.
func (c *coordinator) record(s *step) {
	if s.split() {
		return
	}
	if s.call.needsJournalEntry() {
		c.run.ledger.note(s.call.journalEntry())
	}
	out := Step{Kind: s.kind, Metrics: Metrics{Start: s.call.began, End: s.call.end, Usage: s.call.shownUsage(), Attempts: 1, Partial: s.call.isPartial()}, Receipt: s.call.receipt}
	out.Repeated, out.Call = s.call.repeated, s.call.visibility().callInfo(s.call.reply.Call)
	if out.Reused, out.Saved = s.call.visibility().savedUsage(s.call.recalled, s.call.own); s.call.own {
		e := s.call.recalled
		out.before = true
		out.Metrics = Metrics{Start: e.Start, End: e.End, Usage: e.Usage(), Attempts: 1, Partial: e.IsPartial()}
	}
	if s.call.err != nil {
		out.Error = c.stepError(s, s.call.code)
		c.run.overdrawn = cmp.Or(c.run.overdrawn, s.call.broke)
	}
	c.run.mu.Lock()
	c.steps = append(c.steps, out)
	c.run.mu.Unlock()
	c.run.warnTruncated(&s.call, "coordinator,", string(s.kind))
	if !s.call.own {
		s.call.showCost()
		c.run.context = c.run.context.Add(s.call.measureContext())
	}
	c.run.count(&s.call)
	c.run.addModelWarnings(&s.call)
}

// split reports whether the prompt of a step was too large to be sent whole.
func (s *step) split() bool {
	return s.whole && s.call.stage != givenPrompt && errors.Is(s.call.err, brief.ErrTooLarge)
}

// stepError words what went wrong with a step, in the form that the caller is cleared for.
func (c *coordinator) stepError(s *step, code string) *TaskError {
	out, err := &TaskError{Code: code, Message: s.call.message, Title: string(s.kind), said: s.call.fault, words: c.run.bus.words()}, s.call.err
	if out.cause = func() error { return err }; s.call.code != code {
		out.Reason = s.call.code
	}
	return out
}
