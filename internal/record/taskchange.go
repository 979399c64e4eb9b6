package record

import (
	"encoding/json"
	"slices"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/task"
)

// A TaskChange is what an event says of a task, or the tasks of a plan, and no other entry does. A [History] has it in
// place of the event, which is much larger. Its members are those of the event.
type TaskChange struct {
	Type    event.Type      `json:"type"`
	Task    task.ID         `json:"task"`
	Title   string          `json:"title"`
	Name    string          `json:"name"`
	Agent   string          `json:"agent"`
	From    string          `json:"from"` // who is to reply
	ID      string          `json:"id"`   // of the handoff for whose reply the task waits
	Root    task.ID         `json:"root"`
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Plan    []event.Planned `json:"plan"`

	Accepted bool `json:"failureAccepted"` // the task failed, and the run can succeed all the same
}

// ChangeOf returns what an event says of a task; nil if it says nothing that belongs to a [History].
func ChangeOf(e *event.Event) *TaskChange {
	if !isTaskEvent(e.Type) {
		return nil
	}
	return &TaskChange{
		Type: e.Type, Task: e.Task, Title: e.Title, Name: e.Name, Agent: e.Agent, From: e.From, ID: e.ID,
		Root: e.Root, Code: e.Code, Message: e.Message, Plan: e.Plan, Accepted: e.Accepted,
	}
}

// DecodeChange decodes what the value of the line of an event says of a task, with the number of the event and the
// message that only a journal can read; nil as [ChangeOf].
func DecodeChange(value []byte) (c *TaskChange, seq int, hidden json.RawMessage, err error) {
	if !IsTaskEvent(value) {
		return nil, 0, nil, nil
	}
	var l struct {
		TaskChange
		Seq    int             `json:"seq"`
		Hidden json.RawMessage `json:"hidden"`
	}
	if err := json.Unmarshal(value, &l); err != nil {
		return nil, 0, nil, err
	}
	return new(l.TaskChange), l.Seq, l.Hidden, nil
}

// taskEvents are the types of the events that say what becomes of a task, and no other entry does.
var taskEvents = []event.Type{
	event.PlanReady, event.TaskReady, event.TaskStart, event.TaskWaiting, event.TaskComplete, event.TaskSkipped, event.TaskNotNeeded, event.Error,
	event.ReplyWait, event.ReplyEnd,
}

func isTaskEvent(t event.Type) bool { return slices.Contains(taskEvents, t) }

// IsTaskEvent reports whether the value of the line of an event says what becomes of a task, so that the line belongs to
// the history of its run.
func IsTaskEvent(value []byte) bool { return isTaskEvent(TypeOfEvent(value)) }
