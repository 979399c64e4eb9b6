package team

import (
	"time"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/internal/assign"
	"github.com/runteam/runteam/internal/engine"
	runevent "github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/flow"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/messagebus"
	"github.com/runteam/runteam/sharedmem"
	"github.com/runteam/runteam/task"
)

// RunOptions tune one run. A nil *RunOptions and the zero value both mean the defaults.
type RunOptions struct {
	RunID  string // empty means a new UUID
	Inputs []Input
	Output string // title, key or ID of the task whose result is the answer; empty means the tasks that no other task depends on

	MaxConcurrency int           // attempts at the same time; zero means 5
	Timeout        time.Duration // limit on the run; zero means none

	// Budget limits all model calls of the run together. If a call does not fit, its task
	// fails with the code BUDGET_EXCEEDED or COST_BUDGET_EXCEEDED, and tasks that have not
	// begun are skipped.
	Budget

	// Strategy chooses the agents of tasks without an assignee: dependency-first, which is
	// the default, or capability-match. The names of removed strategies (round-robin, least-busy,
	// composite) still work, with a warning: they mean the nearest of the two.
	Strategy string

	// Answer, if not nil, is the goal that the coordinator answers from the results of
	// [Team.RunTasks]. [Team.RunTeam] ignores it.
	Answer *Goal
	Auto   bool // [Team.RunTeam] gives a goal of one simple step to the agent that fits it best, without a plan

	// Assert lists assertions about the flow of the run, such as "input claim never reaches
	// letters" or "task Research/sources never derives into user". A run does not start if
	// one does not hold. If a plan of the coordinator breaks one, the coordinator must
	// correct it.
	Assert []string

	// Messages are sent before anything runs. Bus, made by [Team.NewBus], allows messages
	// during the run: from the program, and from agents, which send through [OutboxFrom].
	Messages []Message
	Bus      *messagebus.Bus
	Memory   sharedmem.Store // the shared memory, possibly of earlier runs; nil means one for this run alone
	Monitor  *Monitor        // shows the run during its execution; may be nil

	// UserAccepts is the clearance of the user, who reads results, events and errors. Nil
	// means confidential. If Reveal is set, UserAccepts applies to the Result only; events,
	// prompt records and the journal stay at or below confidential.
	UserAccepts *label.Classification
	Reveal      bool

	// Subscribers receive every event of the run in order, each in a goroutine of its own.
	// A slow or panicking subscriber does not affect the run; when the run ends, subscribers
	// have 5 seconds to catch up.
	Subscribers []func(event.Event)

	// Stream, if not nil, receives what models write while it arrives: texts that the user may
	// see whole once they are results, redacted as these, and neither reasoning, arguments of tools
	// nor structured results. A piece is passed on when nothing that can follow changes its
	// redaction. Of each task whose result is a text, the last delta has Done set; by then the
	// texts since the last Reset make the result. Stream is called from one goroutine. Pieces that
	// it has not taken are merged, so a slow Stream does not affect the run.
	Stream func(event.Delta)

	// Journal stores the run, so that it can be resumed. Gate decisions are durable before
	// the model is called, and events are emitted when they are durable. If the journal
	// fails, no new task starts, and the Result contains what was done.
	Journal Journal

	// AllowWidening allows commands that replace the policy while the run works to deliver more than
	// the policy before: clearances, declassifiers, endorsers, renewals, reveals, wider rules. Without
	// it, a policy can only be replaced by one that delivers no more.
	AllowWidening bool

	// StrictTools makes every command that is not confined a problem: of the tool bash, of agents that are
	// commands, and of MCP servers.
	StrictTools bool

	// KeepWorkspaces leaves the workspaces of tasks in the file system when they end, as
	// [Result.Workspace] says, with what their tools were given and wrote. Those with data
	// above the clearance of the user, or above confidential, are removed with a warning.
	KeepWorkspaces bool

	// Reuse allows cached answers of other runs in the Journal in place of model calls. An
	// answer is used if its prompt and the agent's Version are the same and it has not
	// expired. Fresh lists tasks, by title, key or ID, whose agents are always called.
	Reuse bool
	Fresh []string

	// Tasks are the tasks of [Team.Resume] and [Team.Replay]. If there are none, these run
	// the goal in Answer. Other methods take their tasks as an argument.
	Tasks []task.Spec

	Replay *Replay // changes what [Team.Replay] repeats; nil repeats the run as it was
}

// A Replay changes what [Team.Replay] repeats. The zero value repeats the run as it was.
type Replay struct {
	// Ask calls agents where the run has no answer to the same prompt. Otherwise no agent
	// is called, and a task whose prompt differs fails with the code NOT_IN_JOURNAL.
	Ask bool

	// Without lists tasks, by title, key or ID, and WithoutInputs lists inputs that are
	// left out. With Ask, the new results show which answers depended on them.
	Without       []string
	WithoutInputs []string
}

// A Journal stores runs, so that a later process can resume, replay or reuse them. A
// [journal.Journal] is one. Programs pass a journal on and call none of its methods, whose
// types are internal to this module.
//
// [journal.Journal]: https://pkg.go.dev/github.com/runteam/runteam/journal#Journal
type Journal interface{ record.Store }

// subscribers returns the subscribers as the engine takes them.
func subscribers(list []func(event.Event)) []func(runevent.Event) {
	out := make([]func(runevent.Event), len(list))
	for i, notify := range list {
		out[i] = func(e runevent.Event) { notify(event.New(e)) }
	}
	return out
}

// stream returns what takes a stream as the engine calls it; nil if nobody does.
func stream(take func(event.Delta)) func(runevent.Delta) {
	if take == nil {
		return nil
	}
	return func(d runevent.Delta) { take(event.Delta(d)) }
}

// internal returns the options as the engine takes them.
func (o *RunOptions) internal() *engine.RunOptions {
	if o == nil {
		return nil
	}
	out := &engine.RunOptions{
		RunID: o.RunID, Output: o.Output, MaxConcurrency: o.MaxConcurrency, Timeout: o.Timeout, Strategy: assign.Strategy(o.Strategy),
		Budget: plan.Budget(o.Budget), Answer: (*plan.Goal)(o.Answer), Auto: o.Auto,
		Bus: o.Bus.Internal(), Memory: o.Memory, Monitor: o.Monitor.inner(), UserAccepts: o.UserAccepts, Reveal: o.Reveal,
		Subscribers: subscribers(o.Subscribers), Stream: stream(o.Stream), Journal: o.Journal, AllowWidening: o.AllowWidening, StrictTools: o.StrictTools, KeepWorkspaces: o.KeepWorkspaces, Reuse: o.Reuse, Fresh: o.Fresh,
		Tasks: o.Tasks, Replay: (*plan.Replay)(o.Replay),
	}
	for _, in := range o.Inputs {
		out.Inputs = append(out.Inputs, plan.Input(in))
	}
	for _, m := range o.Messages {
		out.Messages = append(out.Messages, plan.Message(m))
	}
	for i, text := range o.Assert {
		a, err := flow.ParseAssertion(text)
		if err != nil {
			out.Invalid = append(out.Invalid, task.Problem{Pointer: naming.Pointer("assert", i), Message: err.Error(), Err: err})
		}
		out.Assert = append(out.Assert, a)
	}
	return out
}
