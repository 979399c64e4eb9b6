package agent

import (
	"context"
	"errors"

	"github.com/runteam/runteam/llm"
)

// ReplyEstimate is how many tokens a reply without a bound is expected to
// take, when a budget is asked for them.
const ReplyEstimate = 1000

// bytesPerToken is how long a token is taken to be where nobody has counted.
const bytesPerToken = 4

// A Budget is asked before each model call of an [LLM].
//
// Reserve sets aside what the call may take. It may wait for other calls to be
// settled, until ctx ends. Its error ends the agent's work and is returned as
// it is. The function that it returns is called once, when the call is over,
// with what it took; counted says whether an endpoint counted that, and not
// the agent by the bytes.
type Budget interface {
	Reserve(ctx context.Context, estimate llm.Usage) (settle func(took llm.Usage, counted bool), err error)
}

type budgetKey struct{}

// WithBudget returns a context under which every [LLM] asks b before each
// model call, also before one that it makes again. It panics if ctx is nil.
func WithBudget(ctx context.Context, b Budget) context.Context {
	return context.WithValue(ctx, budgetKey{}, b)
}

// paid returns a model whose calls the context's budget, if it has one, is asked for.
func paid(ctx context.Context, m llm.Model) llm.Model {
	b, ok := ctx.Value(budgetKey{}).(Budget)
	if !ok {
		return m
	}
	return llm.ModelFunc(func(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
		expected := estimate(req)
		settle, err := b.Reserve(ctx, expected)
		if err != nil {
			return llm.Response{}, err
		}
		took, counted := expected, false // if the model panics
		defer func() { settle(took, counted) }()
		res, err := m.Call(context.WithValue(ctx, budgetKey{}, nil), req, emit) // what a model does inside is paid with this call
		took, counted = taken(expected, res, err)
		return res, err
	})
}

// estimate returns what a call is expected to take at most: a token for each
// four bytes that are sent, and the bound on the reply, or [ReplyEstimate].
func estimate(req llm.Request) llm.Usage {
	sent := len(req.System)
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
	n := len(res.Text)
	for i := range res.ToolCalls {
		n += len(res.ToolCalls[i].Name) + len(res.ToolCalls[i].Arguments)
	}
	return n
}

// taken returns what a call took. What the endpoint did not count is estimated
// from the bytes, also where it reports zero tokens for a text. A failed call takes
// at least what is certain, so that a faulty endpoint does not bypass the budget: a
// reply that cannot be used takes what was reserved, and a call that broke off or
// came back empty takes the prompt. A call that the endpoint refused, or that did
// not reach it, takes nothing.
func taken(expected llm.Usage, res llm.Response, err error) (took llm.Usage, counted bool) {
	if err == nil {
		took = res.Usage
		if took.InputTokens <= 0 {
			took.InputTokens = expected.InputTokens
		}
		if took.OutputTokens <= 0 {
			took.OutputTokens = tokens(written(res))
		}
		return took, res.Usage != (llm.Usage{})
	}
	least := llm.Usage{InputTokens: expected.InputTokens}
	failed, ok := errors.AsType[*llm.Error](err)
	if !ok {
		return least, false
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
	return llm.Usage{
		InputTokens:  max(least.InputTokens, failed.Usage.InputTokens),
		OutputTokens: max(least.OutputTokens, failed.Usage.OutputTokens),
	}, failed.Usage != (llm.Usage{})
}
