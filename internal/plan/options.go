package plan

import (
	"slices"
	"time"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// DefaultConcurrency is how many attempts run at the same time by default.
const DefaultConcurrency = 5

// Options tune one run; team.RunOptions documents most of them. The zero value means the
// defaults.
type Options struct {
	RunID  string // empty means a new UUID
	Inputs []Input
	Output string // title, key or ID of the task whose result is the answer; empty means the tasks that no other task depends on

	MaxConcurrency int           // attempts at the same time; zero means [DefaultConcurrency]
	Timeout        time.Duration // limit on the run; zero means none
	Strategy       assign.Strategy
	Budget

	Answer *Goal // the goal that the coordinator answers; nil without one
	Auto   bool  // a goal of one simple step goes to the agent that fits it best, without a plan

	Assert   []flow.Assertion
	Messages []Message
	Bus      *mailbox.Bus
	Memory   teammemory.Store
	Invalid  task.Problems // of how the caller wrote these options; a run with any does not start

	UserAccepts *label.Classification // nil means confidential, and is never left after [Options.WithDefaults]
	Reveal      bool                  // UserAccepts was raised for the result of this run alone

	Monitor     *record.Monitor
	Subscribers []func(event.Event)
	Stream      func(event.Delta) // nil if nobody watches
	Recorder    record.Recorder   // nil if the caller records nothing
	Journal     record.Store
	Database    *JournalDatabase // that has the journal; nil if it is a file, or there is none
	Random      func() float64   // the jitter of delays between attempts, in [0, 1); nil means math/rand/v2

	AllowWidening bool // of the policy, by a command while the run works

	Drain <-chan struct{} // closed when the process is to stop: the run then begins no call, and has no end; nil if it never is

	StrictTools bool // a command or server that is not confined is a problem

	Reuse  bool
	Fresh  []string
	Tasks  []task.Spec // of a run that is resumed or replayed; other runs take them as an argument
	Replay *Replay     // the run is repeated; nil if it is not

	Machine string // on which the run is; empty means [endpoint.Machine]

	Stored
	OfSession
	KeepWorkspaces bool // the workspaces of tasks stay, if the caller may see all that is in them

	Planned  bool // the coordinator planned the tasks
	Untitled bool // a prompt is the description of its task alone
}

// Stored is what a journal has of the run that is resumed or replayed.
type Stored struct {
	Log  record.Log // already open; nil if the run opens one in the Journal
	Past *memo.Memo // nil if the run is new
}

// OfSession is what a run that is a turn of a session has of it. The zero value is that of any other run.
type OfSession struct {
	Turn         *record.SessionTurn
	Conversation []ConversationText // of the earlier turns, the oldest first; the coordinator reads it if there is a goal, else the only task
	EarlierCalls []PriorCall        // of the other turns, which count against the budgets
}

// A PriorCall is a model call of an earlier process of the run.
type PriorCall struct {
	Agent string
	Model string
	Usage llm.Usage
	Cost  llm.Money // zero if it was not recorded

	Hidden bool // from the caller: budgets count it, and their errors do not show it
	Told   bool // it is no call, but a cost that errors of budgets show to the caller
}

// PriorCalls returns the calls that earlier processes of a run made, for budgets.
func PriorCalls(m *memo.Memo) (list []PriorCall) {
	if !m.Is(memo.Own) {
		return nil
	}
	for _, t := range m.State.Tasks() {
		for _, x := range t.Answered() {
			list = append(list, PriorCall{Agent: x.Agent, Model: x.Model, Usage: x.Took(), Cost: x.Cost, Hidden: x.Partial})
		}
		for _, c := range m.State.Interrupted(t) {
			list = append(list, PriorCall{Agent: c.Agent, Model: c.Model, Usage: llm.Usage{InputTokens: gate.Tokens(c.Bytes)}, Hidden: c.Partial})
		}
	}
	return list
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

// KeepCaller lowers the clearance of the user to that of the caller of a run that is resumed: the user who started the
// run stays its caller.
func (o *Options) KeepCaller(of *record.History) {
	accepts := label.Confidential
	if o.UserAccepts != nil {
		accepts = *o.UserAccepts
	}
	if caller := of.Caller(); caller < accepts && !(o.Reveal && caller == label.Confidential) {
		accepts = caller
	}
	o.UserAccepts = &accepts
}

// WithDefaults returns a copy with every default filled in, which later changes by the
// caller do not affect.
func (o Options) WithDefaults() Options {
	if o.MaxConcurrency == 0 {
		o.MaxConcurrency = DefaultConcurrency
	}
	if o.Machine == "" {
		o.Machine = endpoint.Machine()
	}
	accepts := label.Confidential
	if o.UserAccepts != nil {
		accepts = *o.UserAccepts
	}
	o.UserAccepts = &accepts
	o.Inputs = takeTexts(o.Inputs)
	o.Conversation = slices.Clone(o.Conversation)
	o.Messages, o.Assert, o.Fresh = slices.Clone(o.Messages), slices.Clone(o.Assert), slices.Clone(o.Fresh)
	o.Subscribers = slices.Clone(o.Subscribers)
	return o
}
