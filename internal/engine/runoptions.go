package engine

import (
	"slices"
	"time"

	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/teammemory"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// RunOptions tune one run. A nil *RunOptions and the zero value both mean the defaults.
type RunOptions struct {
	RunID  string // empty means a new UUID
	Inputs []Input
	Output string // title, key or id of the task whose result is the answer; empty means the sinks

	MaxConcurrency int           // attempts at the same time; zero means 5
	Timeout        time.Duration // bound on the run; zero means none

	// Strategy says who gets a task without an assignee; empty means
	// dependency-first.
	Strategy assign.Strategy

	// MaxTokenBudget bounds the tokens of all model calls of the run; zero means
	// no bound. Before each call an estimate of it is reserved (a fourth of the
	// bytes that are sent, and the bound on the reply, or 1,000 if it has none);
	// afterwards what the endpoint counted takes its place. A call for which not
	// enough is left waits for those under way, and is then not made: its task
	// fails with BUDGET_EXCEEDED, and tasks that have not started are skipped. A reply or a
	// prompt of more tokens than estimated can so overdraw the budget by the
	// excess, once for each call under way.
	MaxTokenBudget int

	// MaxCostBudget bounds the cost of all model calls of the run by [Config].Prices; zero
	// means no bound. Reservations are made as for tokens, at the price of uncached input
	// and of the more expensive kind of output. A call that does not fit fails with the
	// code COST_BUDGET_EXCEEDED. A model without a price is an error before the run.
	MaxCostBudget llm.Money

	// Answer, if not nil, is the goal that the coordinator answers from the
	// results of [Team.RunTasks]: the answer is then the synthesis. Of
	// [Team.RunTeam] it is not used, since the goal itself is what is answered.
	Answer *Goal
	Auto   bool // of RunTeam: a goal of one simple step goes to the agent that fits it best, without a plan

	// Assert are assertions about the flow of the run. The run does not start if one
	// does not hold. A goal's plan that breaks one is given back to the coordinator.
	Assert []flow.Assertion

	Invalid task.Problems // with what the caller wrote for these options; the run does not start with any

	// Messages are sent before anything runs. Bus, made by [Team.NewBus], lets
	// messages come during the run: from the program, and from agents, which send
	// through [OutboxFrom]. Nil means that there are none but Messages, unless the
	// run resumes or replays one that had more.
	Messages []Message
	Bus      *mailbox.Bus
	Memory   teammemory.Store // what the team knows, also from earlier runs; nil means a store of this run alone
	Monitor  *Monitor         // shows the run while it is in progress; nil means none

	// UserAccepts is the clearance of the caller, who reads results, events and
	// errors. Nil means confidential. Reveal says that it was raised on request
	// for the Result of this run alone: events, records of prompts and the journal
	// hold nothing above confidential, and one event says that the caller reads more.
	UserAccepts *label.Classification
	Reveal      bool

	// Subscribers receive every event of the run in order, each in a goroutine
	// of its own. A slow or panicking one changes nothing for the run; when the
	// run ends they have 5 seconds to catch up.
	Subscribers []func(event.Event)

	// Recorder keeps the record of the run: what the gate ruled, and each prompt.
	// Nil keeps none; see [Recorder].
	Recorder Recorder

	// Journal stores the run, so that it can be resumed after a crash. Nil stores
	// nothing. Gate decisions are durable before the model is called, and events
	// before subscribers receive them. If the journal fails, no further task starts,
	// events that could not be stored are not emitted, and the Result has what was done.
	Journal Journal

	// Reuse takes cached answers from other runs in the Journal: an answer to the
	// same prompt by an agent of the same Version that has not expired. Fresh names
	// tasks, by title, key or ID, whose cached answers are not used.
	Reuse bool
	Fresh []string

	// Tasks are the tasks of [Team.Resume] and [Team.Replay]. If there are none, these
	// run the goal in Answer. Other methods take their tasks as an argument.
	Tasks []task.Spec

	// Replay changes what [Team.Replay] repeats. Nil repeats the run as it was.
	Replay *Replay

	// Random gives the jitter of delays between attempts, in [0, 1). Nil means
	// math/rand/v2.
	Random func() float64

	log     record.Log      // already open, of a run that is resumed
	history *record.History // of the run that is resumed or replayed
}

// settings returns the options with every default filled in.
func (o *RunOptions) settings() Options {
	if o == nil {
		o = new(RunOptions)
	}
	return Options{
		Options: plan.Options{
			RunID: o.RunID, Inputs: o.Inputs, Output: o.Output, MaxConcurrency: o.MaxConcurrency, Timeout: o.Timeout, Strategy: o.Strategy,
			MaxTokenBudget: o.MaxTokenBudget, MaxCostBudget: o.MaxCostBudget, Answer: o.Answer, Auto: o.Auto, Assert: o.Assert, Invalid: o.Invalid,
			Messages: o.Messages, Bus: o.Bus, Memory: o.Memory, UserAccepts: o.UserAccepts, Reveal: o.Reveal,
			Past: o.history, Replay: o.Replay, Reuse: o.Reuse, Fresh: o.Fresh,
		}.WithDefaults(),
		Monitor: o.Monitor, Subscribers: slices.Clone(o.Subscribers), Recorder: o.Recorder, Journal: o.Journal, Random: o.Random, Log: o.log,
	}.WithPriorCalls()
}

// DefaultConcurrency is how many attempts run at the same time by default.
const DefaultConcurrency = plan.DefaultConcurrency
