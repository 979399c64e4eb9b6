package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/prompt"
)

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
// does not match its schema is corrected once. It returns nil if the agent transferred the conversation. rejected says what is wrong with the first
// answer; it is nil if that calls tools.
func (l turnLoop) takeTurns(ctx context.Context, first prompt.Prompt, rejected *schema.RejectedError) (*turn, error) {
	current, last, corrected := &l.modelCall, &turn{prompt: first}, false
	most := cmp.Or(l.maxTurns, plan.MaxTurns)
	for n := 2; rejected != nil || n <= most && len(current.reply.ToolCalls) > 0; n++ {
		t, err := l.takeTurn(ctx, n, current, last.prompt, rejected)
		if err != nil || t == nil {
			return nil, err
		}
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
		return nil, fmt.Errorf("%w: a conversation has at most %d turns; split the task", codes.Condition(codes.MaxTurns), most)
	}
	return last, nil
}

// takeTurn performs turn n, again each time that somebody interrupts it. A pause of the run does not
// count towards the time limit of the task.
func (l turnLoop) takeTurn(ctx context.Context, n int, current *modelCall, before prompt.Prompt, rejected *schema.RejectedError) (*turn, error) {
	limited, cancel := l.untilExpiry(ctx)
	defer func() { cancel() }()
	t, err := l.nextTurn(limited, n, current, before, rejected)
	for err == nil && l.next == nil {
		cancel()
		if waited := l.run.steering.await(ctx); waited > 0 && l.contract.Duration > 0 {
			l.contract.ExpiresAt = l.contract.ExpiresAt.Add(waited)
		}
		limited, cancel = l.untilExpiry(ctx)
		t.start = time.Now() // tool calls, and a pause, may have taken long
		t.began = t.start
		t.offerMessages()
		serve(limited, &l.modelCall, &t.modelCall, t)
		l.later, l.worked = len(l.spent), t.worked
		if !isInterrupted(limited, t.err) {
			return t, nil
		}
		t = l.afterInterrupt(t)
	}
	return nil, err
}

// afterInterrupt returns an interrupted turn as it was before its call.
func (l turnLoop) afterInterrupt(t *turn) *turn {
	again := &turn{modelCall: modelCall{run: l.run, request: t.request}, of: t.of, before: t.before, grant: t.grant, limit: t.limit, calls: t.calls, hasProblem: t.hasProblem}
	again.stream, again.worked, again.contextLists = t.stream, t.worked, contextLists{offers: t.offers, grants: t.grants}
	l.dropStep()
	return again
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
