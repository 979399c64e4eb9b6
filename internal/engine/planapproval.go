package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/planning"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A person can have to approve the plan of the coordinator before its tasks run. The person gets the
// plan as the coordinator wrote it, with the agent of each task, and can answer with an edited one.
// That is checked as the coordinator's is, and the descriptions in it are texts of the person.

// ErrPlanRefused reports a plan that the person who has to approve it refused.
var ErrPlanRefused = errors.New("the plan was refused")

const (
	maxPlans = 3 // that a person may refuse with a reason; the next refusal ends the run
	maxEdits = 3 // of one plan that cannot be run
)

// planForm is the form of an approval of a plan. A script without a reply for it takes the first
// choice, which is therefore "no".
var planForm = parseForm(`{"type":"object","properties":{` +
	`"decision":{"enum":["no","yes","edit"],"description":"May these tasks run? Choose edit to run your own plan instead."},` +
	`"plan":{"type":"array","items":{"type":"object","title":"tasks"},"description":"for edit: the changed plan, as the JSON array that is shown, in one line"},` +
	`"reason":{"type":"string","maxLength":2000,"description":"why; after no, the coordinator reads it and plans again"}},` +
	`"required":["decision"],"additionalProperties":false,` +
	`"if":{"properties":{"decision":{"const":"edit"}}},"then":{"required":["plan"]},"else":{"properties":{"plan":false}}}`)

// IsPlanApproval reports whether a prompt asks a person whether the tasks of a plan may run.
func IsPlanApproval(p prompt.Prompt) bool { return p.Schema() == planForm().String() }

// A planApproval asks a person whether the tasks of a plan may run.
type planApproval struct {
	*approval
	of     *coordinator
	made   *step              // that made the plan
	draft  string             // the plan as the person has to see it
	faults *envelope.Envelope // of the edited plan before; nil if there is none
}

// askPlanApprover asks the person who has to approve a plan. It returns the plan to run, which may be
// an edited one, or the step in which the coordinator makes another one, or why there is none. While
// there is no answer, all of them are nil. Round is how many plans the person has seen, with this one.
func (c *coordinator) askPlanApprover(ctx context.Context, made *step, p *plan.Plan, round int) (approved *plan.Plan, again *step, failed *TaskError) {
	draft, err := planning.Draft(made.call.reply.Text, p.Written)
	must(err) // it was read before
	var faults *envelope.Envelope
	for edit := range maxEdits + 1 {
		q := &planApproval{of: c, made: made, draft: draft, faults: faults}
		v, err := q.askAnew(ctx, round, edit)
		switch {
		case errors.Is(err, errLater):
			return nil, nil, nil
		case err != nil:
			return nil, nil, q.refused(ctx, err)
		case v.Decision == decidedNo:
			again, err = q.replan(v.Reason, round)
			return nil, again, q.refused(ctx, err)
		case v.Decision != decidedEdit:
			return p, nil, nil
		}
		e, err := q.edited(v)
		if err != nil {
			return nil, nil, q.refused(ctx, err)
		}
		edited, found, shown := c.checkPlan(string(v.Plan), e, q.made.call.by)
		missing := unassigned(string(v.Plan), c.planRules())
		found, shown = append(found, missing...), append(shown, missing...)
		switch {
		case len(found) == 0:
			return edited, nil, nil
		case len(shown) == 0, edit == maxEdits: // what depends on an input is for the caller alone
			return nil, nil, q.refused(ctx, fmt.Errorf("%w: %s edited it, and the edited plan cannot be run:\n%s", ErrPlanRefused, c.config.Approve, planning.Faults(found)))
		}
		faults = c.faultsOf(e, shown)
		first, _ := c.run.explain(&q.call, codes.PlanInvalid, planning.Faults(shown))
		c.run.warn(fmt.Sprintf("the edited plan cannot be run: %s; asking %s again", strings.ReplaceAll(strings.TrimPrefix(first, "- "), "\n- ", "; "), c.config.Approve))
	}
	return nil, nil, nil
}

// prepare makes the question about the plan.
func (q *planApproval) prepare(round, edit int) {
	c, from := q.of, q.made.call.envelope
	h := from.Header()
	about := "The coordinator has planned these tasks. May they run? To change them, decide to edit, and give the whole plan in the same form, with the agent of each task."
	if q.faults != nil {
		about = "The plan that you wrote cannot be run, and none of its tasks has started. Below is what is wrong with it, after the coordinator's plan, which yes would run. To run your own, decide to edit again, and give all of it, corrected."
	}
	q.approval = newApproval(c.run, &task.Task{ID: handoff.Coordinator + "/" + task.ID(StepApproval), Spec: task.Spec{
		Title: plan.PlanApprovalTitle, Assignee: c.config.Approve, Classification: h.Classification, Description: about,
	}}, planForm(), approvedThing{title: handoff.Coordinator, what: string(handoff.Plan)})
	q.call.number, q.happens = round, c.planKey(q.draft, round, edit)
	if edit > 0 {
		q.call.part = "/" + strconv.Itoa(edit+1)
	}
	shown, err := envelope.New(envelope.Header{
		ID: "plan/draft", Producer: h.Producer, Run: c.run.id, Classification: h.Classification, Trust: h.Trust, CreatedAt: h.CreatedAt, ExpiresAt: h.ExpiresAt,
		DerivedFrom: []envelope.ID{h.ID},
	}, envelope.Text(q.draft))
	must(err)
	q.call.offers = []gate.Offer{{Source: gate.Source{Kind: handoff.Plan, Name: "plan"}, Title: "plan", Envelope: shown}}
	if q.faults != nil {
		q.call.offers = append(q.call.offers, gate.Offer{Source: gate.Source{Kind: handoff.Fault, Name: "plan"}, Title: "what is wrong with the plan that you wrote", Envelope: q.faults})
	}
}

