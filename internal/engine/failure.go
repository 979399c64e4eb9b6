package engine

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/schema"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// Conditions of an attempt.
var (
	ErrPanic          = errors.New("the agent panicked")
	ErrAttemptTimeout = errors.New("the attempt took too long")
	ErrReplyTimeout   = errors.New("it was waiting for a reply") // beside ErrAttemptTimeout
	ErrDependency     = errors.New("a dependency failed")
	ErrMemory         = errors.New("the shared memory could not be read")
	ErrRecord         = errors.New("the record of the run could not be kept")

	errUnreadable = errors.New("the reply could not be checked")
	errUsage      = errors.New("the reply reports negative usage; count tokens and turns from zero")
	errInternal   = errors.New("a bug in runteam") // nothing that an agent did
)

// errorCodes are the codes of errors. The first that an error wraps counts.
var errorCodes = [...]struct {
	of   error
	code string
}{
	{ErrBudget, codes.Budget},
	{ErrCostBudget, codes.CostBudget},
	{plan.ErrNoPrice, codes.NoPrice},
	{ErrEffectsUncertain, codes.Effects},
	{codes.Condition(codes.Effects), codes.Effects},
	{ErrOutputFiles, codes.OutputFiles},
	{ErrWorkspaceLimit, codes.Workspace},
	{ErrFilesConflict, codes.FilesConflict},
	{ErrMemory, codes.Memory},
	{ErrRecord, codes.Record},
	{ErrJournal, codes.Journal},
	{ErrReplay, codes.Replay},
	{codes.Condition(codes.Guard), codes.Guard},
	{codes.Condition(codes.Schema), codes.Schema},
	{codes.Condition(codes.Truncated), codes.Truncated},
	{codes.Condition(codes.Filtered), codes.Filtered},
	{codes.Condition(codes.Refused), codes.Refused},
	{codes.Condition(codes.UnknownFinish), codes.UnknownFinish},
	{codes.Condition(codes.MaxTurns), codes.MaxTurns},
	{ErrLoopLimit, codes.LoopLimit},
	{ErrLoopStuck, codes.LoopStuck},
	{ErrRejected, codes.Rejected},
	{ErrListTooLong, codes.ListTooLong},
	{codes.Condition(codes.Loop), codes.Loop},
	{codes.Condition(codes.ToolCall), codes.ToolCall},
	{ErrCanceledTask, codes.Canceled},
	{ErrInterrupted, codes.Interrupted},
	{errDrained, codes.Interrupted},
	{ErrPolicyReplaced, codes.PolicyReplaced},
	{ErrAttemptTimeout, codes.Timeout},
	{ErrTimeout, codes.Timeout},
	{codes.Condition(codes.Timeout), codes.Timeout},
	{context.DeadlineExceeded, codes.Timeout},
	{errInternal, codes.Internal},
	{ErrPanic, codes.Panic},
	{errUnreadable, codes.Reply},
	{errUsage, codes.Reply},
	{brief.ErrTooLarge, codes.PromptTooLarge},
	{ErrCanceled, codes.Canceled},
	{context.Canceled, codes.Canceled},
}

// code names an error for results and events.
func code(err error) string {
	if held, ok := errors.AsType[*gate.WithheldError](err); ok {
		return heldCode(held, err)
	}
	if _, ok := errors.AsType[*gate.Refusal](err); ok {
		return gate.CodeWithheld
	}
	if again, ok := errors.AsType[*repeatedError](err); ok {
		return again.code
	}
	for _, c := range errorCodes {
		if errors.Is(err, c.of) {
			return c.code
		}
	}
	if failed, ok := errors.AsType[*llm.Error](err); ok {
		if !callfault.IsKnown(failed.Kind) { // the endpoint or the agent chose this word
			return codes.Model
		}
		return "MODEL_" + upperSnake(failed.Kind)
	}
	return codes.Agent
}

// alwaysFails are the codes of failures that no task accepts: the gate, the record, the journal or a replay could not
// keep what they promise, nobody knows whether an effect took place, somebody ended the task, or runteam has a bug.
var alwaysFails = [...]string{
	gate.CodeWithheld, codes.Reply, codes.Record, codes.Journal, codes.Replay, codes.Effects, codes.Canceled, codes.Internal,
}

// acceptsFailure reports whether a run can succeed although a task failed with a code. ended is the budget of the run
// that is spent: one that is spent ends the run, and that of an agent does not.
func acceptsFailure(t *task.Spec, code string, ended exhausted) bool {
	isBudget := code == codes.Budget || code == codes.CostBudget || code == codes.NoPrice
	return t.OnFailure == task.ContinueRun && !slices.Contains(alwaysFails[:], code) && !(isBudget && ended != notExhausted)
}

