package engine

import (
	"context"
	"errors"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// continueFrom continues a conversation whose first turn an earlier process had. taken says
// whether that turn could be used.
func (a *attempt) continueFrom(ctx context.Context, e *record.AgentCall, first prompt.Prompt) (taken bool, err error) {
	if err := a.permitted(ctx); err != nil { // until then, the scheduler writes to it
		return true, err
	}
	a.run.mu.Lock()
	before := *a
	a.run.mu.Unlock()
	startOver := func() {
		a.run.mu.Lock()
		defer a.run.mu.Unlock()
		before.steeredTask, before.slotless = a.steeredTask, a.slotless // which commands and the scheduler set meanwhile
		before.filesLeft = a.filesLeft
		*a = before
	}
	if taken, err := a.reissueTurn(e); !taken || err != nil {
		return false, err
	}
	a.conversation = newConversation(a)
	a.cachedTurn = true
	if !resumeFiles(ctx, a) {
		startOver()
		warnLeft(a)
		return false, nil
	}
	a.releaseBatch()
	before.batch = nil
	if err = a.converse(ctx, first, nil); errors.Is(err, errOtherTurn) {
		a.closeShared(ctx, err)
		startOver()
		return false, nil
	}
	return true, err
}

// reissueTurn takes what the agent said in an earlier process through the gate again.
func (x *modelCall) reissueTurn(e *record.AgentCall) (taken bool, err error) {
	if e.Result == nil || e.Missing != "" {
		return false, nil
	}
	provider, ok := priorProviderData(e, x.run.memo, x.run.named(x.by), x.before)
	if !ok {
		return false, nil
	}
	reply, old, err := gate.Reissue(e.Result, time.Now())
	if err != nil || old.Producer() != x.caps.Agent || old.Classification() > x.contract.MaxInput {
		return false, nil
	}
	said, err := (&gate.Compartment{Contract: x.contract}).GateTurn(envelope.ID(x.identity()+"/said"), reply.Text, reply.JSON, x.sealed, time.Now())
	if err != nil {
		return false, nil
	}
	calls, err := brief.CallsOf(reply.JSON.Canonical())
	if err != nil {
		return false, nil
	}
	x.reply, x.reissued = agent.Reply{Text: reply.Text, Call: e.Call, Warnings: e.Warnings, Provider: provider}, e.Session
	for _, c := range calls {
		x.reply.ToolCalls = append(x.reply.ToolCalls, llm.ToolCall{ID: c.ID, Name: c.Name, Arguments: string(c.Arguments)})
	}
	x.envelope = said
	return true, nil
}
