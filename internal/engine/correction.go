package engine

import (
	"context"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/prompt"
)

// rejectedPart ends the session of the entry of an answer that is corrected.
const rejectedPart = "/rejected"

// correct has the agent correct the answer in a.reply, in a second turn.
func (a *attempt) correct(ctx context.Context, first prompt.Prompt, rejected *schema.RejectedError) error {
	said, err := rejectedAnswer(&a.modelCall)
	if err != nil {
		return err
	}
	if a.run.ledger != nil && !a.run.memo.Is(memo.Strict) {
		e := a.journalCall()
		e.Part, e.End, e.Context = a.part+rejectedPart, time.Now(), event.Context{}
		e.Code, e.Error, e.Result = codes.Schema, rejected.Problem, gate.RecordOf(said)
		a.run.ledger.note(record.Entry{Rejected: e}) // durable with the prompt that corrects it, or before
	}
	a.reject(a.reply.Text, rejected.Problem, a.number)
	return a.converse(ctx, first, rejected)
}

// correctAgain has an answer corrected that was rejected before the run was interrupted,
// or in the run that is replayed. taken says whether that answer could be used.
func (a *attempt) correctAgain(ctx context.Context, e *record.AgentCall, first prompt.Prompt) (taken bool, err error) {
	reply, stored, ok := storedAnswer(a.run.memo, e, a.caps.Agent, time.Now())
	if !ok || stored.Classification() > a.contract.MaxInput {
		return false, nil
	}
	a.repeated, a.reissued = a.run.repeats(), e.Session
	a.reply = agent.Reply{Text: reply.Text, Call: e.Call, Warnings: e.Warnings} // its tokens were counted when it was given
	a.reject(a.reply.Text, e.Error, e.Attempt)
	a.releaseBatch() // the correction waits for its own record
	if err := a.permitted(ctx); err != nil {
		return true, err
	}
	return true, a.converse(ctx, first, &schema.RejectedError{Problem: e.Error})
}

// rejectedAnswer makes the envelope of an answer that is to be corrected.
func rejectedAnswer(x *modelCall) (*envelope.Envelope, error) {
	return (&gate.Compartment{Contract: x.contract}).GateTurn(envelope.ID(x.identity()+"/said"), x.reply.Text, jsonvalue.Value{}, x.sealed, time.Now())
}
