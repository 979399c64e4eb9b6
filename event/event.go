// Package event defines the events of a run.
//
// A run passes each [Event] to its subscribers. Data says what happened, in a type of its own:
//
//	show := func(e event.Event) {
//		switch data := e.Data.(type) {
//		case event.TaskComplete:
//			fmt.Printf("%s took %v\n", e.Title, data.Duration)
//		case event.TaskFailed:
//			fmt.Printf("%s failed: %s\n", e.Title, data.Message)
//		}
//	}
//	result, err := tm.RunTasks(ctx, tasks, &team.RunOptions{Subscribers: []func(event.Event){show}})
//
// An event has names, counts, and what agents wrote in the form that the user may see. It
// never has a value above the user's clearance. Subscribers share events: do not change
// what an event points to.
package event

import (
	"encoding/json"
	"time"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A Delta is a piece of what a model writes for a task, while it arrives; see [team.RunOptions]. It
// is no event: it has no number and is not stored.
//
// [team.RunOptions]: https://pkg.go.dev/github.com/runteam/runteam/team#RunOptions
type Delta struct {
	Task    task.ID // of the coordinator's answer, the step
	Title   string
	Agent   string
	Attempt int
	Text    string // follows the text of the delta before
	Reset   bool   // the text begins again: what was shown of it before does not count
	Done    bool   // the text is whole, and the result of the task
}

// An Event is one thing that happened. A run begins with [RunStart] and ends with
// [RunComplete].
type Event struct {
	Seq  int    // from 1, without a gap unless the journal of the run fails
	Type string // the name of the event in JSON, such as task_start
	Time time.Time
	Run  string

	// What the event is about; empty for an event of the whole run.
	Task    task.ID // a task, or a step of the coordinator
	Title   string
	Name    string // of a task for an item of a list with a key, such as Mail[ann@x.org]; empty for other tasks
	Agent   string
	Attempt int // from 1; zero if the event is not about one attempt

	Child string // of the work of a child, the ID in its AgentSpawn; empty for any other work

	Data any // what happened: a value of one of the types below, such as TaskStart

	line *event.Event
}

// MarshalJSON returns the event as `runteam run --events` writes it: one object with the
// type and all that is known, and with times in milliseconds.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.line == nil {
		return json.Marshal(event.Event{
			Seq: e.Seq, Type: event.Type(e.Type), Time: e.Time, Run: e.Run,
			Task: e.Task, Title: e.Title, Name: e.Name, Agent: e.Agent, Attempt: e.Attempt,
		})
	}
	return json.Marshal(e.line)
}

// RunStart (run_start) begins a run.
type RunStart struct {
	Team  string // its name
	Tasks int    // zero for a goal, which is not planned yet
}

// RunComplete (run_complete) ends a run. It is the last event.
type RunComplete struct {
	Status string // as that of a team.Result
	Work
}

// PlanReady (plan_ready) follows when the coordinator has planned a goal.
type PlanReady struct{ Tasks []Planned }

// Planned is a task of a plan.
type Planned struct {
	Task      task.ID
	Title     string
	Written   string // the title as written, of a round of a loop or an item of a list; empty for other tasks
	Agent     string
	Assigned  bool // the agent was chosen automatically, because the plan named none
	DependsOn []task.ID
}

// TaskReady (task_ready) says that a task only waits for a free slot.
type TaskReady struct{}

// TaskStart (task_start) begins the first attempt at a task.
type TaskStart struct{}

// TaskRetry (task_retry) says that an attempt failed and that another follows after Wait.
type TaskRetry Problem

// TaskWaiting (task_waiting) says that a person does not answer now. The run performs its
// other tasks, and the question stays open.
type TaskWaiting struct {
	Tool string // whose call the person has to approve; empty for the result of the task
}

// TaskComplete (task_complete) ends a task that has a result.
type TaskComplete struct {
	Bytes int // of the result
	Work
}

// TaskSkipped (task_skipped) says that a task will not run.
type TaskSkipped struct {
	Problem
	Cause
}

// TaskNotNeeded (task_not_needed) says that a task will not run, since its condition, or that of
// a task before it, does not hold. It is no failure.
type TaskNotNeeded struct {
	Message string // why
	Cause
}

// TaskFailed (error) says that a task failed, because of its own error or of
// another task.
type TaskFailed struct {
	Problem
	Cause
	Accepted bool // the run can succeed all the same; see [task.Spec].OnFailure
}

// AllComplete (all_complete) says that every task has ended. The synthesis of a goal follows.
type AllComplete struct{}

// AgentStart (agent_start) begins one attempt: the agent gets a prompt.
type AgentStart struct {
	ID      string // of the call; unique in the run, also in AgentComplete; a call that is made again after a crash has the same
	Model   string // that is asked for, as the spec names it; empty if no model answers
	Bytes   int    // of the prompt
	Receipt *prompt.Receipt
}

// AgentComplete (agent_complete) ends one attempt.
type AgentComplete struct {
	ID     string      // that of the AgentStart
	Status task.Status // completed or failed
	Bytes  int         // of the reply
	Work
	Problem // why it failed
}

