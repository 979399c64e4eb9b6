// Package runevents derives the events of a run from its entries. The process that works on a run and the readers of
// its journal use the same [Events], so subscribers and readers get the same. An event that says what no other entry
// does is an entry itself.
package runevents

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// Events derives the events of one run. It is not safe for concurrent use.
type Events struct {
	run     string
	emit    func(event.Event)
	number  int                  // of the last event of the process
	last    time.Time            // of that event
	began   time.Time            // the run
	accepts label.Classification // the clearance of the caller
	stored  bool                 // the process stored all its events, as earlier versions did, but those of decisions

	titles map[task.ID]string
	names  map[task.ID]string // of instances, by the keys of their items
	tasks  map[task.ID]*calls // of tasks that have not ended, and of the coordinator

	hidden      record.Hidden
	hiddenCalls record.Hidden // of these, the tasks with a call that is hidden; others are only by decisions of the process
}

// New returns the Events of a run without entries, which passes events to emit.
func New(run string, emit func(event.Event)) *Events {
	return &Events{run: run, emit: emit, titles: map[task.ID]string{}, names: map[task.ID]string{}, tasks: map[task.ID]*calls{}, hidden: record.Hidden{}, hiddenCalls: record.Hidden{}}
}

// Add emits the events of the next entry. It numbers an entry that is an event.
func (d *Events) Add(e *record.Entry) {
	switch {
	case e.Begin != nil:
		d.begin(e.Begin)
	case e.Event != nil:
		d.change(record.ChangeOf(e.Event), e.Event.Time)
		d.pass(e.Event)
	case e.Change != nil:
		d.change(e.Change, d.last)
	case e.Record != nil:
		d.decided(e.Record)
	case d.stored:
		d.earlier(e)
	case e.Asked != nil:
		d.asked(e.Asked)
	case e.Begun != nil:
		c := d.call(record.TaskOf(e.Begun.Session), e.Begun.Session)
		d.agentStart(c, e.Begun.Time)
	case e.Question != nil:
		d.question(e.Question)
	case e.Exchange != nil:
		d.exchange(e.Exchange)
	case e.Turn != nil:
		d.hide(e.Turn.Task, e.Turn.Partial)
	case e.ToolCall != nil:
		d.toolCall(e.ToolCall)
	case e.ToolResult != nil:
		d.toolResult(e.ToolResult)
	case e.Sent != nil:
		d.sent(e.Sent)
	case e.Command != nil:
		c := e.Command
		d.say(c.Effective(), "", event.Event{Type: event.Steered, Task: c.Task, Title: c.Title, Agent: c.Agent, From: c.By, Problem: event.Problem{Code: string(c.Kind), Message: cmp.Or(c.EventReason, c.Reason)}})
	case e.End != nil:
		d.end(e.End)
	}
}

// say emits an event about a session, unless the caller learns nothing of the session.
func (d *Events) say(at time.Time, session string, e event.Event) {
	if d.hidden[e.Task] && record.IsInner(session) {
		return
	}
	e.Time, e.Run = at, d.run
	if e.Task != "" {
		e.Name = d.names[e.Task]
	}
	d.pass(&e)
}

// pass numbers and emits an event. Its time is not before that of the last one.
func (d *Events) pass(e *event.Event) {
	if !d.stored {
		d.number++
		e.Seq = d.number
		if e.Time.Before(d.last) {
			e.Time = d.last
		}
		d.last = e.Time
	}
	d.emit(*e)
}

// begin emits that a process has begun.
func (d *Events) begin(b *record.RunStart) {
	d.number, d.last, d.stored = 0, b.Time, b.Version > 0 && b.Version < record.DerivedEvents
	if d.began.IsZero() {
		d.began = b.Time
	}
	for _, of := range d.tasks {
		of.open = nil
	}
	d.hidden = maps.Clone(d.hiddenCalls) // the process does not know what those before it decided
	d.learn(b.Tasks)
	if d.accepts = label.Secret; b.Accepts != nil {
		d.accepts = *b.Accepts
	}
	if !d.stored {
		d.say(b.Time, "", event.Event{Type: event.RunStart, Name: b.Name, Tasks: len(b.Tasks)})
	}
}

