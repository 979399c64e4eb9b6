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
	holders []named // the agents that have its conversations, by the child that these are of; those of a prior attempt, until it is asked
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
	ofTool   bool              // it is a call of a tool, or the work of a child; it has begun
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
	e := event.Event{Type: kind, Task: id, Title: d.title(id), Agent: agent, Attempt: attempt}
	if of := d.of(id); len(of.links) > 0 {
		e.Child = find(of.links, conversationOf(attempt, session))
	}
	return e
}

// aboutCall returns an event about a call of an agent or a tool. Its ID is the session, without the run; the calls of tools in
// two attempts may have one session.
func (d *Events) aboutCall(kind event.Type, id task.ID, session, agent string, attempt int) event.Event {
	e := d.about(kind, id, session, agent, attempt)
	if e.ID = strings.TrimPrefix(session, d.run+"/"); attempt > 1 && strings.HasPrefix(session[strings.LastIndexByte(session, '/')+1:], record.CallPrefix) {
		e.ID += "#" + strconv.Itoa(attempt)
	}
	return e
}

// asked notes that an agent is to be called, and emits that it is unless the call is prefetched.
func (d *Events) asked(s *record.CallStart) {
	d.hide(s.Task, s.Partial)
	d.heldBy(s)
	c := d.call(s.Task, s.Session)
	if c.begin = s; !s.Ahead {
		d.agentStart(c, s.Time)
	}
}

// heldBy notes which agent has a conversation.
func (d *Events) heldBy(s *record.CallStart) {
	of := d.of(s.Task)
	of.holders = set(of.holders, record.ChildOf(s.Session), s.Agent)
}

// question emits that a person is asked for a result.
func (d *Events) question(q *record.Question) {
	if q.Call == "" && q.Approval == "" {
		d.titles[q.Task] = q.Title
		d.asked(&record.CallStart{Session: q.Session, Task: q.Task, Agent: q.Agent, Attempt: q.Attempt, Time: q.Time})
	}
}

// agentStart emits that an agent is called, and the messages in its prompt.
func (d *Events) agentStart(c *call, at time.Time) {
	s := c.begin
	if s == nil || c.hasBegun {
		return
	}
	c.hasBegun = true
	ev := d.aboutCall(event.AgentStart, s.Task, s.Session, s.Agent, s.Attempt)
	ev.Receipt, ev.Bytes, ev.Model = c.receipt, c.size, s.Model
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
	defer d.hide(x.Task, x.Partial) // what follows: who knows that it has begun may know that it has ended
	c := d.take(x.Task, x.Session)
	if child := record.ChildOf(x.Session); x.Session == d.run+"/"+string(x.Task)+"/"+strconv.Itoa(x.Attempt)+child {
		d.cutOff(x.Task, x.Attempt, child, x.End) // what its last turn called
	}
	if c == nil || !c.hasBegun {
		return
	}
	ev := d.aboutCall(event.AgentComplete, x.Task, x.Session, x.Agent, x.Attempt)
	hidden := x.Partial || d.hidden[x.Task] // perhaps only a later turn, which the duration and the call would tell of
	ev.Status, ev.Partial = task.Completed, hidden || x.IsPartial()
	if ev.SetUsage(x.Usage()); !hidden {
		ev.Duration, ev.Bytes = between(x.Start, x.End), sizeOf(x)
		if ev.Truncated = x.Result != nil && x.Result.Truncated; x.Call != (llm.CallInfo{}) {
			ev.Call = &x.Call
		}
	}
	if x.Code != "" {
		ev.Status, ev.Code, ev.Message = task.Failed, x.Code, cmp.Or(x.EventError, x.Error)
	}
	d.say(x.End, x.Session, ev)
}

