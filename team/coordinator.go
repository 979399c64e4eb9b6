package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/synth"
	"github.com/runteam/runteam/task"
)

// checkCoordinator checks what does not depend on a goal.
func (t *Team) checkCoordinator() (found task.Problems) {
	c := t.config.Coordinator
	if c == nil {
		return nil
	}
	add := func(key, message, hint string, err error) {
		found = append(found, task.Problem{Pointer: "/coordinator" + key, Subject: "coordinator", Message: message, Hint: hint, Err: err})
	}
	if err := ready(c.Agent); err != nil {
		add("", err.Error(), noAgentHint(err), err)
		c.Agent = nil // so that nothing more is asked of it
	}
	if c.Accepts != nil && !c.Accepts.Valid() {
		found = append(found, unknownLabel("/coordinator/accepts", "coordinator"))
	}
	return append(found, checkLimits("/coordinator", "coordinator", c.MaxContextBytes, c.MaxPromptBytes)...)
}

// council is what a run needs to ask its coordinator: who that is for this
// caller, and the goal and the roster as the context that they are.
type council struct {
	of     *Coordinator
	caps   handoff.Capabilities
	goal   *envelope.Envelope
	roster *envelope.Envelope
	before string // the system prompt around the roster
	after  string
	label  label.Classification // of a plan, and of the texts of its tasks
}

// describe returns the coordinator as a plan shows it.
func (k *council) describe() *PlannedAgent {
	return &PlannedAgent{
		Name: handoff.Coordinator, Model: k.of.Model, Accepts: k.caps.Accepts, Produces: k.caps.Produces,
		Clearance: k.caps.Clearance(), LeavesTo: leavesTo(&k.caps), Fallback: fallback(&k.caps),
	}
}

