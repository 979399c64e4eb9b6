// Package event declares the events of a run in the form in which the engine emits them and
// their JSON lines are written: one struct for all types. Subscribers of a public team get
// the events of the public package event, which have a type for each kind of data.
//
// An [Event] has names, counts, and what agents wrote in the form that the caller may see. It
// never has a value above the caller's clearance.
package event

import (
	"encoding/json"
	"time"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// Type says what happened.
type Type string

// The types of events, and what is set of each. A run opens with RunStart and closes
// with RunComplete. "About a task" are Task, Title, Agent and Attempt.
const (
	RunStart      Type = "run_start"       // Tasks; Name is that of the team
	RunComplete   Type = "run_complete"    // Code is the status of the run; Work
	PlanReady     Type = "plan_ready"      // a goal is planned: Tasks, Plan
	TaskReady     Type = "task_ready"      // a task waits for a free slot only: about a task
	TaskStart     Type = "task_start"      // its first attempt begins: about a task
	TaskComplete  Type = "task_complete"   // about a task, Status, Bytes, Work
	TaskSkipped   Type = "task_skipped"    // a task will not run: about a task, Status, Problem
	TaskNotNeeded Type = "task_not_needed" // a task will not run, by its condition or that of one before it: as TaskSkipped
	TaskWaiting   Type = "task_waiting"    // a person does not answer now, and the run continues without the task: about a task
	TaskRetry     Type = "task_retry"      // an attempt failed, and another follows after Wait: about a task, Problem
	AgentStart    Type = "agent_start"     // an attempt begins: about a task, ID, Bytes, Receipt, Model
	AgentComplete Type = "agent_complete"  // an attempt ended: about a task, ID, Status, Bytes, Work, Problem
	ToolStart     Type = "tool_start"      // a tool is called: about a task, ID, From is tool:NAME
	ToolComplete  Type = "tool_complete"   // it returned: about a task, ID, From, Status, Work.Duration
	AllComplete   Type = "all_complete"    // every task has ended; the synthesis, if any, follows
	MessageSent   Type = "message_sent"    // a handoff to the agent To waits in its inbox: about a task, ID, Bytes
	ReplyWait     Type = "reply_wait"      // an attempt waits for a reply of the agent From to its handoff: about a task, ID, Wait
	ReplyEnd      Type = "reply_end"       // it does not wait any more: about a task, From, ID, Work.Duration, Code unless there is a reply
	AgentSpawn    Type = "agent_spawn"     // the agent To begins to work on a goal as Child of the attempt: about a task, Bytes, Spawn
	AgentResult   Type = "agent_result"    // the agent From has ended that work: about a task, Child, Status, Bytes, Work.Duration, Code of the error
	AgentTransfer Type = "agent_transfer"  // the agent From transferred its conversation to To in Turn of it: about a task
	Message       Type = "message"         // a message of From is delivered with this attempt: about a task, ID, Bytes
	Budget        Type = "budget_exceeded" // a model call was not made, since a budget has too little left: about a task, Problem
	Handed        Type = "context_handoff" // the gate decided about a piece of context: Task, Agent, Handoff
	Lowered       Type = "label_lowered"   // a declassifier of the policy, Code, let context pass below its label: Task, Agent, From
	Endorsed      Type = "endorsed"        // an endorser of the policy, Code, vouched for context: Task, Agent, From
	Renewed       Type = "renewed"         // a renewal of the policy, Code, let expired context be read: Task, Agent, From
	Steered       Type = "steered"         // somebody steers the run: Code is the kind of the command, From who, Message why; about a task or an Agent
	Reveal        Type = "reveal"          // the user asked to see above the user's clearance: Message
	Warning       Type = "warning"         // Message; about a task if a model call failed and is made again after Wait
	Limited       Type = "rate_limited"    // no call to the endpoint in Message begins before Wait has passed: about a task that waits
	Error         Type = "error"           // a task failed, by itself or because of Root: about a task, Status, Problem
)

// An Event is one thing that happened. Seq, Type, Time and Run are always set; which of
// the other fields and groups are, the constants of [Type] say. Subscribers share
// events: do not change one.
type Event struct {
	Seq     int       `json:"seq"` // from 1, without a gap unless the journal of the run fails
	Type    Type      `json:"type"`
	Time    time.Time `json:"time"`
	Run     string    `json:"runId"`
	Task    task.ID   `json:"task,omitempty"` // of the coordinator's work, the step
	Title   string    `json:"title,omitempty"`
	Name    string    `json:"name,omitempty"` // of an instance, by the keys of its items; RunStart: of the team
	Agent   string    `json:"agent,omitempty"`
	Attempt int       `json:"attempt,omitempty"` // from 1; for TaskRetry, the failed one

	Status task.Status `json:"status,omitempty"` // TaskComplete, TaskSkipped, Error, AgentComplete
	Problem
	From string `json:"from,omitempty"` // Message: who sent it; ReplyWait, ReplyEnd: who is to reply; ToolStart, ToolComplete: the tool; TaskWaiting: the tool whose call needs an approval; Lowered, Endorsed, Renewed: whose context it is; Steered: who steers
	To   string `json:"to,omitempty"`   // MessageSent: the reader; AgentSpawn: the agent that works on the goal; AgentTransfer: the new holder
	ID   string `json:"id,omitempty"`   // MessageSent, Message, ReplyWait, ReplyEnd: of the message; AgentStart, AgentComplete, ToolStart, ToolComplete: of the call

	Child string `json:"child,omitempty"` // of the work of a child: the ID that its AgentSpawn and its AgentResult have
	Turn  int    `json:"turn,omitempty"`  // AgentTransfer: of From, from 1
	*Spawn
	Work
	Bytes   int             `json:"bytes,omitempty"`   // AgentStart: of the prompt; AgentComplete, TaskComplete: of the reply
	Model   string          `json:"model,omitempty"`   // AgentStart: that is asked for; empty if the agent is no model
	Tasks   int             `json:"tasks,omitempty"`   // RunStart, PlanReady: how many; a goal has none at the start
	Plan    []Planned       `json:"plan,omitempty"`    // PlanReady
	Receipt *prompt.Receipt `json:"receipt,omitempty"` // AgentStart
	Handoff *Handoff        `json:"handoff,omitempty"` // Handed
}

// A Problem says what went wrong and what follows.
type Problem struct {
	Root      task.ID       `json:"root,omitempty"`      // Error, TaskSkipped: the task whose end caused this one's
	Because   string        `json:"because,omitempty"`   // the name or the title of Root
	Code      string        `json:"code,omitempty"`      // of the error; RunComplete: the status of the run; Lowered, Endorsed, Renewed: the name of the entry; Steered: the kind of the command
	Message   string        `json:"message,omitempty"`   // the error or warning, gated for the user; Steered: why
	Wait      time.Duration `json:"-"`                   // TaskRetry, Warning, Limited: until the next attempt or call; ReplyWait: at most; waitMs in JSON
	OwnBudget bool          `json:"ownBudget,omitempty"` // Budget: it is the agent's own budget, and the run continues

	Accepted bool `json:"failureAccepted,omitempty"` // Error: the run can succeed all the same
}

// A Spawn says what an agent that begins to work on a goal may do. Only AgentSpawn has one.
type Spawn struct {
	Tools     []string `json:"tools,omitempty"`     // that it may call
	TimeoutMs int64    `json:"timeoutMs,omitempty"` // for which it may work
}

// Work says what an attempt, a task or a run took.
type Work struct {
	Reused    string        `json:"reused,omitempty"` // TaskComplete: the run that the result was taken from; this run if it was resumed
	Duration  time.Duration `json:"-"`                // durationMs in JSON
	Input     int           `json:"input_tokens,omitempty"`
	Output    int           `json:"output_tokens,omitempty"`
	Partial   bool          `json:"partial,omitempty"`   // without what the user may not see
	Truncated bool          `json:"truncated,omitempty"` // a limit on tokens ended the answer, and the task accepted it

	Inner bool `json:"-"` // it is of a later turn, a call of a tool or a child of an attempt

	CachedTokens    int `json:"cached_tokens,omitempty"`    // of Input, those that the endpoint read from its cache
	ReasoningTokens int `json:"reasoning_tokens,omitempty"` // of Output, those of the reasoning

	Call *llm.CallInfo `json:"call,omitempty"` // AgentComplete, TaskComplete: the model call that gave the answer; nil if the model does not report its calls
}

// Usage returns the token counts.
func (e *Event) Usage() llm.Usage {
	return llm.Usage{InputTokens: e.Input, OutputTokens: e.Output, CachedTokens: e.CachedTokens, ReasoningTokens: e.ReasoningTokens}
}

// SetUsage sets the token counts.
func (e *Event) SetUsage(u llm.Usage) {
	e.Input, e.Output, e.CachedTokens, e.ReasoningTokens = u.InputTokens, u.OutputTokens, u.CachedTokens, u.ReasoningTokens
}

// Planned is a task of a plan.
type Planned struct {
	Task      task.ID   `json:"task"`
	Title     string    `json:"title"`
	Written   string    `json:"written,omitempty"` // the title as written, of a round or an item
	Agent     string    `json:"agent"`
	Assigned  bool      `json:"assigned,omitempty"` // the plan named no agent
	DependsOn []task.ID `json:"dependsOn,omitempty"`
	Rounds    string    `json:"rounds,omitempty"` // of a loop, the title of the task whose rounds have its result

	// What else the spec says of the task. Only the start of a run in a journal has it.
	Key  string `json:"-"`
	Line string `json:"-"` // where it is written
}

// MarshalJSON writes the event with its times in milliseconds, as results have them.
func (e Event) MarshalJSON() ([]byte, error) {
	type plain Event
	return json.Marshal(struct {
		plain
		WaitMs     int64 `json:"waitMs,omitempty"`
		DurationMs int64 `json:"durationMs,omitempty"`
	}{plain(e), e.Wait.Milliseconds(), e.Duration.Milliseconds()})
}
