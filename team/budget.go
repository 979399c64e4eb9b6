package team

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// ErrBudget reports a model call that was not made, because the budget of the
// run had not enough left for it. A [*BudgetError] wraps it.
var ErrBudget = errors.New("token budget exceeded")

// A BudgetError says for which agent the budget was not enough. It says roughly
// how much was needed and not how much was left, which would tell the exact size
// of prompts and replies that the caller may not see.
type BudgetError struct {
	Agent  string
	Needed int // tokens that the call was estimated to take, rounded up to a [handoff.TokenClass]
	Limit  int // the budget of the run
}

// Error says who needed how much of what.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("%v: a call of %q does not fit into what is left of %d tokens: it may need up to %d", ErrBudget, e.Agent, e.Limit, e.Needed)
}

// Unwrap returns [ErrBudget].
func (e *BudgetError) Unwrap() error { return ErrBudget }

// A budget keeps the tokens of a run: what was spent, and what is set aside
// for calls under way. A nil *budget has no bound.
type budget struct {
	limit int
	bus   *bus

	mu       sync.Mutex // guards the rest
	spent    int
	reserved int
	freed    chan struct{} // closed and made anew whenever a reservation ends
}

// newBudget returns a budget of which some is spent already.
func newBudget(limit, spent int, b *bus) *budget {
	if limit == 0 {
		return nil
	}
	return &budget{limit: limit, spent: spent, bus: b, freed: make(chan struct{})}
}

// take sets tokens aside for a call. While it is not enough only because of
// calls under way, it waits for them: they mostly take less than was set aside.
func (b *budget) take(ctx context.Context, who string, tokens int) error {
	for {
		b.mu.Lock()
		left := b.limit - b.spent
		if tokens <= left-b.reserved {
			b.reserved += tokens
			b.mu.Unlock()
			return nil
		}
		if tokens > left { // also when nothing is under way: then all that is left is free
			b.mu.Unlock()
			return &BudgetError{Agent: who, Needed: handoff.TokenClass(tokens), Limit: b.limit}
		}
		freed := b.freed
		b.mu.Unlock()
		select {
		case <-freed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// settle ends a reservation with what the call took.
func (b *budget) settle(reserved, took int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reserved -= reserved
	b.spent += min(took, math.MaxInt-b.spent)
	close(b.freed)
	b.freed = make(chan struct{})
}

// payer is for whom a call is made.
type payer struct {
	agent  string
	task   task.ID
	title  string
	number int
}

// A purse pays the model calls of one exchange. A nil *purse pays everything.
type purse struct {
	budget *budget
	who    payer

	mu      sync.Mutex // guards the rest: an agent may make calls side by side
	counted int        // paid tokens of calls that endpoints counted: the agent reports them too, so they are not paid again
	empty   bool       // a call was not made
	over    bool       // the exchange has ended; what an agent left behind tells nothing
}

// purse returns what pays for an exchange, and a context in which it does.
func (b *budget) purse(ctx context.Context, who payer) (*purse, context.Context) {
	if b == nil {
		return nil, ctx
	}
	p := &purse{budget: b, who: who}
	return p, agent.WithBudget(ctx, p)
}

// open refuses to begin when nothing is left. An agent written in Go says what
// it took only afterwards.
func (p *purse) open() error {
	if p == nil {
		return nil
	}
	p.budget.mu.Lock()
	left := p.budget.limit - p.budget.spent
	p.budget.mu.Unlock()
	if left > 0 {
		return nil
	}
	return p.refused(&BudgetError{Agent: p.who.agent, Needed: handoff.TokenClass(1), Limit: p.budget.limit})
}

// Reserve is what an [agent.LLM] asks before each call.
func (p *purse) Reserve(ctx context.Context, estimate llm.Usage) (settle func(llm.Usage, bool), err error) {
	tokens := total(estimate)
	if err := p.budget.take(ctx, p.who.agent, tokens); err != nil {
		return nil, p.refused(err)
	}
	return func(took llm.Usage, counted bool) {
		if counted {
			p.mu.Lock()
			p.counted += total(took)
			p.mu.Unlock()
		}
		p.budget.settle(tokens, total(took))
	}, nil
}

// close pays for what the agent reports and no call was asked for.
func (p *purse) close(reported llm.Usage) {
	if p == nil {
		return
	}
	p.mu.Lock()
	extra := total(reported) - p.counted
	p.mu.Unlock()
	if extra > 0 {
		p.budget.settle(0, extra)
	}
}

// shut ends the exchange, and reports whether a call of it was not made.
func (p *purse) shut() (empty bool) {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	return p.empty
}

// refused notes a call that was not made, and tells subscribers.
func (p *purse) refused(err error) error {
	short, ok := errors.AsType[*BudgetError](err)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.empty = p.empty || ok
	if ok && !p.over {
		p.budget.bus.emit(event.Event{Type: event.Budget, Task: p.who.task, Title: p.who.title, Agent: p.who.agent, Attempt: p.who.number, Code: CodeBudget, Message: short.Error()})
	}
	return err
}

// total is how many tokens a usage counts. Whoever counts may be mistaken: below
// zero is nothing, and more than there can be is as many as there can be.
func total(u llm.Usage) int {
	in, out := max(u.InputTokens, 0), max(u.OutputTokens, 0)
	if in > math.MaxInt-out {
		return math.MaxInt
	}
	return in + out
}
