package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// council is what a run needs to ask its coordinator: who that is for this
// caller, and the goal and the roster as the context that they are.
type council struct {
	of     *plan.Coordinator
	caps   gate.Capabilities
	goal   *envelope.Envelope
	roster *envelope.Envelope
	before string // the system prompt around the roster
	after  string
	label  label.Classification // of a plan, and of the texts of its tasks
}

// convene returns what a run for this goal needs of the coordinator, or what
// is wrong with the two.
func convene(t *plan.Roster, goal *plan.Goal, o *plan.Options, run string, start time.Time) (*council, task.Problems) {
	found := t.CheckGoal(goal)
	if len(found) > 0 {
		return nil, found
	}
	add := func(pointer, message, hint string, err error) {
		found = append(found, task.Problem{Pointer: pointer, Message: message, Hint: hint, Err: err})
	}
	k := &council{of: t.Config.Coordinator, caps: t.Coordinator(o)}
	k.before, k.after = planning.System(t.Duties(o))
	manifest, err := planning.Manifest(t.Members())
	if err != nil {
		add("/agents", "the roster cannot be told to the coordinator: "+err.Error(), "", err)
		return nil, found
	}
	k.goal, err = envelope.New(envelope.Header{ID: "goal", Producer: envelope.User, Run: run, Classification: goal.Classification, CreatedAt: start}, envelope.Text(goal.Text))
	if err == nil {
		k.roster, err = envelope.New(envelope.Header{ID: "roster", Producer: envelope.User, Run: run, CreatedAt: start}, envelope.Payload{}.WithStructured(manifest))
	}
	if err != nil {
		add("/goal", err.Error(), "", err)
		return nil, found
	}
	return k, nil
}

// A step is one prompt to the coordinator.
type step struct {
	exchange
	kind    StepKind
	layout  prompt.Layout
	compose func(*prompt.Brief, []gate.Sealed) // what stands behind goal and roster
	whole   bool                               // a prompt that is too large is an error
	part    int
	parts   int
}

// step prepares a prompt to the coordinator. Each has the goal and the roster
// before what is offered.
func (r *run) step(kind StepKind, layout prompt.Layout, text string, offers []gate.Offer, compose func(*prompt.Brief, []gate.Sealed)) *step {
	k := r.council
	s := &step{kind: kind, layout: layout, compose: compose}
	r.asked[kind]++
	s.existed = r.made
	id := task.ID(handoff.Coordinator + "/" + string(kind))
	s.run, s.number, s.does, s.caps, s.bound = r, r.past.counted(id).number+r.asked[kind], k.of.Agent, &k.caps, k.caps.Clearance()
	s.limits = r.team.Limits(k.of.MaxContextBytes, k.of.MaxPromptBytes)
	s.task = &task.Task{ID: id, Spec: task.Spec{Title: string(kind), Description: text, Assignee: handoff.Coordinator, Origin: k.of.Origin}}
	s.offers = append(make([]gate.Offer, 0, 2+len(offers)),
		gate.Offer{Source: handoff.Source{Kind: handoff.Goal, Name: "goal"}, Title: "Goal", Envelope: k.goal},
		gate.Offer{Source: handoff.Source{Kind: handoff.Roster, Name: "roster"}, Title: "Team Roster", Envelope: k.roster, As: task.Structured})
	s.offers = append(s.offers, offers...)
	return s
}

// open takes the context through the gate and builds the prompt. Nothing is
// asked after the end of ctx.
func (s *step) open(ctx context.Context) (prompt.Prompt, error) {
	if ctx.Err() != nil {
		return prompt.Prompt{}, because(ctx, ctx.Err())
	}
	if err := s.seal(ctx); err != nil {
		return prompt.Prompt{}, err
	}
	k := s.run.council
	b := prompt.Brief{
		Layout: s.layout, Untitled: true, Context: prompt.Context{Goal: &s.sealed[0], Roster: &s.sealed[1]}, GoalParams: s.run.goal.Params,
		System: k.before, SystemParams: k.of.SystemParams, SystemOrigin: k.of.Origin.String(), Guidance: k.after,
		Whole: s.whole, Part: s.part, Parts: s.parts,
	}
	if s.compose != nil {
		s.compose(&b, s.sealed[2:])
	}
	return s.build(&b)
}

func (s *step) begun() *Outbox { return nil }

func (s *step) over(context.Context) {}

// rehearse builds the prompt of a step without a model call: what would be
// refused then is known before anything is spent.
func (s *step) rehearse(ctx context.Context, now time.Time) error {
	s.start = now
	_, err := s.open(ctx)
	return err
}

// consult makes steps, as many at once as the run may, and returns when all
// have ended.
func (r *run) consult(ctx context.Context, steps ...*step) {
	var g errgroup.Group
	g.SetLimit(max(r.options.MaxConcurrency, 1))
	for _, s := range steps {
		g.Go(func() error {
			s.start = time.Now()
			s.began = s.start
			perform(ctx, &s.exchange, s)
			return nil
		})
	}
	_ = g.Wait() // a step keeps its own error
	for _, s := range steps {
		r.record(s)
	}
}

// record keeps what the result tells of a step. One whose prompt was too large
// to be sent was not one: its work is done in parts.
func (r *run) record(s *step) {
	if s.split() {
		return
	}
	if s.tells() {
		r.ledger.note(s.entry())
	}
	out := Step{Kind: s.kind, Metrics: Metrics{Start: s.began, End: s.end, Usage: s.usage(), Attempts: 1, Rounded: s.rounds()}, Receipt: s.receipt}
	out.Repeated, out.Call = s.repeated, orZero(s.answeredBy())
	if out.Reused, out.Saved = s.saved(); s.own {
		e := s.recalled
		out.before = true
		out.Metrics = Metrics{Start: e.Start, End: e.End, Usage: e.Usage(), Attempts: 1, Rounded: e.Rounded}
	}
	if s.err != nil {
		out.Error = r.stepError(s, s.code)
		r.overdrawn = cmp.Or(r.overdrawn, s.broke)
	}
	r.mu.Lock()
	r.steps = append(r.steps, out)
	r.mu.Unlock()
	r.warnTruncated("coordinator, "+string(s.kind), &s.exchange)
	if !s.own {
		s.showCost()
		r.context = r.context.Add(s.measured())
	}
	r.count(&s.exchange)
	r.addModelWarnings(&s.exchange)
}

// split reports whether the prompt of a step was too large to be sent whole.
func (s *step) split() bool { return s.whole && !s.asked && errors.Is(s.err, prompt.ErrTooLarge) }

// stepError words what went wrong with a step, in the form that the caller is cleared for.
func (r *run) stepError(s *step, code string) *TaskError {
	out, err := &TaskError{Code: code, Message: s.message, Title: string(s.kind), said: s.fault}, s.err
	if out.cause = func() error { return err }; s.code != code {
		out.Reason = s.code
	}
	return out
}
