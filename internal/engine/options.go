package engine

import (
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// Options are what a run is checked and executed under.
type Options struct {
	plan.Options
	Monitor     *Monitor
	Subscribers []func(event.Event)
	Recorder    Recorder
	Journal     Journal
	Random      func() float64
	Log         record.Log // of a run that is resumed; nil if the run opens one in the Journal
	Untitled    bool       // a prompt is the description of its task alone
}

// WithPriorCalls returns the options with the calls that earlier processes of the run made.
func (o Options) WithPriorCalls() Options {
	if past := priorOf(&o.Options); past != nil {
		o.PriorCalls = past.spending()
	}
	return o
}

// checkKeeping reports what a run is to take from a journal that it has not. A plan
// needs none.
func (o *Options) checkKeeping() task.Problems {
	if o.Replay != nil && o.Past == nil {
		return task.Problems{{Pointer: "/replay", Message: "there is no run to replay", Hint: "call Team.Replay with the ID of the run", Err: task.ErrInvalid}}
	}
	if !o.Reuse || o.Journal != nil || o.Replay != nil {
		return nil
	}
	return task.Problems{{Pointer: "/reuse", Message: "reuse needs a journal with earlier answers, and there is none", Hint: "set Journal, or unset Reuse", Err: task.ErrInvalid}}
}
