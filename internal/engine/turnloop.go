package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/prompt"
)

// maxConversation bounds the turns of an agent that has no bound of its own.
const maxConversation = 200

// A turnLoop performs the turns of one attempt.
type turnLoop struct{ *attempt }

// untilExpiry returns a context that ends when the contract of the attempt expires: the calls
// of tools count towards the time limit of the task.
func (l turnLoop) untilExpiry(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.contract.Duration <= 0 {
		return ctx, func() {}
	}
	if l.contract.ExpiresAt.IsZero() {
		l.contract.Start(time.Now())
	}
	return context.WithDeadlineCause(ctx, l.contract.ExpiresAt, l.late())
}

// takeTurns performs turns until the agent answers, and returns the last one. An answer that
// does not match its schema is corrected once. rejected says what is wrong with the first
// answer; it is nil if that calls tools.
func (l turnLoop) takeTurns(ctx context.Context, first prompt.Prompt, rejected *schema.RejectedError) (*turn, error) {
	current, last, corrected := &l.modelCall, &turn{prompt: first}, false
	for n := 2; rejected != nil || n <= maxConversation && len(current.reply.ToolCalls) > 0; n++ {
		t, err := l.nextTurn(ctx, n, current, last.prompt, rejected)
		if err != nil {
			return nil, err
		}
		serve(ctx, &l.modelCall, &t.modelCall, t)
		l.later, l.worked = len(l.spent), t.worked
		if corrected = corrected || rejected != nil; corrected {
			l.rejectedAgain = t.rejected
		}
		again, isRejected := errors.AsType[*schema.RejectedError](t.err)
		switch {
		case t.err != nil && (!isRejected || errors.Is(again, schema.ErrGuard)):
			return nil, t.err
		case isRejected && corrected:
			return nil, fmt.Errorf("%w, also after a second try: %w", schema.ErrMismatch, again.Err)
		case isRejected:
			l.reject(t.reply.Text, again.Problem, l.number)
		}
		last, current, rejected = t, &t.modelCall, again
	}
	if len(current.reply.ToolCalls) > 0 {
		return nil, fmt.Errorf("%w: a conversation has at most %d turns; split the task", codes.Condition(codes.MaxTurns), maxConversation)
	}
	return last, nil
}

// nextTurn returns turn n, which is ready to be served: it offers what came of the turn before,
// whose prompt is given.
func (l turnLoop) nextTurn(ctx context.Context, n int, current *modelCall, before prompt.Prompt, rejected *schema.RejectedError) (*turn, error) {
	t := &turn{modelCall: modelCall{run: l.run, request: l.side(turnPart(n), time.Now())}, of: l.attempt, before: before}
	t.stream = l.stream
	t.turn, t.worked, t.tools, t.least = n, current.worked, l.tools, current.contract.MaxInput
	t.grant = "tools"
	var err error
	if rejected != nil {
		t.grant = "outputSchema"
		err = t.offerProblem(current, rejected)
	} else {
		err = t.offerResults(ctx, current)
	}
	if err != nil {
		return nil, err
	}
	if l.earlier = append(l.earlier, current); current != &l.modelCall {
		current.offers, current.grants = nil, nil // whole results, which nothing reads any more
	}
	t.start = time.Now() // tool calls may have taken long
	t.began = t.start
	return t, nil
}

// acceptTurn makes the answer of the last turn that of the attempt.
func (l turnLoop) acceptTurn(ctx context.Context, last *turn) error {
	own := l.reply
	l.reply = last.reply
	l.reply.Usage, l.reply.Turns, l.reply.Warnings, l.reply.Reasoning = own.Usage, own.Turns, own.Warnings, own.Reasoning // later turns account for their own
	if err := takeOutputs(l.attempt, last.envelope); err != nil {
		return err
	}
	return l.accept(ctx, last.envelope, time.Now())
}
