package agent

import (
	"context"
	"errors"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/internal/tokencount"
	"github.com/runteam/runteam/llm"
)

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
	return meteredAs(ctx, m, nameOf(m), nil)
}

// meteredAs is Metered for a model whose price is found by this name. If lowered is not nil, each call sets it: to the limit
// of its reply if a budget made that lower than was asked for, else to zero. Such calls must follow each other.
func meteredAs(ctx context.Context, m llm.Model, name string, lowered *int) llm.Model {
	payer := supervise.PayerOf(ctx)
	if payer == nil {
		return m
	}
	return &metered{model: m, name: name, payer: payer, lowered: lowered}
}

// A metered model reserves what each call may take, and settles what it took.
type metered struct {
	model llm.Model
	name  string
	payer *supervise.Payer

	lowered *int // see meteredAs
}

// Call makes one call within the budget. A nil ctx is an error.
func (m *metered) Call(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	if ctx == nil {
		return m.model.Call(ctx, req, emit)
	}
	expected := tokencount.Estimate(&req)
	most := expected
	if req.MaxTokens <= 0 {
		most.OutputTokens = tokencount.LongReply
	}
	inner, granted, pay, err := m.payer.Reserve(ctx, m.name, most)
	spent := supervise.CallUsage{} // if a budget refuses the call
	defer func() { pay(spent) }()
	if err != nil {
		return llm.Response{}, err
	}
	expected.OutputTokens = min(expected.OutputTokens, granted.OutputTokens)
	lowered := 0
	if granted.OutputTokens < req.MaxTokens {
		req.MaxTokens, lowered = granted.OutputTokens, granted.OutputTokens
	}
	if m.lowered != nil {
		*m.lowered = lowered
	}
	spent.Charged = expected // if the model panics
	res, err := m.model.Call(inner, req, emit)
	spent = usageOf(expected, res, err)
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

// written returns how many bytes a model wrote.
func written(res llm.Response) int {
	n := len(res.Text) + len(res.Reasoning)
	for i := range res.ToolCalls {
		n += len(res.ToolCalls[i].Name) + len(res.ToolCalls[i].Arguments)
	}
	return n
}

// usageOf returns what a call took. What the endpoint did not count, or counted as zero,
// is estimated from the bytes. A failed call takes at least what is certain, so that a
// faulty endpoint does not bypass the budget: a reply that cannot be used takes what was
// reserved, and a call that broke off or came back empty takes the prompt. A call that
// the endpoint refused, or that did not reach it, takes nothing.
func usageOf(expected llm.Usage, res llm.Response, err error) supervise.CallUsage {
	if err == nil {
		took := res.Usage
		if took.InputTokens <= 0 {
			took.InputTokens = expected.InputTokens
		}
		if took.OutputTokens <= 0 {
			took.OutputTokens = tokencount.OfBytes(written(res))
		}
		return supervise.CallUsage{Charged: took, Counted: res.Usage, Answered: true}
	}
	least := llm.Usage{InputTokens: expected.InputTokens}
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return supervise.CallUsage{Charged: least}
	}
	switch failed.Kind {
	case callfault.BadResponse, callfault.TooLarge:
		least = expected
	case callfault.ServerError:
		least = llm.Usage{}
		if failed.Status == 200 { // the finish reason of a reply reports the failure
			least = expected
		}
	case callfault.Cut, callfault.Timeout, callfault.Empty:
	default:
		least = llm.Usage{}
	}
	took := failed.Usage
	took.InputTokens, took.OutputTokens = max(least.InputTokens, took.InputTokens), max(least.OutputTokens, took.OutputTokens)
	return supervise.CallUsage{Charged: took, Counted: failed.Usage}
}
