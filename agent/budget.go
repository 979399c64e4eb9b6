package agent

import (
	"context"
	"errors"

	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/llm"
)

// ReplyEstimate is how many tokens a reply without a bound is expected to
// take, when a budget is asked for them.
const ReplyEstimate = 1000

// bytesPerToken is the length of a token in estimates.
const bytesPerToken = 4

// A Budget admits the model calls of agents and counts what they take.
type Budget interface {
	// Reserve sets aside what a call of the named model may take; the name is empty
	// for a model that does not name itself. It may wait until other calls have been
	// settled, or ctx ends. Its error ends the agent's work and is returned as it is.
	// The function that it returns is called once, when the call has ended.
	Reserve(ctx context.Context, model string, estimate llm.Usage) (settle func(Spent), err error)
}

// Spent is what one model call took.
type Spent struct {
	Charged  llm.Usage // what a budget charges: estimated where the endpoint counted nothing
	Counted  llm.Usage // what the endpoint counted; zero if it counted nothing
	Answered bool      // the call returned a reply
}

type (
	budgetKey struct{} // the context value is a *budgetChain
	paidKey   struct{} // the context value is a *paidChain
)

// A budgetChain is a budget of a context, followed by those of its parent contexts.
type budgetChain struct {
	budget Budget
	outer  *budgetChain
}

// A paidChain lists the budgets that already pay for the model calls that enclose a
// context. A call inside them is not paid again.
type paidChain struct {
	from   *budgetChain
	before *paidChain
}

// has reports whether b is one of the budgets.
func (p *paidChain) has(b *budgetChain) bool {
	for ; p != nil; p = p.before {
		for from := p.from; from != nil; from = from.outer {
			if from == b {
				return true
			}
		}
	}
	return false
}

// WithBudget returns a context under which every [LLM], and every model that
// [Metered] returns, reserves from b before each model call, including retries. If
// ctx already has a budget, both must admit the call. WithBudget panics if ctx is nil.
func WithBudget(ctx context.Context, b Budget) context.Context {
	outer, _ := ctx.Value(budgetKey{}).(*budgetChain)
	return context.WithValue(ctx, budgetKey{}, &budgetChain{b, outer})
}

// Metered returns a model whose calls are paid from the budget of ctx. An agent written
// in Go that calls a model itself uses it, because a team gives each agent a context with
// a budget. Each call first reserves what it may take, and fails if a budget of the run
// or the agent has too little left. What it took is added to the usage of the task. A
// team does not see calls of other models.
//
//	res, err := agent.Metered(ctx, model).Call(ctx, req, nil)
//
// The calls are paid from the budget of ctx, whatever context they are made with. Meter
// the model that [llm.Retry] or [llm.Fallback] wraps, not their result, so that each
// attempt is paid. A call of an [LLM], which is paid already, is not paid twice. Without
// a budget in ctx, Metered returns m. It panics if ctx is nil.
func Metered(ctx context.Context, m llm.Model) llm.Model {
	if isNil(m) {
		m = llm.ModelFunc(nil)
	}
	return meteredAs(ctx, m, nameOf(m))
}

// meteredAs is Metered for a model whose price is found by this name.
func meteredAs(ctx context.Context, m llm.Model, name string) llm.Model {
	from, ok := ctx.Value(budgetKey{}).(*budgetChain)
	if !ok || from == nil {
		return m
	}
	return &metered{model: m, name: name, from: from}
}

// A metered model reserves what each call may take, and settles what it took.
type metered struct {
	model llm.Model
	name  string
	from  *budgetChain
}

// Call makes one call within the budget. A nil ctx is an error.
func (m *metered) Call(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	if ctx == nil {
		return m.model.Call(ctx, req, emit)
	}
	before, _ := ctx.Value(paidKey{}).(*paidChain)
	expected := estimate(req)
	spent := Spent{} // if another budget refuses the call
	for b := m.from; b != nil; b = b.outer {
		if before.has(b) {
			continue
		}
		settle, err := b.budget.Reserve(ctx, m.name, expected)
		if err != nil {
			return llm.Response{}, err
		}
		defer func() { settle(spent) }()
	}
	spent = Spent{Charged: expected} // if the model panics
	inner := context.WithValue(ctx, paidKey{}, &paidChain{m.from, before})
	inner = context.WithValue(inner, budgetKey{}, (*budgetChain)(nil)) // what the model does inside is paid with this call
	res, err := m.model.Call(inner, req, emit)
	spent = spentBy(expected, res, err)
	return res, err
}

// Endpoint returns the base URL of the model.
func (m *metered) Endpoint() string { return endpoint.Of(m.model) }

// Endpoints returns the base URLs of the model.
func (m *metered) Endpoints() []string { return endpoint.All(m.model) }

// Name returns the name of the model, or "" if it does not name itself.
func (m *metered) Name() string { return m.name }

// nameOf returns the name of a model that has a method Name() string, as those
// of llm/openai have; otherwise "".
func nameOf(m llm.Model) string {
	if named, ok := m.(interface{ Name() string }); ok {
		return named.Name()
	}
	return ""
}

// estimate returns what a call is expected to take at most: a token for each
// four bytes that are sent, and the bound on the reply, or [ReplyEstimate].
func estimate(req llm.Request) llm.Usage {
	sent := len(req.System)
	if req.Schema != nil {
		sent += len(req.Schema)
	}
	for _, m := range req.Messages {
		sent += len(m.Text)
	}
	reply := req.MaxTokens
	if reply <= 0 {
		reply = ReplyEstimate
	}
	return llm.Usage{InputTokens: tokens(sent), OutputTokens: reply}
}

// tokens returns how many tokens so many bytes are taken for, rounded up.
func tokens(bytes int) int { return (bytes + bytesPerToken - 1) / bytesPerToken }

// written returns how many bytes a model wrote.
func written(res llm.Response) int {
	n := len(res.Text) + len(res.Reasoning)
	for i := range res.ToolCalls {
		n += len(res.ToolCalls[i].Name) + len(res.ToolCalls[i].Arguments)
	}
	return n
}

// spentBy returns what a call took. What the endpoint did not count, or counted as zero,
// is estimated from the bytes. A failed call takes at least what is certain, so that a
// faulty endpoint does not bypass the budget: a reply that cannot be used takes what was
// reserved, and a call that broke off or came back empty takes the prompt. A call that
// the endpoint refused, or that did not reach it, takes nothing.
func spentBy(expected llm.Usage, res llm.Response, err error) Spent {
	if err == nil {
		took := res.Usage
		if took.InputTokens <= 0 {
			took.InputTokens = expected.InputTokens
		}
		if took.OutputTokens <= 0 {
			took.OutputTokens = tokens(written(res))
		}
		return Spent{Charged: took, Counted: res.Usage, Answered: true}
	}
	least := llm.Usage{InputTokens: expected.InputTokens}
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return Spent{Charged: least}
	}
	switch failed.Kind {
	case llm.BadResponse, llm.TooLarge:
		least = expected
	case llm.ServerError:
		least = llm.Usage{}
		if failed.Status == 200 { // the finish reason of a reply reports the failure
			least = expected
		}
	case llm.Cut, llm.Timeout, llm.Empty:
	default:
		least = llm.Usage{}
	}
	took := failed.Usage
	took.InputTokens, took.OutputTokens = max(least.InputTokens, took.InputTokens), max(least.OutputTokens, took.OutputTokens)
	return Spent{Charged: took, Counted: failed.Usage}
}
