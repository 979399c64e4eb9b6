package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// A person can be asked before something happens: a call of a tool, the tasks of a plan, or a
// delivery below the label of a value. The question is a prompt like any other, so the gate decides
// what of it the person gets. Its key is a digest of what is shown and of what would happen, and an
// answer serves only the question with this key.

// An approval is a question to a person whether something may happen.
type approval struct {
	call    modelCall
	happens record.Key // a digest of what would happen
}

// An approvedThing is what a question of an approval is about.
type approvedThing struct {
	title string // by which the question is found
	call  string // the session of the call of a tool; empty for anything else
	tool  string // the name of that tool
	what  string // the plan, or the name of an entry of the policy; empty for a call

	list record.Key // equal for the calls of one turn that are asked about together; zero for anything else
}

// A decision is what a person decided.
type decision struct {
	Decision string          `json:"decision"`
	Reason   string          `json:"reason"`
	Plan     json.RawMessage `json:"plan"`
}

// The decisions of a person.
const (
	decidedNo     = "no"
	decidedAlways = "always"
	decidedEdit   = "edit"
)

// parseForm returns a function that parses the form of a question at its first call.
func parseForm(text string) func() *schema.Schema {
	return sync.OnceValue(func() *schema.Schema {
		s, err := schema.Parse(text)
		must(err)
		return s
	})
}

// newApproval returns a question to the assignee of a task that no plan has.
func newApproval(r *runScope, t *task.Task, form *schema.Schema, about approvedThing) *approval {
	m, _ := r.team.Index(t.Assignee) // the check before the run knows the person
	now, caps := time.Now(), &r.team.Capabilities[m]
	p := &approval{call: modelCall{run: r, about: &about, request: request{
		by:   r.governed(),
		task: t, does: r.team.Config.Agents[m].Agent, caps: caps, bound: caps.Clearance(), limits: r.team.Limits(r.team.Config.Agents[m].Limits), // and not what a task may be granted
		schema: form, start: now, began: now,
	}}}
	return p
}

// show builds the prompt from what was sealed, and binds the question to it.
func (p *approval) show(context brief.Context) (prompt.Prompt, error) {
	text, err := p.call.build(&brief.Brief{Context: context})
	p.call.key = digestOf("runteam/approval/1", p.call.caps.Agent, text.System(), text.Text(), string(p.happens[:]))
	return text, err
}

// An await asks a person, and returns the answer that has come from another process meanwhile, if
// there is one.
type await func(ctx context.Context, key record.Key, ask func(context.Context) error) (*record.Answer, error)

// decide returns what the person decides. If there is no answer yet, the error is errLater.
func (p *approval) decide(ctx context.Context, text prompt.Prompt, wait await) (*decision, error) {
	given, err := p.begin(ctx, text)
	if err != nil {
		return nil, err
	}
	return p.settle(ctx, text, given, wait)
}

// begin returns the answer that the journal has, or records that the person is asked and returns nil.
func (p *approval) begin(ctx context.Context, text prompt.Prompt) (*record.Answer, error) {
	d := p.call.run.questions
	given, err := d.given(ctx, p.call.task.ID, p.call.key)
	switch {
	case err != nil:
		return nil, err
	case given != nil:
		return given, p.call.run.credit(ctx, &p.call, text)
	case p.call.run.repeats():
		return nil, errReplayAsks
	}
	if err = d.warnChanged(ctx, &p.call); err == nil {
		err = p.call.run.recordPrompt(ctx, &p.call, text, nil)
	}
	return nil, err
}

// settle returns what an answer decides. Without one, and after one that does not fit, it asks.
func (p *approval) settle(ctx context.Context, text prompt.Prompt, given *record.Answer, wait await) (v *decision, err error) {
	d := p.call.run.questions
	for tries := 1; ; tries++ {
		if given == nil {
			if given, err = p.ask(ctx, text, wait); err != nil {
				return nil, err
			}
		}
		v, wrong := p.read(given)
		if wrong == "" {
			d.take(&p.call, given)
			return v, nil
		}
		if given.Command == 0 && tries >= maxUnfit {
			return nil, fmt.Errorf("the answer of %s does not fit the question: %s", given.By, wrong)
		}
		if err := d.refuse(ctx, given, "it does not fit the question: "+wrong); err != nil {
			return nil, err
		}
		given = nil
	}
}

// maxUnfit bounds how often a person of this process is asked again: it may be a program.
const maxUnfit = 5

// errReplayAsks refuses what a person would have to approve in a replay.
var errReplayAsks = errors.New("a replay asks no questions")

// read returns what an answer decides, or what is wrong with it. Who answers in another process is
// shown what the caller of the run may see.
func (p *approval) read(given *record.Answer) (v *decision, wrong string) {
	value, err := jsonvalue.Parse(given.Text)
	if err == nil {
		err = p.call.schema.Validate(value)
	}
	v = new(decision)
	if err == nil {
		err = json.Unmarshal([]byte(given.Text), v)
	}
	if err != nil {
		return nil, schema.Problem(err)
	}
	if given.Command != 0 && p.call.hidden && v.Decision != decidedNo {
		return nil, record.RefusedUnseen
	}
	return v, ""
}

// ask asks the person, and returns the answer that came first: that of the person, or one from
// another process. It waits for the function that asks, which ends with ctx: what a person answers at
// the end of a run counts.
func (p *approval) ask(ctx context.Context, text prompt.Prompt, wait await) (*record.Answer, error) {
	var own *record.Answer
	given, err := wait(ctx, p.call.key, func(ctx context.Context) error {
		reply, err := runOutside(context.WithoutCancel(ctx), "the person", p.call.run.team.Log, func() (string, error) {
			reply, err := p.call.ask(ctx, text)
			if errors.Is(err, agent.Condition(codes.Schema)) {
				return reply.Text, nil // read says what is wrong, and the person is asked again
			}
			return reply.JSON.Canonical(), err
		})
		if err == nil {
			own = &record.Answer{By: p.call.caps.Agent, Time: time.Now(), Text: reply}
		}
		return err
	})
	switch {
	case given != nil:
		return given, nil
	case err == nil:
	case errors.Is(err, person.ErrLater), errors.Is(context.Cause(ctx), ErrAttemptTimeout):
		return nil, errLater
	case ctx.Err() != nil:
		return nil, withCause(ctx, err)
	default:
		return nil, err
	}
	q := questionOf(&p.call)
	own.Session, own.Task, own.Title, own.Agent, own.Label, own.Key = q.Session, q.Task, q.Title, q.Agent, q.Label, p.call.run.questions.mask(p.call.key)
	return own, nil
}

// decideFor asks the person of an approval that an attempt waits for. While the person is asked, the
// attempt holds no slot.
func (p *approval) decideFor(ctx context.Context, a *attempt, text prompt.Prompt) (*decision, error) {
	a = ofTask(a)
	a.approver, a.approves = p.call.caps.Agent, p.call.about.tool
	v, err := p.decide(ctx, text, func(ctx context.Context, key record.Key, ask func(context.Context) error) (*record.Answer, error) {
		a.scheduler.freeSlot(a)
		defer func() { a.scheduler.takeSlot(a) }()
		return awaitAnswer(ctx, a, key, ask)
	})
	if !errors.Is(err, errLater) {
		a.approver, a.approves = "", ""
	}
	return v, err
}
