// Package event decides what can happen in a run, as data.
//
// An [Event] carries names, counts and the gated form of what agents wrote;
// never a payload that its reader, the user, is not cleared for.
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

// The types of events. A run opens with RunStart and closes with RunComplete;
// between AgentStart and AgentComplete an agent works on one attempt.
const (
	RunStart      Type = "run_start"
	RunComplete   Type = "run_complete"
	PlanReady     Type = "plan_ready"      // the tasks of a goal are planned and checked; Plan says which
	TaskReady     Type = "task_ready"      // a task waits for nothing but a free slot; also before another attempt
	TaskStart     Type = "task_start"      // first attempt of a task
	TaskComplete  Type = "task_complete"   // a task completed
	TaskSkipped   Type = "task_skipped"    // a task will not run
	TaskRetry     Type = "task_retry"      // an attempt failed; another follows after Wait
	AgentStart    Type = "agent_start"     // an attempt begins; Receipt says what the agent sees
	AgentComplete Type = "agent_complete"  // an attempt ended
	AllComplete   Type = "all_complete"    // every task has ended; what follows is the synthesis, if there is one
	Message       Type = "message"         // a message of From is delivered to Agent with this attempt
	Budget        Type = "budget_exceeded" // a model call was not made, because a budget of the run or of the agent has too little left
	Handed        Type = "context_handoff" // the gate ruled on a piece of context; Handoff says how
	Lowered       Type = "label_lowered"   // a declassifier of the policy, named by Code, let context cross below its label
	Endorsed      Type = "endorsed"        // an endorser of the policy, named by Code, vouched for context
	Renewed       Type = "renewed"         // a renewal of the policy, named by Code, let expired context be read
	Reveal        Type = "reveal"          // the user asked to see above the user's clearance
	Warning       Type = "warning"         // with a Task: a model call failed and is made again after Wait
	Limited       Type = "rate_limited"    // no call to the endpoint that Message names begins before Wait has passed; Task is one that waits
	Error         Type = "error"           // a task failed, by itself or because of Root
)

// Status returns the status that a task has after an event of this type; empty
// if that says nothing of it.
func (t Type) Status() task.Status {
	switch t {
	case TaskStart:
		return task.InProgress
	case TaskComplete:
		return task.Completed
	case TaskSkipped:
		return task.Skipped
	case Error:
		return task.Failed
	}
	return ""
}

// An Event is one thing that happened. Seq, Type, Time and Run are always set;
// the fields of a task are set for every type that begins with task_ or agent_,
// for Error, Message, Budget and Limited, for a Warning about a model call, and for what
// the gate ruled (Handed, Lowered, Endorsed, Renewed), there without Title and
// Attempt where the caller is the reader. The coordinator's work has agent_
// events too: their Agent is coordinator and their Title the step, such as plan
// or synthesis. Others are zero where their comment does not name the type.
// Events are shared by all subscribers: nobody may change one.
type Event struct {
	Seq     int       `json:"seq"` // from 1, without a gap, unless the journal of the run fails
	Type    Type      `json:"type"`
	Time    time.Time `json:"time"`
	Run     string    `json:"runId"`
	Task    task.ID   `json:"task,omitempty"`
	Title   string    `json:"title,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Attempt int       `json:"attempt,omitempty"` // from 1; of TaskRetry, the one that failed

	Status  task.Status `json:"status,omitempty"`  // TaskComplete, TaskSkipped, Error, AgentComplete
	Root    task.ID     `json:"root,omitempty"`    // Error, TaskSkipped: the task whose end caused this one's
	Because string      `json:"because,omitempty"` // the title of Root
	Code    string      `json:"code,omitempty"`    // of an error; RunComplete: the status of the run; Lowered, Endorsed, Renewed: the name of the entry
	Message string      `json:"message,omitempty"` // the error or warning, gated for the user
	From    string      `json:"from,omitempty"`    // Message: who sent it; Lowered, Endorsed, Renewed: whose context it is

	Reused   string          `json:"reused,omitempty"`        // TaskComplete: the run that the result was taken from; that of the event for one from before the run was resumed
	Wait     time.Duration   `json:"-"`                       // TaskRetry, Warning, Limited: until the next attempt or call; waitMs in JSON
	Duration time.Duration   `json:"-"`                       // AgentComplete, TaskComplete, RunComplete; durationMs in JSON
	Input    int             `json:"input_tokens,omitempty"`  // AgentComplete, TaskComplete, RunComplete
	Output   int             `json:"output_tokens,omitempty"` // AgentComplete, TaskComplete, RunComplete
	Rounded  bool            `json:"rounded,omitempty"`       // the tokens are estimates or classes, since the user may not see what was counted
	Bytes    int             `json:"bytes,omitempty"`         // AgentStart: of the prompt; AgentComplete, TaskComplete: of the reply
	Tasks    int             `json:"tasks,omitempty"`         // RunStart, PlanReady: how many; a goal has none at the start
	Plan     []Planned       `json:"plan,omitempty"`          // PlanReady
	Receipt  *prompt.Receipt `json:"receipt,omitempty"`       // AgentStart
	Handoff  *Handoff        `json:"handoff,omitempty"`       // Handed

	CachedTokens    int `json:"cached_tokens,omitempty"`    // of Input, those that the endpoint read from its cache
	ReasoningTokens int `json:"reasoning_tokens,omitempty"` // of Output, those of the reasoning

	OwnBudget bool `json:"ownBudget,omitempty"` // Budget: it is the agent's own budget, and the run continues
	Truncated bool `json:"truncated,omitempty"` // AgentComplete, TaskComplete: a limit on tokens ended the answer, and the task accepted it

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
	Agent     string    `json:"agent"`
	Assigned  bool      `json:"assigned,omitempty"` // the plan named no agent
	DependsOn []task.ID `json:"dependsOn,omitempty"`
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