// learn notes the titles of tasks.
func (d *Events) learn(plan []event.Planned) {
	for i := range plan {
		d.titles[plan[i].Task] = plan[i].Title
	}
}

// title returns the title of a task, or of a step of the coordinator.
func (d *Events) title(id task.ID) string {
	if title := d.titles[id]; title != "" || !record.IsStep(id) {
		return title
	}
	return strings.TrimPrefix(string(id), handoff.Coordinator+"/")
}

// earlier notes what a later process needs to know of an entry whose events are stored: it may continue the conversation
// of a call.
func (d *Events) earlier(e *record.Entry) {
	switch {
	case e.Asked != nil:
		d.hide(e.Asked.Task, e.Asked.Partial)
		d.heldBy(e.Asked)
	case e.Turn != nil:
		d.hide(e.Turn.Task, e.Turn.Partial)
	case e.Exchange != nil:
		d.hide(e.Exchange.Task, e.Exchange.Partial)
	}
}

// change notes what an event says of a task, and ends the calls of a task that has ended. Nil says nothing.
func (d *Events) change(c *record.TaskChange, at time.Time) {
	if c == nil {
		return
	}
	d.learn(c.Plan)
	if c.Name != "" {
		d.names[c.Task] = c.Name
	}
	if s := record.StatusAfter(c.Type); s.Terminal() && !d.stored {
		if d.cutOff(c.Task, 0, "", at); s == task.Completed {
			delete(d.tasks, c.Task) // another one may be run again, and continue its conversations
		}
	}
}

// end emits that the run has ended.
func (d *Events) end(e *record.RunEnd) {
	if !e.IsSuspended() { // else calls of people are open
		for _, id := range slices.Sorted(maps.Keys(d.tasks)) {
			d.cutOff(id, 0, "", e.Time)
		}
	}
	ev := event.Event{Type: event.RunComplete, Problem: event.Problem{Code: e.Status}, Work: event.Work{Duration: between(d.began, e.Time), Partial: e.Partial}}
	ev.SetUsage(e.Usage)
	d.say(e.Time, "", ev)
}

// hide notes that the caller may not see all of what an agent reads or says for a task.
func (d *Events) hide(id task.ID, partial bool) {
	if partial {
		d.hidden[id], d.hiddenCalls[id] = true, true
	}
}

// decided emits the decisions about a prompt, and keeps what the events of the prompt say.
func (d *Events) decided(p *record.Prompt) {
	for i := range p.Handoffs {
		d.hidden.Learn(&p.Handoffs[i])
	}
	for i := range p.Handoffs {
		h := &p.Handoffs[i]
		if !d.hidden.Knows(h) {
			continue
		}
		ev := event.Event{Type: event.Handed, Task: h.Task, Agent: h.To}
		if h.To != handoff.User {
			ev = d.about(event.Handed, h.Task, h.Session, h.To, record.AttemptOf(h.Session))
			if h.Source.Kind == handoff.Message && h.Verdict == gate.Passed && !h.IsHidden() {
				c := d.call(h.Task, h.Session)
				c.messages = append(c.messages, h)
			}
		}
		ev.Handoff = h
		d.say(h.Time, "", ev)
	}
	if p.Prompt != nil {
		c := d.call(p.Prompt.Receipt.Task, p.Prompt.Receipt.Session)
		c.receipt = p.Prompt.Receipt
		if n := len(p.Prompt.Text); n > 0 {
			c.size = int(p.Prompt.Text[n-1].End)
		}
	}
}

// sent emits that an agent sent a handoff, if the caller may see all of it.
func (d *Events) sent(m *record.SentMessage) {
	if m.Call == "" || !m.Shown {
		return
	}
	ev := d.about(event.MessageSent, record.TaskOf(m.Session), m.Session, m.From, record.AttemptOf(m.Session))
	ev.ID, ev.To, ev.Bytes = m.ID, m.To, m.Bytes
	d.say(m.Time, m.Session, ev)
}
