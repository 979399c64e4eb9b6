// Package event decides what can happen in a run, as data.
//
// An [Event] carries names, counts and the gated form of what agents wrote;
// never a payload that its reader, the user, is not cleared for.
package event

import (
	"time"

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
	TaskStart     Type = "task_start"     // first attempt of a task
	TaskComplete  Type = "task_complete"  // a task completed
	TaskSkipped   Type = "task_skipped"   // a task will not run
	TaskRetry     Type = "task_retry"     // an attempt failed; another follows after Wait
	AgentStart    Type = "agent_start"    // an attempt begins; Receipt says what the agent sees
	AgentComplete Type = "agent_complete" // an attempt ended
	Reveal        Type = "reveal"         // the user asked to see above the user's clearance
	Warning       Type = "warning"
	Error         Type = "error" // a task failed, by itself or because of Root
)

// An Event is one thing that happened. Fields that do not belong to its type
// are zero. Events are shared by all subscribers: nobody may change one.
type Event struct {
	Seq     int       `json:"seq"` // from 1, without a gap
	Type    Type      `json:"type"`
	Time    time.Time `json:"time"`
	Run     string    `json:"runId"`
	Task    task.ID   `json:"task,omitempty"`
	Title   string    `json:"title,omitempty"`
	Agent   string    `json:"agent,omitempty"`
	Attempt int       `json:"attempt,omitempty"` // from 1

	Status   task.Status     `json:"status,omitempty"`  // TaskComplete, TaskSkipped, Error
	Root     task.ID         `json:"root,omitempty"`    // the task whose end caused this one's
	Because  string          `json:"because,omitempty"` // the title of Root
	Code     string          `json:"code,omitempty"`    // of the error
	Message  string          `json:"message,omitempty"` // the error or warning, gated for the user
	Wait     time.Duration   `json:"waitNs,omitempty"`  // TaskRetry: until the next attempt
	Duration time.Duration   `json:"durationNs,omitempty"`
	Input    int             `json:"input_tokens,omitempty"`
	Output   int             `json:"output_tokens,omitempty"`
	Bytes    int             `json:"bytes,omitempty"` // of the prompt or of the reply
	Tasks    int             `json:"tasks,omitempty"` // RunStart: how many
	Receipt  *prompt.Receipt `json:"receipt,omitempty"`
}
