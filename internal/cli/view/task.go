package view

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/internal/trace"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A Task is a task of a stored run, or a step of the coordinator, in JSON.
type Task struct {
	ID    task.ID `json:"id"`
	Key   string  `json:"key,omitempty"`
	Title string  `json:"title"`
	Name  string  `json:"name,omitempty"` // of an instance, by the keys of its items

	Agent       string                `json:"assignee"`
	Status      task.Status           `json:"status"`
	Label       *label.Classification `json:"label,omitempty"` // of the result
	Attempts    int                   `json:"attempts"`        // that ended or were interrupted
	Interrupted int                   `json:"interrupted,omitempty"`
	Running     int                   `json:"running,omitempty"`
	Usage       llm.Usage             `json:"tokenUsage"`
	Partial     bool                  `json:"partial,omitempty"`     // without what the caller may not see
	Estimate    bool                  `json:"estimated,omitempty"`   // the tokens of interrupted calls are estimates
	Saved       int                   `json:"tokensSaved,omitempty"` // by the gate, in its prompts
	Started     time.Time             `json:"startedAt,omitzero"`
	Ended       time.Time             `json:"endedAt,omitzero"`
	Took        int64                 `json:"tookMs,omitempty"`        // while a process worked on it
	Connection  runstate.Connection   `json:"connection"`              // whether an agent is at work on it
	Active      time.Time             `json:"lastActivityAt,omitzero"` // when a call began or ended last, a person was asked or answered, or a model wrote
	Streaming   bool                  `json:"streaming,omitempty"`     // its model writes a result; known only to a server whose process works on the run
	Transfers   []string              `json:"transferredTo,omitempty"` // the agents that its conversation was transferred to, in their order
	Reused      *Reuse                `json:"reused,omitempty"`
	Result      string                `json:"result,omitempty"`
	Structured  json.RawMessage       `json:"structured,omitempty"`
	Envelope    *Envelope             `json:"envelope,omitempty"` // of the result; nil if the caller may not see all of it
	Truncated   bool                  `json:"truncated,omitempty"`
	Call        llm.CallInfo          `json:"call,omitzero"` // of the answer
	Error       *Error                `json:"error,omitempty"`
	Reason      string                `json:"reason,omitempty"`    // why it was not needed
	Exchanges   []Call                `json:"exchanges,omitempty"` // the calls, the first to begin first; only if one task is shown

	Replies    []runstate.Reply `json:"awaitedReplies,omitempty"` // the handoffs to whose replies the task waits
	Tools      []ToolCount      `json:"calledTools,omitempty"`    // in the order of their first calls
	ToolCalls  []ToolCall       `json:"toolCalls,omitempty"`      // in the order in which they began; only if one task is shown
	ChildCount *ChildCount      `json:"childCount,omitempty"`     // nil without children
	Children   []Child          `json:"children,omitempty"`       // in the order in which they were spawned; only if one task is shown
	Holders    []Holder         `json:"holders,omitempty"`        // of the conversation of the last attempt that transferred it; only if one task is shown

	Asked

	Hidden bool   `json:"-"` // the result says why the caller may not see it
	Calls  []Call `json:"-"` // those that were answered or failed, then those that were interrupted
}

// An Envelope says what is known of a result beside its text and label, in JSON.
type Envelope struct {
	ID envelope.ID `json:"id"`
	gate.Provenance
}

// Reuse says which run a cached answer is from, and what it used there, in JSON.
type Reuse struct {
	Run   string    `json:"runId"`
	Saved llm.Usage `json:"tokenUsage"`
}

// IsStep reports whether it is a step of the coordinator.
func (t *Task) IsStep() bool { return record.IsStep(t.ID) }

// ShownName returns what people know the task by.
func (t *Task) ShownName() string { return cmp.Or(t.Name, t.Title) }

// Cost returns what the calls of the task cost. It is unknown if a model has no price.
func (t *Task) Cost(prices journals.Prices) (sum llm.Money, known bool) {
	known = true
	for i := range t.Calls {
		c := &t.Calls[i]
		cost, priced := prices.Cost(c.priced, c.Usage, c.charged)
		sum, known = sum.Add(cost), known && priced
	}
	return sum, known
}

// LastPrompt returns the key of the prompt of the last attempt that ended; zero if there is none.
func (t *Task) LastPrompt() record.Key {
	for i := range slices.Backward(t.Calls) {
		if c := &t.Calls[i]; c.Part == "" && c.State != Interrupted {
			return c.key
		}
	}
	return record.Key{}
}

