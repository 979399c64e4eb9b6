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

// untilExpiry returns a context that ends when the contract of an attempt expires: the calls
// of tools count towards the time limit of the task.
func (x *gatedContext) untilExpiry(ctx context.Context) (context.Context, context.CancelFunc) {
	if x.contract.Duration <= 0 {
		return ctx, func() {}
	}
	if x.contract.ExpiresAt.IsZero() {
		x.contract.Start(time.Now())
	}
	return context.WithDeadlineCause(ctx, x.contract.ExpiresAt, x.late())
}

// performTurns performs turns until the agent answers, and returns the last one. An answer that
// does not match its schema is corrected once. It returns nil if the agent transferred the
// conversation. rejected says what is wrong with the first answer; it is nil if that calls tools.
func (a *attempt) performTurns(ctx context.Context, first prompt.Prompt, rejected *schema.RejectedError) (*turn, error) {
	current, last, corrected := &a.modelCall, &turn{prompt: first}, false
	most := cmp.Or(a.maxTurns, plan.MaxTurns)
	if len(a.tools) == 0 {
		most = 2 // the agent learns once that it has no tools
	}
	for n := 2; rejected != nil || n <= most && len(current.reply.ToolCalls) > 0; n++ {
		t, err := a.performTurn(ctx, n, current, last.prompt, rejected)
		if err != nil || t == nil {
			return nil, err
		}
		if corrected = corrected || rejected != nil; corrected {
			a.rejectedAgain = t.call.rejected
		}
		again, isRejected := errors.AsType[*schema.RejectedError](t.call.err)
		switch {
		case t.call.err != nil && (!isRejected || errors.Is(again, schema.ErrGuard)):
			return nil, t.call.err
		case isRejected && corrected:
			return nil, fmt.Errorf("%w, also after a second try: %w", schema.ErrMismatch, again.Err)
		case isRejected:
			a.reject(t.call.reply.Text, again.Problem, a.number)
		}
		last, current, rejected = t, &t.call, again
	}
	switch {
	case len(current.reply.ToolCalls) > 0 && len(a.tools) == 0:
		return nil, noSuchTool(&current.reply)
	case len(current.reply.ToolCalls) > 0:
		return nil, fmt.Errorf("%w: a conversation has at most %d turns; split the task", codes.Condition(codes.MaxTurns), most)
	}
	return last, nil
}

// performTurn performs turn n, and repeats it each time that a command interrupts it. A pause of the run does not
// count towards the time limit of the task.
func (a *attempt) performTurn(ctx context.Context, n int, current *modelCall, before prompt.Prompt, rejected *schema.RejectedError) (*turn, error) {
	limited, cancel := a.untilExpiry(ctx)
	defer func() { cancel() }()
	t, err := a.nextTurn(limited, n, current, before, rejected)
	for err == nil && a.next == nil {
		cancel()
		if waited := a.run.steering.await(ctx); waited > 0 && a.contract.Duration > 0 {
			a.contract.ExpiresAt = a.contract.ExpiresAt.Add(waited)
		}
		limited, cancel = a.untilExpiry(ctx)
		t.call.start = time.Now() // tool calls, and a pause, may have taken long
		t.call.began = t.call.start
		t.offerMessages()
		serve(limited, &a.modelCall, &t.call, t)
		a.later, a.worked = len(a.spent), t.call.worked
		if !isInterrupted(limited, t.call.err) {
			return t, nil
		}
		t = t.withoutCall()
		a.dropStep()
	}
	return nil, err
}

// withoutCall returns an interrupted turn as it was before its call.
func (t *turn) withoutCall() *turn {
	again := &turn{call: modelCall{run: t.call.run, request: t.call.request}, of: t.of, before: t.before, grant: t.grant, limit: t.limit, calls: t.calls, hasProblem: t.hasProblem}
	again.call.stream, again.call.worked, again.call.contextLists = t.call.stream, t.call.worked, contextLists{offers: t.call.offers, grants: t.call.grants}
	return again
}

// nextTurn returns turn n, which is ready to be served: it offers what came of the turn before,
// whose prompt is given.
func (a *attempt) nextTurn(ctx context.Context, n int, current *modelCall, before prompt.Prompt, rejected *schema.RejectedError) (*turn, error) {
	t := &turn{call: modelCall{run: a.run, request: a.side(turnPart(n), time.Now())}, of: a, before: before}
	t.call.stream, t.call.before = a.stream, cmp.Or(current.reissued, current.contract.Session)
	t.call.turn, t.call.worked, t.call.tools, t.call.least = n, current.worked, a.tools, current.contract.MaxInput
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
	t.call.least = t.call.least.Join(a.returned.level())
	if a.earlier = append(a.earlier, current); current != &a.modelCall {
		current.offers, current.grants = nil, nil // whole results, which nothing reads any more
	}
	return t, nil
}

// acceptTurn makes the answer of the last turn that of the attempt.
func (a *attempt) acceptTurn(ctx context.Context, last *turn) error {
	own := a.reply
	a.reply = last.call.reply
	a.reply.Usage, a.reply.Turns, a.reply.Warnings, a.reply.Reasoning = own.Usage, own.Turns, own.Warnings, own.Reasoning // later turns account for their own
	if err := takeOutputs(ctx, a, last.call.envelope); err != nil {
		return err
	}
	return a.accept(ctx, last.call.envelope, time.Now())
}
