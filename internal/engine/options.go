package engine

import (
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/task"
)

// RunOptions tune one run. A nil *RunOptions and the zero value both mean the defaults.
type RunOptions = plan.Options

// settings returns options with every default filled in.
func settings(o *RunOptions) RunOptions {
	if o == nil {
		o = new(RunOptions)
	}
	return o.WithDefaults()
}

// checkStored reports stored runs that the options need and do not have. A plan needs none.
func checkStored(o *RunOptions) task.Problems {
	if o.Replay != nil && o.Past == nil {
		return task.Problems{{Pointer: "/replay", Message: "there is no run to replay", Hint: "call Team.Replay with the ID of the run", Err: task.ErrInvalid}}
	}
	if !o.Reuse || o.Journal != nil || o.Replay != nil {
		return nil
	}
	return task.Problems{{Pointer: "/reuse", Message: "reuse needs a journal with earlier answers, and there is none", Hint: "set Journal, or unset Reuse", Err: task.ErrInvalid}}
}
