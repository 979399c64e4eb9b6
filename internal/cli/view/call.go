package view

import (
	"time"

	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// An Error says why a task has no result, in JSON.
type Error struct {
	Code    string  `json:"code,omitempty"`
	Message string  `json:"message"`
	Root    task.ID `json:"root,omitempty"`

	Accepted bool `json:"failureAccepted,omitempty"` // the run can succeed all the same
}

// A Call is one prompt and its answer or error, in JSON.
type Call struct {
	Session  string         `json:"sessionId"`
	Agent    string         `json:"agent"`
	Model    string         `json:"model,omitempty"`
	Attempt  int            `json:"attempt"`
	Part     string         `json:"part,omitempty"`
	State    string         `json:"state"` // completed, failed, interrupted, reused
	Started  time.Time      `json:"startedAt,omitzero"`
	Ended    time.Time      `json:"endedAt,omitzero"`
	Usage    llm.Usage      `json:"tokenUsage"`
	Estimate bool           `json:"estimated,omitempty"` // whether the tokens are an estimate
	Partial  bool           `json:"partial,omitempty"`   // you may not see all of it
	Turns    int            `json:"turns,omitempty"`
	Context  *event.Context `json:"context,omitempty"`
	Reused   string         `json:"reused,omitempty"`
	Call     llm.CallInfo   `json:"call,omitzero"`
	Warnings []string       `json:"warnings,omitempty"`
	Error    *Error         `json:"error,omitempty"`

	Rejected  *Rejected `json:"rejected,omitempty"`
	Reasoning string    `json:"reasoning,omitempty"` // only with --reasoning

	Named   string `json:"-"` // the part as texts have it
	key     record.Key
	priced  string    // the model as the spec names it
	saved   llm.Usage // by a cached answer
	charged llm.Money
}

// The states of calls. Others are those of tasks.
const (
	Interrupted = string(runstate.Interrupted)
	reused      = "reused"
)

// Rejected is a rejected answer, in JSON.
type Rejected struct {
	Text    string       `json:"text"`
	Problem string       `json:"problem,omitempty"` // the error, as the corrective call describes it
	Call    llm.CallInfo `json:"call,omitzero"`
}

// newCall returns the document of a call that was answered or failed.
func newCall(ran *journals.Invocation, t *runstate.Task, x *record.AgentCall) Call {
	c := Call{
		Session: x.Session, Agent: x.Agent, Model: ran.ModelName(x.Model), priced: x.Model, Attempt: x.Attempt, Part: x.Part, State: string(task.Completed), Started: x.Start, Ended: x.End,
		Usage: x.Usage(), Partial: x.IsPartial(), Turns: x.Turns, Reused: x.From, Call: x.Call, Warnings: x.Warnings, saved: x.Saved(), charged: x.Cost, key: x.Key,
	}
	if first := t.FirstTurn(x.Session); first != nil && x.Part == record.ChildOf(x.Part) {
		c.Call, c.Ended = first.Call, first.End // x has those of the last turn
	}
	if x.Part == "" {
		c.Context = &x.Context
	}
	if x.From != "" {
		c.State, c.charged = reused, 0
	}
	if !x.Completed() {
		c.State, c.Error = string(task.Failed), &Error{Code: x.Code, Message: x.Error}
	}
	return c
}