// heldCode returns the code of an error of the gate, which err wraps.
func heldCode(held *gate.WithheldError, err error) string {
	switch held.Decision.Rule {
	case gate.RuleSchema:
		if errors.Is(err, schema.ErrGuard) {
			return codes.Guard
		}
		return codes.Schema
	case gate.RuleClaim, gate.RuleTags, gate.RuleReplySize:
		return codes.Reply
	case gate.RuleContract: // the reply came too late
		return codes.Timeout
	}
	return held.Code()
}

// terminal reports whether another attempt at the same task would end the same way.
func terminal(err error) bool {
	if held, ok := errors.AsType[*gate.WithheldError](err); ok {
		return held.Decision.Rule != gate.RuleContract // a late reply is a timeout, whether the agent minds its context or not
	}
	if _, ok := errors.AsType[*gate.Refusal](err); ok {
		return true
	}
	if _, ok := errors.AsType[*repeatedError](err); ok {
		return true
	}
	if failed, ok := errors.AsType[*llm.Error](err); ok {
		return callfault.IsTerminal(failed.Kind)
	}
	for _, condition := range [...]error{ErrPersonTimeout, ErrEffectsUncertain, ErrListTooLong, codes.Condition(codes.Effects), ErrFilesConflict, ErrWorkspaceLimit, ErrBudget, ErrCostBudget, plan.ErrNoPrice, ErrRecord, ErrJournal, ErrReplay, schema.ErrMismatch, codes.Condition(codes.MaxTurns), codes.Condition(codes.Loop), codes.Condition(codes.ToolCall), codes.Condition(codes.Filtered), codes.Condition(codes.Refused), schema.ErrInvalid, brief.ErrTooLarge, brief.ErrInvalid, llm.ErrNoModel, errUsage, errInternal} {
		if errors.Is(err, condition) {
			return true
		}
	}
	return false
}

// A failure says how a model call failed; err is nil if it did not.
type failure struct {
	err          error
	code         string
	message      string // in the form that the caller is cleared for
	fault        *envelope.Envelope
	terminal     bool        // another attempt would end the same way
	aborted      bool        // the run's context ended it
	reached      reach       // what it says about the endpoint
	untranslated *translator // the translation that the model call fails with; nil if it does not
	failedHolder *modelCall  // of the agent that it transferred the conversation to, which failed; nil if none did
}

// setError sets how the model call ended and what readers learn of it. The methods of an
// agent's error are the agent's code, so all of them are called here, where a panic is
// caught.
func (x *modelCall) setError(ctx context.Context, err error) {
	if x.err = err; err == nil {
		return
	}
	x.aborted = ctx.Err() != nil && (errors.Is(err, ctx.Err()) || errors.Is(err, context.Cause(ctx))) || errors.Is(err, ErrJournal)
	x.code, x.terminal, x.reached = code(err), terminal(err), reached(err)
	held, isWithheld := errors.AsType[*gate.WithheldError](err)
	if isWithheld { // the caller unwraps it
		held.Decision = *x.run.decided(&held.Decision)
	}
	switch s, h := x.untranslated, x.failedHolder; {
	case h != nil && h.err != nil && errors.Is(err, h.err): // with the label that it has for the holder
		x.message, x.fault = h.message, asOfBoth(x, h.fault)
	case s != nil && s.call.fault != nil && errors.Is(err, s.call.err): // it fails because of the translation
		x.message, x.fault = s.call.message, s.call.fault
	case errors.Is(err, ErrRecord), errors.Is(err, ErrJournal): // the caller's own code says why, to the caller alone
		_, x.fault = x.run.ownError(x, x.code, "the record of the run could not be kept", time.Now())
		x.message = x.run.errorText(err.Error())
	case errors.Is(err, ErrReplay):
		x.message, x.fault = x.run.ownError(x, x.code, err.Error(), time.Now())
	case isWithheld && x.stage != givenPrompt && s == nil: // the detail may depend on the value, so only the caller gets it
		x.fault = x.run.whyWithheld(x, &held.Decision, time.Now())
		x.message = x.run.errorText(err.Error())
	default:
		x.message, x.fault = x.run.explain(x, x.code, err.Error())
		if failed, ok := errors.AsType[*llm.Error](err); ok && failed.Kind == callfault.PromptTooLong && x.receipt != nil {
			x.message += largestParts(promptParts(x.receipt, func(s gate.Source) string { return contextName(s, x.offers, x.part) }))
		}
	}
}

// What a failed attempt says about its endpoint.
type reach uint8

const (
	noModel       reach = iota // no model was called
	modelAnswered              // it answered, if only to refuse
	modelMissing               // no endpoint answered, or none knows the model
)

// reached says whether the endpoint behind an error answered as one that knows the model.
func reached(err error) reach {
	failed, ok := errors.AsType[*llm.Error](err)
	switch {
	case !ok:
		return noModel
	case failed.Kind == callfault.UnknownModel || !callfault.IsAnswered(failed.Kind, failed.Status):
		return modelMissing
	}
	return modelAnswered
}

func upperSnake(words string) string {
	return strings.ToUpper(strings.ReplaceAll(words, " ", "_"))
}
