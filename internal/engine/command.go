package engine

import (
	"context"
	"fmt"

	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/tool"
)

// An agent that is a command runs in the workspace of its attempt. A command that is not
// confined may have external effects. If it was interrupted, it is not known whether it had
// them, and it does not run again.

// attemptOf returns the attempt that a model call serves, or nil.
func attemptOf(o purpose) *attempt {
	switch o := o.(type) {
	case *attempt:
		return o
	case *turn:
		return o.of
	}
	return nil
}

// withWorkspace returns a context with the workspace of the attempt, for an agent that is a
// command.
func withWorkspace(ctx context.Context, x *modelCall, o purpose) context.Context {
	a := attemptOf(o)
	if a == nil || !x.run.team.Find(x.caps.Agent).UsesWorkspace() {
		return ctx
	}
	if a.conversation == nil {
		a.conversation = newConversation(a)
	}
	return supervise.WithWorkspace(ctx, a.files)
}

// effectOf returns the effect of a member's own work, as a CallStart has it.
func effectOf(m *plan.Member) string {
	if m.IsUnconfined() {
		return string(tool.External)
	}
	return ""
}

// checkCommand returns an error if the agent of an attempt is a command with effects that
// must not run now: in a replay, or after a run of it that was interrupted.
func checkCommand(a *attempt) error {
	m := a.run.team.Find(a.caps.Agent)
	switch {
	case !m.IsUnconfined():
		return nil
	case a.run.repeats():
		return fmt.Errorf("%w: a replay runs no command that is not confined", ErrReplay)
	case !m.Process().Repeatable && a.run.memo.MayHaveActed(a.task.ID) && !a.run.fresh.has(a.task.ID):
		return fmt.Errorf("%w: the command was interrupted before; find out what it did, and then run the task afresh", ErrEffectsUncertain)
	}
	return nil
}