// planKey returns the key of what would happen: the tasks of this plan, with these agents, their tools,
// their edges and their children, under this policy.
func (c *coordinator) planKey(draft string, round, edit int) record.Key {
	parts := []string{draft, strconv.Itoa(round), strconv.Itoa(edit), c.run.governed().Rules.Digest()}
	for i := range c.run.team.Capabilities {
		may := permittedTo(&c.run.team.Config.Agents[i], &c.run.team.Capabilities[i])
		parts = append(parts, string(may[:]))
	}
	parts = append(parts, reachOf(c.run.team)...)
	return digestOf(parts...)
}

// askAnew prepares and asks the question, again each time that the policy is replaced.
func (q *planApproval) askAnew(ctx context.Context, round, edit int) (v *decision, err error) {
	for again := true; again; {
		q.prepare(round, edit)
		of, end := q.of.run.steering.beginStep(ctx, &q.call, q.call.caps.Agent)
		v, err = q.ask(of)
		again = end()
	}
	return v, err
}

// ask asks the person, who must see all of the plan.
func (q *planApproval) ask(ctx context.Context) (*decision, error) {
	c := q.of
	if err := q.call.seal(ctx); err != nil {
		return nil, fmt.Errorf("%s may not see it, and so cannot approve it: %s", c.config.Approve, refusalOf(err))
	}
	text, err := q.show(brief.Context{Inputs: q.call.sealed})
	if err == nil && q.call.sealed[0].Payload().Text() != q.draft {
		err = fmt.Errorf("%s may not see all of it, and so cannot approve it", c.config.Approve)
	}
	if err != nil {
		return nil, err
	}
	v, err := q.decide(ctx, text, c.run.questions.await)
	out := Step{Kind: StepApproval, Metrics: Metrics{Start: q.call.start, End: time.Now(), Attempts: 1}, Receipt: q.call.receipt}
	if errors.Is(err, errLater) {
		c.waitsFor, out.WaitingFor = c.config.Approve, c.config.Approve
		if c.run.bus.live() {
			ev := q.call.eventOf(event.TaskWaiting)
			ev.Title = handoff.Coordinator
			c.run.bus.emit(ev)
		}
	}
	c.run.mu.Lock()
	defer c.run.mu.Unlock()
	c.steps = append(c.steps, out)
	return v, err
}

// edited returns the plan that the person has written, as the gate takes it.
func (q *planApproval) edited(v *decision) (*envelope.Envelope, error) {
	q.call.schema = nil
	return q.call.admit(gate.Reply{Text: string(v.Plan)}, time.Now())
}

// unassigned reports the tasks of an edited plan that name no agent: the person would not know who
// gets them.
func unassigned(text string, r planning.Rules) (found task.Problems) {
	specs, _ := planning.ParsePlan(text, r) // it was read before
	var look func(specs []task.Spec)
	look = func(specs []task.Spec) {
		for i := range specs {
			s := &specs[i]
			if s.Repeat != nil {
				look(s.Repeat.Tasks)
			} else if strings.TrimSpace(s.Assignee) == "" {
				found = append(found, task.Problem{Subject: fmt.Sprintf("task %q", s.Title), Message: "it names no agent", Hint: "write its assignee", Err: ErrPlan})
			}
		}
	}
	look(specs)
	return found
}

// replan returns the step in which the coordinator makes another plan, given the reason why this one
// was refused, or why there is no further plan.
func (q *planApproval) replan(reason string, round int) (*step, error) {
	c := q.of
	if strings.TrimSpace(reason) == "" {
		return nil, fmt.Errorf("%w by %s, without a reason", ErrPlanRefused, c.config.Approve)
	}
	if round > maxPlans {
		return nil, fmt.Errorf("%w %d times by %s (last reason: %s)", ErrPlanRefused, round, c.config.Approve, reason)
	}
	if terms := c.run.governed().Terms(c.config.Approve, handoff.Coordinator); terms.Mode() == handoff.Minimal || !plan.PassesAsText(terms) {
		return nil, fmt.Errorf("%w by %s, and a rule of the policy keeps the reason from the coordinator: %s", ErrPlanRefused, c.config.Approve, reason)
	}
	q.call.schema = nil
	e, err := q.call.admit(gate.Reply{Text: reason}, time.Now())
	if err != nil {
		return nil, err
	}
	c.run.warn(fmt.Sprintf("%s refused plan %d, and the coordinator was given the reason", c.config.Approve, round))
	return c.planAgain(q.made, planning.RevisionText(c.run.team.Names()), gate.Offer{Title: "Why it was refused", Envelope: e}), nil
}

// refused returns the error of a run without a plan, in the form for the caller; nil without an
// error.
func (q *planApproval) refused(ctx context.Context, err error) *TaskError {
	if err == nil {
		return nil
	}
	c, x := q.of, &step{of: q.of, kind: StepApproval, call: q.call}
	x.call.setError(ctx, err)
	if ctx.Err() != nil || errors.Is(err, ErrJournal) {
		return c.stepError(x, codes.Decomposition)
	}
	said := err.Error()
	if !errors.Is(err, ErrPlanRefused) {
		said = "the plan cannot be approved: " + said
	}
	x.call.message, x.call.fault = c.run.explain(&q.call, codes.PlanRefused, said)
	return c.stepError(x, codes.PlanRefused)
}