// newTask returns the document of a task of a run.
func newTask(k *journals.StoredRun, ran *journals.Invocation, s *runstate.Task) *Task {
	made := k.State.Attempts(s)
	t := &Task{
		ID: s.ID, Key: k.Key(s.ID), Title: s.Title, Name: s.Name, Agent: s.Agent, Status: k.State.Shown(s),
		Attempts: made.Begun(), Interrupted: made.Interrupted, Running: made.Running,
		Usage: k.State.Usage(s), Partial: s.IsPartial(), Took: k.State.Worked(s).Milliseconds(),
		Connection: k.State.Connection(s), Active: s.Active,
	}
	if t.Started, t.Ended = s.Span(); made.Running > 0 {
		t.Ended = time.Time{} // a turn has ended, and its attempt has not
	}
	for _, x := range s.Transfers() {
		t.Transfers = append(t.Transfers, x.TransferredTo)
	}
	t.addQuestions(k.State.QuestionsOf(s))
	t.addTeamwork(k, s)
	t.Tools = toolCounts(s)
	answered := s.Answered()
	for _, x := range answered {
		t.Saved += x.Context.TokensSaved
		t.Calls = append(t.Calls, newCall(ran, s, x))
	}
	for _, x := range k.State.Interrupted(s) {
		t.Estimate = true
		t.Calls = append(t.Calls, Call{
			Session: x.Session, Agent: x.Agent, Model: ran.ModelName(x.Model), priced: x.Model, Attempt: x.Attempt, State: Interrupted, Started: x.Time,
			Usage: runstate.Estimate(x), Estimate: true, Partial: x.Partial,
		})
	}
	switch x := k.State.Accepted(s); {
	case t.Status == task.Completed && x != nil:
		r := k.Result(x)
		t.Result, t.Structured, t.Label = r.Text, json.RawMessage(r.Structured), &r.Label
		if x.Result != nil && x.Shown == nil && !r.Hidden {
			t.Envelope = &Envelope{x.Result.ID, gate.Provenance{CreatedAt: x.Result.CreatedAt, DerivedFrom: x.Result.DerivedFrom, Tags: x.Result.Tags}}
			if x.IsPartial() || k.State.Find(x.Task).IsPartial() { // the caller does not know of all that it read
				t.Envelope.DerivedFrom = nil
			}
		}
		t.Truncated = x.Result != nil && x.Result.Truncated && !x.Partial
		if t.Hidden = r.Hidden; t.Hidden {
			t.hideReasons()
		}
		if x != s.Accepted() {
			break // a loop, whose round says how it was made
		}
		if t.Call = x.Call; x.From != "" {
			t.Reused = &Reuse{x.From, x.Saved()}
		}
	case t.Status == task.NotNeeded:
		t.Reason = k.WhyNoResult(s)
	case t.Status == task.Failed || t.Status == task.Skipped:
		ended := k.State.EndOf(s)
		t.Error = &Error{ended.Code, k.WhyNoResult(s), ended.Root, ended.Accepted}
		if n := len(answered); n > 0 {
			t.Call = answered[n-1].Call
		}
	}
	return t
}

// TaskOf returns the document of the task that a name means, with its calls, tools, children and holders, and what its models
// wrote before their answers if reasoning is set.
func TaskOf(k *journals.StoredRun, name string, reasoning bool) (*Task, error) {
	s, err := k.FindTask(name)
	if err != nil {
		return nil, err
	}
	ran := journals.InvocationOf(&k.Info)
	t := newTask(k, &ran, s)
	for i, x := range s.Answered() {
		c := &t.Calls[i]
		if a := currentText(k, x.Refused); a != nil {
			c.Rejected = &Rejected{a.Text, a.Problem, a.Call}
		}
		if a := currentText(k, x.Reasoning); a != nil && reasoning {
			c.Reasoning = a.Text
		}
	}
	t.Exchanges = slices.Clone(t.Calls)
	for i := range t.Exchanges {
		c := &t.Exchanges[i]
		if c.State == Interrupted {
			_, c.Part, _ = strings.Cut(c.Session, fmt.Sprintf("/%s/%d", s.ID, c.Attempt))
		}
		c.Named = trace.PartName(c.Part)
	}
	slices.SortStableFunc(t.Exchanges, func(a, b Call) int { return a.Started.Compare(b.Started) })
	t.addChildren(k, s)
	for _, c := range called(s) {
		t.ToolCalls = append(t.ToolCalls, newToolCall(k, s, c))
	}
	return t, nil
}

// addTeamwork adds for whom a task waits, and how many children it has.
func (t *Task) addTeamwork(k *journals.StoredRun, s *runstate.Task) {
	for _, c := range spawned(s) {
		if t.ChildCount == nil {
			t.ChildCount = &ChildCount{}
		}
		if s.Result(c.Session) == nil && worksOn(k, s, c.Time) {
			t.ChildCount.Working++
		} else {
			t.ChildCount.Ended++
		}
	}
	t.Replies = k.State.Replies(s)
	if len(t.Replies) > 0 && t.WaitingFor == "" {
		var agents []string
		for _, w := range t.Replies {
			if !slices.Contains(agents, w.Agent) {
				agents = append(agents, w.Agent)
			}
		}
		t.WaitingFor = strings.Join(agents, ", ")
	}
}

// addChildren adds the children of a task, and the holders of its conversation.
func (t *Task) addChildren(k *journals.StoredRun, s *runstate.Task) {
	for _, c := range spawned(s) {
		t.Children = append(t.Children, newChild(k, s, c))
	}
	t.Holders = holdersOf(k.Run, s)
}

// currentText returns a labeled text, without its text if that has expired.
func currentText(k *journals.StoredRun, a *record.LabeledText) *record.LabeledText {
	if a == nil || a.ExpiresAt.IsZero() || k.Now.Before(a.ExpiresAt) {
		return a
	}
	return &record.LabeledText{Text: "[withheld: expired]", Call: a.Call}
}
