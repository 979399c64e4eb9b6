package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/codes"
)

// errRecordedCancel ends an attempt at a task whose call was canceled when the answers were recorded.
var errRecordedCancel = fmt.Errorf("%w when its answers were recorded", ErrCanceledTask)

// A lateParent ends the children of an attempt that took too long.
type lateParent struct {
	error
	depth int // of the attempt
}

// Unwrap returns the error of the attempt.
func (e *lateParent) Unwrap() error { return e.error }

// CallEnd says for a recording how a call ended whose context ended because of cause. It returns nil if
// nothing is to be repeated: the same call is made again.
func CallEnd(cause error) *callfault.EndedError {
	if outer, ok := errors.AsType[*lateParent](cause); ok {
		return &callfault.EndedError{By: callfault.TimeLimit, Depth: outer.depth}
	}
	switch {
	case errors.Is(cause, ErrPolicyReplaced), errors.Is(cause, ErrAnswered):
		return nil
	case errors.Is(cause, ErrInterrupted):
		return &callfault.EndedError{By: callfault.Interrupted}
	case errors.Is(cause, ErrAttemptTimeout), errors.Is(cause, codes.Condition(codes.Timeout)):
		return &callfault.EndedError{By: callfault.TimeLimit, Depth: callfault.OwnLimit}
	}
	return &callfault.EndedError{By: callfault.Canceled}
}

// asRecorded returns the error of x if a script says how its call ended: the one with which it ended then. a is the
// attempt that x belongs to, nil for a step of the coordinator.
func asRecorded(x *modelCall, a *attempt, err error) error {
	ended, ok := errors.AsType[*callfault.EndedError](err)
	switch {
	case !ok:
	case ended.By == callfault.Canceled:
		return errRecordedCancel
	case ended.By == callfault.Interrupted && a != nil && a.isChild():
		return ErrInterrupted
	case ended.By == callfault.TimeLimit && x.contract.Duration > 0 && !endsParent(a, ended):
		return x.late()
	case ended.By == callfault.TimeLimit:
		return fmt.Errorf("%w: %w", ErrAttemptTimeout, ended)
	}
	return err
}

// endsParent reports whether the time limit that ended a call of a child was not that of the child.
func endsParent(child *attempt, ended *callfault.EndedError) bool {
	return ended.By == callfault.TimeLimit && child != nil && ended.Depth >= 0 && ended.Depth < child.depth
}

// outerEnd returns the error that ends the parent of a child too, if a script says that err did so; otherwise nil.
func outerEnd(parent, child *attempt, err error) error {
	if errors.Is(err, errRecordedCancel) {
		return err
	}
	ended, ok := errors.AsType[*callfault.EndedError](err)
	switch {
	case !ok || !endsParent(child, ended):
		return nil
	case ended.Depth == parent.depth && parent.contract.Duration > 0:
		return parent.late()
	}
	return err
}

// endOfWait returns why a parent does not wait any more for its children, whose context within ended.
func endOfWait(a *attempt, within context.Context, err error) error {
	if late, ok := errors.AsType[*lateParent](context.Cause(within)); ok && a.ctx.Err() == nil {
		return late.error
	}
	return withCause(within, err)
}

// endedByCommand reports whether somebody ended a call that ended with an error.
func endedByCommand(err error) bool {
	return errors.Is(err, ErrInterrupted) || errors.Is(err, ErrCanceledTask) || errors.Is(err, ErrPolicyReplaced) || errors.Is(err, errRecordedCancel)
}