// ToolStart (tool_start) says that an agent calls a tool.
type ToolStart struct {
	ID   string // of the call; unique in the run, also in ToolComplete
	Tool string // its name as a reader, such as tool:search
}

// ToolComplete (tool_complete) says that a call of a tool has ended.
type ToolComplete struct {
	ID       string // that of the ToolStart
	Tool     string // its name as a reader
	Failed   bool   // the agent got an error in place of a result
	Duration time.Duration
}

// MessageSent (message_sent) says that the agent sent a handoff, which waits in the inbox of
// its reader.
type MessageSent struct {
	ID    string // of the handoff; unique in its run
	To    string
	Bytes int
}

// ReplyWait (reply_wait) says that the attempt waits for a reply to a handoff.
type ReplyWait struct {
	ID      string        // of the handoff, as in MessageSent
	Agent   string        // that is to reply
	Timeout time.Duration // after which the attempt continues without a reply
}

// ReplyEnd (reply_end) says that the attempt does not wait for that reply any more.
type ReplyEnd struct {
	ID       string
	Agent    string
	Code     string        // why there is no reply, such as TIMEOUT or NO_REPLY; empty if there is one
	Duration time.Duration // of the wait since the handoff was sent, without pauses of the run
}

// AgentSpawn (agent_spawn) says that an agent begins to work on a goal as a part of the attempt: a copy
// of the agent of the task, or an agent to which it delegates.
type AgentSpawn struct {
	Child string // ID, unique in the run, that the AgentResult of the same work has too
	Agent string // that works on the goal
	Bytes int    // of the goal

	Tools   []string      // that it may call
	Timeout time.Duration // for which it may work
}

// AgentResult (agent_result) says that such work has ended.
type AgentResult struct {
	Child    string // that of the AgentSpawn
	Agent    string
	Status   task.Status // completed or failed
	Code     string      // of the error, such as TIMEOUT; empty if it completed
	Bytes    int         // of the result
	Duration time.Duration
}

// AgentTransfer (agent_transfer) says that the agent that held the conversation of the attempt transferred
// it to another one, which finishes the task.
type AgentTransfer struct {
	From string
	To   string
	Turn int // of From, from 1
}

// Message (message) says that a message is delivered with this attempt.
type Message struct {
	ID    string // unique in its run; the ID of MessageSent if an agent sent it
	From  string
	Bytes int
}

// BudgetExceeded (budget_exceeded) says that a model call was not made because a budget has
// too little left.
type BudgetExceeded struct {
	Problem
	Own bool // true for a budget of the agent, after which the run continues; false for that of the run
}

// EntryUsed reports that an entry of the policy let context pass. The type of the event
// says how: a declassifier let it pass below its label (label_lowered), an endorser
// vouched for it (endorsed), or a renewal let it be read after it expired (renewed).
type EntryUsed struct {
	From  string // the producer of the context
	Entry string // the name of the entry
}

// Steered (steered) says that somebody steers the run while it works. The event is about the task or
// the agent that the command names.
type Steered struct {
	Kind   steer.Kind
	By     string
	Reason string // empty if none was given
}

// Reveal (reveal) says that RunOptions.Reveal raises the user's clearance for the Result.
type Reveal Problem

// Warning (warning) is about a task if a model call failed and is made again after Wait.
type Warning Problem

// RateLimited (rate_limited) says that no call to an endpoint begins before Wait has
// passed. The event is about a task that waits.
type RateLimited Problem

// A Problem says what went wrong and what follows.
type Problem struct {
	Code    string        // of the error; empty if it has none
	Message string        // in the form for the user
	Wait    time.Duration // until the next attempt or call; zero if none follows
}

// A Cause is the task whose failure kept another one from completing. It is zero for a
// task with an error of its own.
type Cause struct {
	Root    task.ID
	Because string // the name of Root, or its title
}

// Work says what an attempt, a task or a run took.
type Work struct {
	llm.Usage
	Duration  time.Duration
	Reused    string        // the run that the result was taken from; that is this run if it was resumed
	Partial   bool          // token counts and durations leave out what the user may not see
	Truncated bool          // a limit on tokens ended the answer, and the task accepted it
	Call      *llm.CallInfo // the model call that gave the answer; nil if the model does not report its calls
}

// Context measures how much of the context of a run was sent. Sizes are in bytes of UTF-8.
type Context struct {
	Prompts   int // that were sent
	Sent      int // by all prompts
	Shared    int // what they would have sent if each had all inputs and all results so far
	Redacted  int // values that a placeholder replaced
	Revealed  int // personal values that were delivered in clear by a rule
	Withheld  int // values and parts of values that were granted or requested, and withheld
	Truncated int // pieces of context that a size limit cut

	// TokensSaved is by how many tokens the gate made context smaller, summed over its decisions about
	// prompts, with a fourth of the bytes as tokens. What the caller may not see does not count.
	TokensSaved int
}
