// Package supervise carries through a context what an agent gets from its team for one attempt at
// a task: the budgets that pay for its model calls, the number of the turn, what providers need back
// with the turns before, the workspace, and who watches what the model writes.
package supervise

import (
	"context"
	"os"
	"slices"

	"github.com/runteam/runteam/llm"
)

// A Budget admits the model calls of agents and counts what they take.
type Budget interface {
	// Reserve sets aside what a call of the named model takes at most; the name is empty
	// for a model that does not name itself. It may wait until other calls have been
	// settled, or ctx ends. It may grant fewer tokens for the reply than were asked for, to
	// which a reply with a limit is then limited. Its error ends the agent's work and is
	// returned as it is. The function that it returns is called once, when the call has ended.
	Reserve(ctx context.Context, model string, most llm.Usage) (granted llm.Usage, settle func(CallUsage), err error)
}

// A CallUsage is what one model call took.
type CallUsage struct {
	Charged  llm.Usage // what a budget charges: estimated where the endpoint counted nothing
	Counted  llm.Usage // what the endpoint counted; zero if it counted nothing
	Answered bool      // the call returned a reply
}

type (
	budgetKey    struct{} // the context value is a *Payer
	turnKey      struct{} // the context value is an int
	providerKey  struct{} // the context value is a *[]*llm.ProviderData
	workspaceKey struct{} // the context value is a func() (*os.Root, error)
	streamKey    struct{} // the context value is a Stream
	paidKey      struct{} // the context value is a *paidChain
)

// A Payer is a budget of a context, followed by those of its parent contexts. A nil Payer
// pays for nothing.
type Payer struct {
	budget Budget
	outer  *Payer
}

// A paidChain lists the budgets that already pay for the model calls that enclose a
// context. A call inside them is not paid again.
type paidChain struct {
	from   *Payer
	before *paidChain
}

// has reports whether b is one of the budgets.
func (p *paidChain) has(b *Payer) bool {
	for ; p != nil; p = p.before {
		for from := p.from; from != nil; from = from.outer {
			if from == b {
				return true
			}
		}
	}
	return false
}

// With returns a context under which model calls are paid from b, if that is not nil. If
// ctx already has a budget, both must admit each call. With panics if ctx is nil.
//
// A turn above zero says that the caller supervises each model call of the work. Under
// it an agent makes one call, the n-th of the work, and returns an answer that does not
// match the schema as an error, so that the caller can have it corrected by another
// prompt: then the call that corrects passes the gate and the record like every other.
func With(ctx context.Context, b Budget, turn int) context.Context {
	return new(Context).Begin(ctx, b, turn, nil)
}

// A Context is the context that [With] returns. A caller that keeps something for each supervision
// can hold the context in it by value and begin it there, which saves an allocation.
type Context struct {
	context.Context
	payer    Payer
	turn     int
	provider []*llm.ProviderData
}

// Begin makes s the context that [With] returns for these arguments, with what providers need back in
// the conversation; see [ProviderData]. It is called once.
func (s *Context) Begin(ctx context.Context, b Budget, turn int, provider []*llm.ProviderData) context.Context {
	*s = Context{ctx, Payer{b, PayerOf(ctx)}, turn, provider}
	return s
}

// Value returns the budgets, the turn or the provider data, or a value of the parent context.
func (s *Context) Value(key any) any {
	switch key.(type) {
	case budgetKey:
		if s.payer.budget != nil {
			return &s.payer
		}
	case turnKey:
		if s.turn > 0 {
			return s.turn
		}
	case providerKey:
		return &s.provider // also if it is empty: that of an enclosing team is of another conversation
	}
	return s.Context.Value(key)
}

// PayerOf returns the budgets of ctx, or nil.
func PayerOf(ctx context.Context) *Payer {
	p, _ := ctx.Value(budgetKey{}).(*Payer)
	return p
}

// Reserve sets aside what a call takes at most in each budget that does not pay already for a
// call that encloses ctx, and returns what all of them grant. The call is made with the returned
// context, under which calls inside it are not paid again. pay settles all budgets; it is called
// once, whether or not err is nil.
func (p *Payer) Reserve(ctx context.Context, model string, most llm.Usage) (inner context.Context, granted llm.Usage, pay func(CallUsage), err error) {
	granted = most
	before, _ := ctx.Value(paidKey{}).(*paidChain)
	var settles []func(CallUsage)
	pay = func(u CallUsage) {
		for _, settle := range slices.Backward(settles) {
			settle(u)
		}
	}
	for b := p; b != nil; b = b.outer {
		if before.has(b) {
			continue
		}
		of, settle, err := b.budget.Reserve(ctx, model, granted)
		if err != nil {
			return ctx, granted, pay, err
		}
		granted, settles = of, append(settles, settle)
	}
	inner = context.WithValue(ctx, paidKey{}, &paidChain{p, before})
	return context.WithValue(inner, budgetKey{}, (*Payer)(nil)), granted, pay, nil
}

// Turn returns the turn of ctx, and whether the caller supervises the calls.
func Turn(ctx context.Context) (n int, supervised bool) {
	n, supervised = ctx.Value(turnKey{}).(int)
	return n, supervised
}

// ProviderData returns what providers need back with the turns of the conversation before that of ctx,
// from the first turn on. An entry is nil if nothing is needed, and the list may be shorter than the
// conversation. It must not be changed.
func ProviderData(ctx context.Context) []*llm.ProviderData {
	if list, _ := ctx.Value(providerKey{}).(*[]*llm.ProviderData); list != nil {
		return *list
	}
	return nil
}

// WithWorkspace returns a context with the workspace of an attempt. The function makes it when
// it is called first.
func WithWorkspace(ctx context.Context, open func() (*os.Root, error)) context.Context {
	return context.WithValue(ctx, workspaceKey{}, open)
}

// Workspace returns what opens the workspace of ctx, or nil if it has none.
func Workspace(ctx context.Context) func() (*os.Root, error) {
	open, _ := ctx.Value(workspaceKey{}).(func() (*os.Root, error))
	return open
}

// A Stream gets the text that a model writes while it arrives, without reasoning. Pieces of one
// attempt follow each other; another number of the attempt means that the text begins again.
type Stream func(llm.Delta)

// WithStream returns a context whose agent streams what its model writes.
func WithStream(ctx context.Context, s Stream) context.Context {
	return context.WithValue(ctx, streamKey{}, s)
}

// StreamOf returns the stream of ctx, or nil if nobody watches.
func StreamOf(ctx context.Context) Stream {
	s, _ := ctx.Value(streamKey{}).(Stream)
	return s
}
