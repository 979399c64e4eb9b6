package agent

import (
	"context"
	"errors"

	"github.com/runteam/runteam/prompt"
)

// ErrNone reports a nil agent.
var ErrNone = errors.New("no agent")

// An Agent turns one prompt into a reply. Run must return when ctx ends and be safe for
// concurrent use: one agent may work on several tasks at once. An agent written in Go
// must base its reply on the prompt alone; a team cannot enforce this.
//
// An [LLM] pays for its model calls from the budgets of the run. An agent written in Go
// should call models through [Metered]. The usage in its reply covers all its calls,
// including metered ones; usage beyond those is paid afterwards. Calls that are neither
// metered nor reported count in no usage and no budget.
type Agent interface {
	Run(ctx context.Context, p prompt.Prompt) (Reply, error)
}

// Func makes a function an [Agent]. A function that calls a model should call it through
// [Metered], so that budgets hold for the call.
type Func func(ctx context.Context, p prompt.Prompt) (Reply, error)

// Run calls f. A nil f returns [ErrNone].
func (f Func) Run(ctx context.Context, p prompt.Prompt) (Reply, error) {
	if f == nil {
		return Reply{}, ErrNone
	}
	return f(ctx, p)
}
