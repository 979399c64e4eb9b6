package team

import (
	"context"
	"errors"
	"strings"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
)

// Conditions of an attempt.
var (
	ErrPanic          = errors.New("the agent panicked")
	ErrAttemptTimeout = errors.New("the attempt took too long")
	ErrDependency     = errors.New("a dependency failed")
	ErrMemory         = errors.New("the shared memory could not be read")
	ErrRecord         = errors.New("the record of the run could not be kept")

	errUnreadable = errors.New("the reply could not be checked")
	errUsage      = errors.New("the reply reports negative usage; count tokens and turns from zero")
	errInternal   = errors.New("a bug in runteam") // nothing that an agent did
)

// code names an error for results and events.
func code(err error) string {
	if held, ok := errors.AsType[*handoff.HeldError](err); ok {
		return heldCode(held, err)
	}
	if _, ok := errors.AsType[*handoff.Refusal](err); ok {
		return handoff.CodeHeld
	}
	if again, ok := errors.AsType[*repeatedError](err); ok {
		return again.code
	}
	switch {
	case errors.Is(err, ErrBudget):
		return CodeBudget
	case errors.Is(err, ErrCostBudget):
		return CodeCostBudget
	case errors.Is(err, ErrNoPrice):
		return CodeNoPrice
	case errors.Is(err, ErrMemory):
		return CodeMemory
	case errors.Is(err, ErrRecord):
		return CodeRecord
	case errors.Is(err, ErrJournal):
		return CodeJournal
	case errors.Is(err, ErrReplay):
		return CodeReplay
	case errors.Is(err, agent.ErrGuard):
		return CodeGuard
	case errors.Is(err, agent.ErrSchema):
		return CodeSchema
	case errors.Is(err, agent.ErrTruncated):
		return CodeTruncated
	case errors.Is(err, agent.ErrFiltered):
		return CodeFiltered
	case errors.Is(err, agent.ErrRefused):
		return CodeRefused
	case errors.Is(err, agent.ErrUnknownFinish):
		return CodeUnknownFinish
	case errors.Is(err, agent.ErrMaxTurns):
		return CodeMaxTurns
	case errors.Is(err, agent.ErrToolCall):
		return CodeToolCall
	case errors.Is(err, ErrAttemptTimeout), errors.Is(err, ErrTimeout), errors.Is(err, agent.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return CodeTimeout
	case errors.Is(err, errInternal):
		return CodeInternal
	case errors.Is(err, ErrPanic):
		return CodePanic
	case errors.Is(err, errUnreadable), errors.Is(err, errUsage):
		return CodeReply
	case errors.Is(err, prompt.ErrTooLarge):
		return CodePromptTooLarge
	case errors.Is(err, ErrCanceled), errors.Is(err, context.Canceled):
		return CodeCanceled
	}
	if failed, ok := errors.AsType[*llm.Error](err); ok {
		if !failed.Kind.Known() { // a word that somebody else chose
			return CodeModel
		}
		return "MODEL_" + upperSnake(string(failed.Kind))
	}
	return CodeAgent
}

// heldCode returns the code of an error of the gate, which err wraps.
func heldCode(held *handoff.HeldError, err error) string {
	switch held.Decision.Rule {
	case handoff.RuleSchema:
		if errors.Is(err, agent.ErrGuard) {
			return CodeGuard
		}
		return CodeSchema
	case handoff.RuleClaim, handoff.RuleTags, handoff.RuleReplySize:
		return CodeReply
	case handoff.RuleContract: // the reply came too late
		return CodeTimeout
	}
	return held.Code()
}

// terminal reports whether another attempt at the same task would end the same way.
func terminal(err error) bool {
	if held, ok := errors.AsType[*handoff.HeldError](err); ok {
		return held.Decision.Rule != handoff.RuleContract // a late reply is a timeout, whether the agent minds its context or not
	}
	if _, ok := errors.AsType[*handoff.Refusal](err); ok {
		return true
	}
	if _, ok := errors.AsType[*repeatedError](err); ok {
		return true
	}
	if failed, ok := errors.AsType[*llm.Error](err); ok {
		return failed.Terminal()
	}
	for _, condition := range [...]error{ErrBudget, ErrCostBudget, ErrNoPrice, ErrRecord, ErrJournal, ErrReplay, agent.ErrSchema, agent.ErrMaxTurns, agent.ErrToolCall, agent.ErrFiltered, agent.ErrRefused, agent.ErrBadSchema, prompt.ErrTooLarge, prompt.ErrInvalid, llm.ErrNoModel, errUsage, errInternal} {
		if errors.Is(err, condition) {
			return true
		}
	}
	return false
}

// What a failed attempt says about its endpoint.
type reach uint8

const (
	noModel       reach = iota // no model was called
	modelAnswered              // it answered, if only to refuse
	modelMissing               // nobody answered, or nobody knows the model
)

// reached says whether the endpoint behind an error answered as one that knows the model.
func reached(err error) reach {
	failed, ok := errors.AsType[*llm.Error](err)
	switch {
	case !ok:
		return noModel
	case failed.Kind == llm.UnknownModel || !failed.Answered():
		return modelMissing
	}
	return modelAnswered
}

func upperSnake(words string) string {
	return strings.ToUpper(strings.ReplaceAll(words, " ", "_"))
}
