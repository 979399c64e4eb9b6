package plan

import (
	"slices"
	"time"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// DefaultConcurrency is how many attempts run at the same time by default.
const DefaultConcurrency = 5

// Options are what the tasks of one run are checked and executed under.
type Options struct {
	RunID  string // empty means a new UUID
	Inputs []Input
	Output string // title, key or id of the task whose result is the answer; empty means the sinks

	MaxConcurrency int           // attempts at the same time
	Timeout        time.Duration // bound on the run; zero means none
	Strategy       assign.Strategy
	MaxTokenBudget int
	MaxCostBudget  llm.Money

	Answer *Goal // the goal that the coordinator answers; nil without one
	Auto   bool  // a goal of one simple step goes to the agent that fits it best, without a plan

	Assert   []flow.Assertion
	Messages []Message
	Bus      *mailbox.Bus
	Memory   teammemory.Store

	Invalid task.Problems // with what the caller wrote for these options

	UserAccepts *label.Classification // never nil after [Options.WithDefaults]
	Reveal      bool                  // UserAccepts was raised for the result of this run alone

	Past       *record.History // the run is resumed; nil if it is new
	Replay     *Replay         // the run is repeated; nil if it is not
	Reuse      bool
	Fresh      []string
	PriorCalls []PriorCall // of earlier processes of the run
	Planned    bool        // the coordinator planned the tasks
}

// A PriorCall is a model call of an earlier process of the run.
type PriorCall struct {
	Agent string
	Model string
	Usage llm.Usage
	Cost  llm.Money // zero if it was not recorded
}

// RecordClearance is the highest label of what records of the run contain: events,
// errors, prompts, and the results that the journal shows. A clearance that was
// raised for the result alone does not count.
func (o *Options) RecordClearance() label.Classification {
	if o.Reveal {
		return min(*o.UserAccepts, label.Confidential)
	}
	return *o.UserAccepts
}

// WithDefaults returns a copy with every default filled in, which later changes by the
// caller do not affect.
func (o Options) WithDefaults() Options {
	if o.MaxConcurrency == 0 {
		o.MaxConcurrency = DefaultConcurrency
	}
	accepts := label.Confidential
	if o.UserAccepts != nil {
		accepts = *o.UserAccepts
	}
	o.UserAccepts = &accepts
	o.Inputs = takeResults(o.Inputs)
	o.Messages, o.Assert, o.Fresh = slices.Clone(o.Messages), slices.Clone(o.Assert), slices.Clone(o.Fresh)
	return o
}
