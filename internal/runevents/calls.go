package runevents

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// calls are the calls of agents and tools for a task.
type calls struct {
	open    []*call
	holders []named // the agents that have its conversations, by conversationOf
	links   []named // the IDs of its children, by conversationOf
}

// A named is a value by a name.
type named struct{ name, value string }

// find returns the value with a name; empty if there is none.
func find(list []named, name string) string {
	for i := range list {
		if list[i].name == name {
			return list[i].value
		}
	}
	return ""
}

// set sets the value with a name.
func set(list []named, name, value string) []named {
	for i := range list {
		if list[i].name == name {
			list[i].value = value
			return list
		}
	}
	return append(list, named{name, value})
}

// A call is one that has not ended.
type call struct {
	session  string
	begin    *record.CallStart // nil until somebody is called
	hasBegun bool              // there is an event of it
	receipt  *prompt.Receipt
	size     int              // of the prompt in bytes, as the caller may see it
	messages []*event.Handoff // that are in the prompt
}

// of returns the calls for a task.
func (d *Events) of(id task.ID) *calls {
	of := d.tasks[id]
	if of == nil {
		of = &calls{}
		d.tasks[id] = of
	}
	return of
}

// call returns a call that has not ended.
func (d *Events) call(id task.ID, session string) *call {
	of := d.of(id)
	for _, c := range of.open {
		if c.session == session {
			return c
		}
	}
	c := &call{session: session}
	of.open = append(of.open, c)
	return c
}

// take returns a call that has not ended, and ends it; nil if there is none.
func (d *Events) take(id task.ID, session string) *call {
	of := d.of(id)
	for i, c := range of.open {
		if c.session == session {
			of.open = slices.Delete(of.open, i, i+1)
			return c
		}
	}
	return nil
}

// conversationOf names the conversation that a session belongs to: that of an attempt, or of a child of it.
func conversationOf(attempt int, session string) string {
	return strconv.Itoa(attempt) + record.ChildOf(session)
}

// about returns an event about a session.
func (d *Events) about(kind event.Type, id task.ID, session, agent string, attempt int) event.Event {
	e := event.Event{Type: kind, Task: id, Title: d.titles[id], Agent: agent, Attempt: attempt}
	if of := d.of(id); len(of.links) > 0 {
		e.Child = find(of.links, conversationOf(attempt, session))
	}
	return e
}

// asked notes that an agent is to be called, and emits that it is unless the call is prefetched.
func (d *Events) asked(s *record.CallStart) {
	d.hide(s.Task, s.Partial)
	if s.Title != "" {
		d.titles[s.Task] = s.Title
	}
	of := d.of(s.Task)
	of.holders = set(of.holders, conversationOf(s.Attempt, s.Session), s.Agent)
	c := d.call(s.Task, s.Session)
	if c.begin = s; !s.Ahead {
		d.agentStart(c, s.Time)
	}
}

// question emits that a person is asked for a result.
func (d *Events) question(q *record.Question) {
	if q.Call == "" && q.Approval == "" {
		d.asked(&record.CallStart{Session: q.Session, Task: q.Task, Title: q.Title, Agent: q.Agent, Attempt: q.Attempt, Time: q.Time})
	}
}

// agentStart emits that an agent is called, and the messages in its prompt.
func (d *Events) agentStart(c *call, at time.Time) {
	s := c.begin
	if s == nil || c.hasBegun {
		return
	}
	c.hasBegun = true
	ev := d.about(event.AgentStart, s.Task, s.Session, s.Agent, s.Attempt)
	ev.Receipt, ev.Bytes = c.receipt, c.size
	d.say(at, s.Session, ev)
	for _, h := range c.messages {
		ev := d.about(event.Message, s.Task, s.Session, s.Agent, s.Attempt)
		ev.ID, ev.From, ev.Bytes = h.Source.Name, h.From, h.After.Bytes
		d.say(at, s.Session, ev)
	}
	c.messages = nil
}