// convene returns what a run for this goal needs of the coordinator, or what
// is wrong with the two.
func (t *Team) convene(goal *Goal, o *RunOptions, run string, start time.Time) (*council, task.Problems) {
	c := t.config.Coordinator
	var found task.Problems
	add := func(pointer, message, hint string, err error) {
		found = append(found, task.Problem{Pointer: pointer, Message: message, Hint: hint, Err: err})
	}
	if c == nil {
		add("/coordinator", "a goal needs a coordinator, and this team has none", "set Coordinator with an Agent, for instance agent.New(model, agent.Options{})", ErrNoCoordinator)
	}
	switch text := goal.Text; {
	case strings.TrimSpace(text) == "":
		add("/goal", "the goal is empty", "say what the team is to find out or to make", task.ErrInvalid)
	case !utf8.ValidString(text):
		add("/goal", "the goal is not valid UTF-8", "give a text, or clean it first", task.ErrInvalid)
	case len(text) > handoff.DefaultContextBytes:
		add("/goal", fmt.Sprintf("the goal has %d bytes, at most %d reach the coordinator", len(text), handoff.DefaultContextBytes), "say it shorter, and give long texts as inputs", prompt.ErrTooLarge)
	}
	if line, opener := prompt.GoalOpener(goal.Text); line > 0 {
		found = append(found, task.Problem{
			Pointer: "/goal", Line: line, Message: fmt.Sprintf("a line of the goal begins with %q, as only a prompt's own lines may", opener),
			Hint: "word it differently", Err: task.ErrInvalid,
		})
	}
	if !goal.Classification.Valid() {
		found = append(found, unknownLabel("/goal/classification", ""))
	}
	if len(found) > 0 {
		return nil, found
	}
	k := &council{of: c, caps: t.coordinator(o)}
	k.before, k.after = synth.System(t.duties(o))
	manifest, err := synth.Manifest(t.roster())
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

// coordinator returns the coordinator as the gate sees it in a run.
func (t *Team) coordinator(o *RunOptions) handoff.Capabilities {
	c := t.config.Coordinator
	accepts := *o.UserAccepts
	if c.Accepts != nil {
		accepts = min(accepts, *c.Accepts)
	}
	return handoff.Capabilities{Agent: handoff.Coordinator, Accepts: accepts, Produces: accepts, Endpoints: t.endpoints(c.member())}
}

// member returns what a coordinator says of its endpoints as a member says it.
func (c *Coordinator) member() *Member {
	return &Member{Agent: c.Agent, Endpoint: c.Endpoint, EndpointName: c.EndpointName, FallbackNames: c.FallbackNames}
}

// roster lists the members as the coordinator reads them.
func (t *Team) roster() []synth.Agent {
	list := make([]synth.Agent, len(t.config.Agents))
	for i := range list {
		m := &t.config.Agents[i]
		list[i] = synth.Agent{Name: m.Name, Model: m.Model, Description: m.Description, SystemPrompt: m.SystemPrompt, Capabilities: m.Capabilities}
	}
	return list
}

// duties are what the coordinator's system prompt depends on.
func (t *Team) duties(o *RunOptions) synth.Duties {
	c := t.config.Coordinator
	d := synth.Duties{SystemPrompt: c.SystemPrompt, Instructions: c.Instructions, MayGrant: c.MayGrant}
	if c.MayGrant.Inputs {
		for _, in := range o.Inputs {
			d.Inputs = append(d.Inputs, synth.Input{Name: in.Name, Classification: in.Classification})
		}
	}
	return d
}

// A step is one prompt to the coordinator.
type step struct {
	exchange
	kind    StepKind
	layout  prompt.Layout
	compose func(*prompt.Brief, []handoff.Sealed) // what stands behind goal and roster
	whole   bool                                  // a prompt that is too large is an error
	part    int
	parts   int
}

// step prepares a prompt to the coordinator. Each has the goal and the roster
// before what is offered.
func (r *run) step(kind StepKind, layout prompt.Layout, text string, offers []handoff.Offer, compose func(*prompt.Brief, []handoff.Sealed)) *step {
	k := r.council
	s := &step{kind: kind, layout: layout, compose: compose}
	r.asked[kind]++
	s.existed = r.made
	id := task.ID(handoff.Coordinator + "/" + string(kind))
	s.run, s.number, s.does, s.caps, s.bound = r, r.past.counted(id).number+r.asked[kind], k.of.Agent, &k.caps, k.caps.Clearance()
	s.limits = r.team.limits(k.of.MaxContextBytes, k.of.MaxPromptBytes)
	s.task = &task.Task{ID: id, Title: string(kind), Description: text, Assignee: handoff.Coordinator, Origin: k.of.Origin}
	s.offers = append(make([]handoff.Offer, 0, 2+len(offers)),
		handoff.Offer{Source: handoff.Source{Kind: handoff.Goal, Name: "goal"}, Title: "Goal", Envelope: k.goal},
		handoff.Offer{Source: handoff.Source{Kind: handoff.Roster, Name: "roster"}, Title: "Team Roster", Envelope: k.roster, As: task.Structured})
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
		Layout: s.layout, Untitled: true, Goal: &s.sealed[0], GoalParams: s.run.goal.Params, Roster: &s.sealed[1],
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
// have ended. While they work, the run can be looked at.
func (r *run) consult(ctx context.Context, steps ...*step) {
	ended := make(chan struct{})
	var g errgroup.Group
	g.SetLimit(max(r.options.MaxConcurrency, 1))
	go func() {
		defer close(ended)
		for _, s := range steps {
			g.Go(func() error {
				s.start = time.Now()
				s.began = s.start
				perform(ctx, &s.exchange, s)
				return nil
			})
		}
		_ = g.Wait() // a step keeps its own error
	}()
	for {
		select {
		case <-ended:
			for _, s := range steps {
				r.record(s)
			}
			return
		case ask := <-r.watch.asks():
			r.answerWith(ask)
		}
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
	r.steps = append(r.steps, out)
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