// sizeOf returns the bytes of a result; zero without one that can be read. Calls of tools are no part of it.
func sizeOf(x *record.AgentCall) int {
	switch {
	case x.Result == nil:
		return 0
	case x.CallsTools:
		return len(x.Result.Text)
	}
	return len(cmp.Or(x.Result.Text, string(x.Result.JSON)))
}

// cutOff emits that the calls of an attempt, or of a child of it, were cut off: no entry of their ends follows any more.
// Those that began later, such as calls of children, end first. Zero means all attempts.
func (d *Events) cutOff(id task.ID, attempt int, child string, at time.Time) {
	of := d.tasks[id]
	if of == nil {
		return
	}
	for i := len(of.open) - 1; i >= 0; i = min(i, len(of.open)) - 1 {
		c := of.open[i]
		s, within := c.begin, record.ChildOf(c.session)
		if s == nil || attempt > 0 && (s.Attempt != attempt || within != child && !strings.HasPrefix(within, child+"/")) {
			continue
		}
		x := &record.AgentCall{CallID: record.CallID{Session: s.Session, Task: s.Task, Agent: s.Agent, Attempt: s.Attempt}, Start: s.Time, End: at, Spent: record.Spent{Partial: s.Partial}, Code: codes.Canceled}
		if c.ofTool {
			d.toolResult(x)
		} else {
			d.exchange(x)
		}
	}
}

// toolCall emits that a tool is called, or that a child begins to work.
func (d *Events) toolCall(s *record.CallStart) {
	c := d.call(s.Task, s.Session)
	c.begin, c.ofTool = s, true
	ev := d.aboutCall(event.ToolStart, s.Task, s.Session, d.holder(s.Task, s.Session), s.Attempt)
	if ev.From = s.Agent; s.Child != "" {
		ev.ID, ev.Type, ev.From, ev.To, ev.Child, ev.Bytes = "", event.AgentSpawn, "", s.To, d.linkOf(s), s.Bytes
		ev.Spawn = s.Spawn
		of := d.of(s.Task)
		of.links = set(of.links, conversationOf(s.Attempt, s.Child), ev.Child)
	}
	d.say(s.Time, s.Session, ev)
}

// holder returns the agent that makes a call of a tool. An attempt may continue the conversation of one before.
func (d *Events) holder(id task.ID, call string) string {
	return find(d.of(id).holders, record.ChildOf(call))
}

// linkOf returns the ID that the events of a child have.
func (d *Events) linkOf(s *record.CallStart) string {
	return record.HandoffID(strings.TrimPrefix(s.Session, d.run))
}

// toolResult emits that a call of a tool or the work of a child has ended, or that a conversation was transferred.
func (d *Events) toolResult(x *record.AgentCall) {
	c := d.take(x.Task, x.Session)
	ev := d.aboutCall(event.ToolComplete, x.Task, x.Session, d.holder(x.Task, x.Session), x.Attempt)
	switch {
	case x.TransferredTo != "":
		ev.ID, ev.Type, ev.From, ev.To, ev.Turn = "", event.AgentTransfer, ev.Agent, x.TransferredTo, record.TurnOf(x.Session)
		d.say(x.End, x.Session, ev)
		return
	case c == nil || c.begin == nil: // it was refused, or is one of the runtime
		return
	}
	ev.From, ev.Status, ev.Duration = x.Agent, task.Completed, between(x.Start, x.End)
	if x.Code != "" {
		ev.Status = task.Failed
	}
	if s := c.begin; s.Child != "" {
		ev.ID, ev.Type, ev.From, ev.Child, ev.Code = "", event.AgentResult, s.To, d.linkOf(s), x.Code
		if x.Code == "" && x.Result != nil && x.Result.Classification <= d.accepts {
			ev.Bytes = sizeOf(x)
		}
	}
	d.say(x.End, x.Session, ev)
}

// between returns how long something took by the clock that stored times have, which may have been set meanwhile: events of a
// stored run have no other.
func between(start, end time.Time) time.Duration { return end.Round(0).Sub(start.Round(0)) }