// exchange emits that the work of an agent has ended, if it has begun.
func (d *Events) exchange(x *record.AgentCall) {
	d.hide(x.Task, x.Partial)
	if c := d.take(x.Task, x.Session); c == nil || !c.hasBegun {
		return
	}
	ev := d.about(event.AgentComplete, x.Task, x.Session, x.Agent, x.Attempt)
	ev.Status, ev.Partial = task.Completed, x.Partial
	if ev.SetUsage(x.Usage()); !x.Partial {
		ev.Duration, ev.Bytes = x.End.Sub(x.Start), sizeOf(x)
		if ev.Truncated = x.Result != nil && x.Result.Truncated; x.Call != (llm.CallInfo{}) {
			ev.Call = &x.Call
		}
	}
	if x.Code != "" {
		ev.Status, ev.Code, ev.Message = task.Failed, x.Code, x.Error
	}
	d.say(x.End, x.Session, ev)
}

// sizeOf returns the bytes of a result; zero without one that can be read.
func sizeOf(x *record.AgentCall) int {
	if x.Result == nil {
		return 0
	}
	return len(cmp.Or(x.Result.Text, string(x.Result.JSON)))
}

// cutOff emits that the calls for a task that ends were cut off: no entry of their ends follows any more.
func (d *Events) cutOff(end *event.Event) {
	of := d.tasks[end.Task]
	if of == nil {
		return
	}
	var begun []*record.CallStart
	for _, c := range of.open {
		if c.hasBegun {
			begun = append(begun, c.begin)
		}
	}
	for _, s := range begun {
		id := record.CallID{Session: s.Session, Task: s.Task, Agent: s.Agent, Attempt: s.Attempt}
		d.exchange(&record.AgentCall{CallID: id, Start: s.Time, End: end.Time, Spent: record.Spent{Partial: s.Partial}, Code: codes.Canceled})
	}
	delete(d.tasks, end.Task)
}

// toolCall emits that a tool is called, or that a child begins to work.
func (d *Events) toolCall(s *record.CallStart) {
	d.call(s.Task, s.Session).begin = s
	ev := d.about(event.ToolStart, s.Task, s.Session, d.holder(s.Task, s.Attempt, s.Session), s.Attempt)
	if ev.From = s.Agent; s.Child != "" {
		ev.Type, ev.From, ev.To, ev.Child, ev.Bytes = event.AgentSpawn, "", s.To, d.linkOf(s), s.Bytes
		of := d.of(s.Task)
		of.links = set(of.links, conversationOf(s.Attempt, s.Child), ev.Child)
	}
	d.say(s.Time, s.Session, ev)
}

// holder returns the agent that makes a call of a tool.
func (d *Events) holder(id task.ID, attempt int, call string) string {
	return find(d.of(id).holders, conversationOf(attempt, call))
}

// linkOf returns the ID that the events of a child have.
func (d *Events) linkOf(s *record.CallStart) string {
	return record.HandoffID(strings.TrimPrefix(s.Session, d.run))
}

// toolResult emits that a call of a tool or the work of a child has ended, or that a conversation was transferred.
func (d *Events) toolResult(x *record.AgentCall) {
	c := d.take(x.Task, x.Session)
	ev := d.about(event.ToolComplete, x.Task, x.Session, d.holder(x.Task, x.Attempt, x.Session), x.Attempt)
	switch {
	case x.TransferredTo != "":
		ev.Type, ev.From, ev.To, ev.Turn = event.AgentTransfer, ev.Agent, x.TransferredTo, record.TurnOf(x.Session)
		d.say(x.End, x.Session, ev)
		return
	case c == nil || c.begin == nil: // it was refused, or is one of the runtime
		return
	}
	ev.From, ev.Status, ev.Duration = x.Agent, task.Completed, x.End.Sub(x.Start)
	if x.Code != "" {
		ev.Status = task.Failed
	}
	if s := c.begin; s.Child != "" {
		ev.Type, ev.From, ev.Child, ev.Code = event.AgentResult, s.To, d.linkOf(s), x.Code
		if x.Code == "" && x.Result != nil && x.Result.Classification <= d.accepts {
			ev.Bytes = sizeOf(x)
		}
	}
	d.say(x.End, x.Session, ev)
}
