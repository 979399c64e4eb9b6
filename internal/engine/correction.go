package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/prompt"
)

// A correction is the second model call of an attempt whose first answer does
// not match the schema. It is a model call of its own: its prompt is that of the
// attempt, on which the gate decides again, followed by the answer and what is wrong with it, which
// pass the gate as context. So it has its own contract, decisions, receipt, budget
// reservation and entries in the journal.
type correction struct {
	modelCall
	of *attempt
}

// correctionPart ends the session of a correction, and rejectedPart that of the entry of
// the answer that is corrected.
const (
	correctionPart = "/correct"
	rejectedPart   = "/rejected"
)

// correct asks the agent to correct the answer in a.reply.
func (a *attempt) correct(ctx context.Context, rejected *schema.RejectedError) error {
	compartment := gate.Compartment{Contract: a.contract}
	draft, err := compartment.GateFault(envelope.ID(a.identity()+rejectedPart), a.reply.Text, a.sealed, time.Now())
	if err != nil {
		return err
	}
	if a.run.ledger != nil && !a.run.priorRun.isStrict() {
		e := a.view().call()
		e.Part, e.End, e.Context = a.part+rejectedPart, time.Now(), event.Context{}
		e.Code, e.Error, e.Result = codes.Schema, rejected.Problem, gate.RecordOf(draft)
		a.run.ledger.note(record.Entry{Rejected: e}) // durable with the prompt that corrects it, or before
	}
	return a.corrected(ctx, draft, rejected.Problem, a.number)
}

// correctAgain corrects an answer that was rejected before the run was interrupted,
// or in the run that is replayed. taken says whether that answer could be used.
func (a *attempt) correctAgain(ctx context.Context, e *record.AgentCall) (taken bool, err error) {
	reply, draft, ok := a.cache().stored(e, time.Now())
	if !ok || draft.Classification() > a.contract.MaxInput {
		return false, nil
	}
	a.repeated = a.run.repeats()
	a.reply = agent.Reply{Text: reply.Text, Call: e.Call, Warnings: e.Warnings} // its tokens were counted when it was given
	return true, a.corrected(ctx, draft, e.Error, e.Attempt)
}

// corrected makes the call that corrects a rejected answer, and takes its answer as that
// of the attempt.
func (a *attempt) corrected(ctx context.Context, draft *envelope.Envelope, problem string, attempt int) error {
	a.reject(a.reply.Text, problem, attempt)
	now, h := time.Now(), draft.Header()
	faults, err := envelope.New(envelope.Header{
		ID: h.ID + "/faults", Producer: gate.Runtime, Task: h.Task, Run: h.Run, Classification: h.Classification, Trust: h.Trust,
		CreatedAt: now, ExpiresAt: h.ExpiresAt, DerivedFrom: []envelope.ID{h.ID},
	}, envelope.Text(problem))
	if err != nil {
		return err
	}
	a.releaseBatch() // the correction waits for its own record
	if err := a.permitted(ctx); err != nil {
		return err
	}
	c := &correction{modelCall: modelCall{run: a.run, request: a.side(correctionPart, now)}, of: a}
	c.turn, c.worked = 2, a.worked
	c.offers = slices.Clone(a.offers)
	c.grants = slices.Clone(a.grants)
	for _, o := range []gate.Offer{
		{Source: gate.Source{Kind: handoff.Draft, Name: string(a.task.ID)}, Title: "Your previous answer", Envelope: draft, Optional: true},
		{Source: gate.Source{Kind: handoff.Fault, Name: string(a.task.ID)}, Title: "What is wrong with it", Envelope: faults},
	} {
		g := gate.WholeOf(o.Source, "outputSchema")
		g.Terms, g.MaxBytes = gate.CorrectionTerms(o.Envelope.Producer(), a.caps.Agent), a.limits.On(o.Source, 0)
		c.offers, c.grants = append(c.offers, o), append(c.grants, g)
	}
	a.showCost()
	serve(ctx, &a.modelCall, &c.modelCall, c)
	a.later, a.rejectedAgain = len(c.spent)+1, c.rejected
	a.worked = c.worked
	if rejected, ok := errors.AsType[*schema.RejectedError](c.err); ok {
		if errors.Is(rejected, schema.ErrGuard) {
			return rejected
		}
		return fmt.Errorf("%w, also after a second try: %w", schema.ErrMismatch, rejected.Err)
	}
	if c.err != nil {
		return c.err
	}
	own := a.reply
	a.reply, a.correctedBy = c.reply, &c.reply.Call
	a.reply.Usage, a.reply.Turns, a.reply.Call, a.reply.Warnings, a.reply.Reasoning = own.Usage, own.Turns, own.Call, own.Warnings, own.Reasoning // those of the correction are its own
	return a.close(ctx, a, time.Now())
}

// open takes all context of the attempt through the gate once more, with the
// answer and what is wrong with it, and builds the prompt.
func (c *correction) open(ctx context.Context) (prompt.Prompt, error) {
	if err := c.seal(ctx); err != nil {
		return prompt.Prompt{}, err
	}
	own := len(c.sealed) - 2
	b := c.of.brief(c.sealed[:own])
	b.Drafts = c.sealed[own:]
	return c.build(&b)
}

// started returns the outbox of the attempt: what the agent sends in either call is
// sent with the answer.
func (c *correction) started() *Outbox {
	if c.of.outbox == nil {
		c.of.outbox = c.of.started()
	}
	return c.of.outbox
}

func (*correction) ended(context.Context) {}
