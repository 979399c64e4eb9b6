package team

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/messagebus"
	"github.com/runteam/runteam/task"
)

// mail is where the messages of a run come from, and which attempt got which.
type mail struct {
	bus   *messagebus.Bus
	given map[int][]messagebus.Message // by task, for all its attempts
}

// NewBus returns a message bus for the agents of the team, for
// [RunOptions].Bus. It is safe for concurrent use, and for one run at a time.
func (t *Team) NewBus() *messagebus.Bus {
	b, err := messagebus.New(t.names(), messagebus.Options{Logger: t.log})
	if err != nil {
		panic(fmt.Sprintf("runteam: %v", err)) // New has checked the names
	}
	return b
}

// newMail returns the messages of a run, and nil if there can be none.
func (t *Team) newMail(o *RunOptions, run string) (*mail, error) {
	if o.Bus == nil && len(o.Messages) == 0 {
		return nil, nil
	}
	m := &mail{bus: o.Bus, given: map[int][]messagebus.Message{}}
	if m.bus == nil {
		var err error
		if m.bus, err = messagebus.New(t.names(), messagebus.Options{Run: run, MaxUnread: max(messagebus.DefaultMaxUnread, len(o.Messages)), Logger: t.log}); err != nil {
			return nil, err
		}
	}
	for i := range o.Messages {
		if err := o.Messages[i].send(m.bus); err != nil {
			return nil, fmt.Errorf("message %d: %w", i+1, err)
		}
	}
	return m, nil
}

func (m *Message) send(b *messagebus.Bus) error {
	draft := messagebus.Draft{From: m.From, To: m.To, Content: m.Text, Classification: m.Classification, TTL: m.TTL}
	if m.To == messagebus.Everyone {
		_, err := b.Broadcast(draft)
		return err
	}
	_, err := b.Send(draft)
	return err
}

// deliver offers an attempt the messages that wait for its agent, each once and
// to all attempts at one task. One that is more sensitive than the task may be
// waits for a task that may read it.
func (a *attempt) deliver() {
	r := a.run
	if a.number == 1 {
		waiting, err := r.mail.bus.Take(a.task.Assignee, func(m messagebus.Message) bool { return m.Envelope.Classification() <= a.bound })
		r.must(err) // the bus is one of this roster
		r.mail.given[a.index] = waiting
		a.start = time.Now() // not before the last of them was sent
	}
	for _, m := range r.mail.given[a.index] {
		a.offers = append(a.offers, handoff.Offer{
			Source: handoff.Source{Kind: handoff.Message, Name: string(m.ID)}, Title: m.From, Assignee: m.From, Envelope: m.Envelope, Optional: true,
		})
		a.told++
		if a.number == 1 && r.bus.live() {
			r.bus.emit(event.Event{Type: event.Message, Task: a.task.ID, Title: a.task.Title, Agent: a.task.Assignee, Attempt: 1, From: m.From, Bytes: m.Bytes})
		}
	}
}

// undelivered warns of the messages that no task got.
func (r *run) undelivered() {
	if r.mail == nil || r.plan == nil {
		return
	}
	for _, name := range r.team.names() {
		waiting, err := r.mail.bus.Unread(name)
		r.must(err)
		for _, m := range waiting {
			why := "no task of its began after it was sent"
			if level := r.highest(name); m.Envelope.Classification() > level {
				why = fmt.Sprintf("it is %v, and its tasks are at most %v", m.Envelope.Classification(), level)
			}
			r.warn(fmt.Sprintf("a message from %q to %q was not delivered: %s", m.From, name, why))
		}
	}
}

// highest returns the highest label that a task of an agent has.
func (r *run) highest(agent string) label.Classification {
	level := label.Public
	for i := range r.tasks {
		if r.tasks[i].Assignee == agent {
			level = max(level, r.plan.labels[i])
		}
	}
	return level
}

// checkMessages finds what is wrong with the messages of the options, but for
// their labels, which the flow check judges.
func (c *checker) checkMessages() {
	names := c.team.names()
	if b := c.options.Bus; b != nil && !slices.Equal(b.Agents(), names) {
		c.add(task.Problem{Pointer: "/messages", Message: fmt.Sprintf("the message bus is for other agents (%s)", strings.Join(b.Agents(), ", ")), Hint: "make it with NewBus of this team", Err: ErrUnknownAgent})
	}
	for i := range c.options.Messages {
		m := &c.options.Messages[i]
		add := func(key, message, hint string, err error) {
			c.add(task.Problem{Pointer: task.Pointer("messages", i, key), Subject: fmt.Sprintf("message %d", i+1), Message: message, Hint: hint, Err: err})
		}
		if m.From != handoff.User && !slices.Contains(names, m.From) {
			add("from", fmt.Sprintf("no agent is called %q", m.From), didYouMean(m.From, append([]string{handoff.User}, names...)), ErrUnknownAgent)
		}
		if m.To != messagebus.Everyone && !slices.Contains(names, m.To) {
			add("to", fmt.Sprintf("no agent is called %q", m.To), didYouMean(m.To, names), ErrUnknownAgent)
		}
		if m.To == m.From && m.From != "" {
			add("to", fmt.Sprintf("%q would write to itself", m.From), "name another agent, or leave the message out", task.ErrInvalid)
		}
		switch {
		case m.Text == "":
			add("text", "the message is empty", "write what it says", task.ErrInvalid)
		case len(m.Text) > messagebus.MaxContent:
			add("text", fmt.Sprintf("the message has %d bytes, at most %d are sent", len(m.Text), messagebus.MaxContent), "give long texts as inputs", task.ErrInvalid)
		case !utf8.ValidString(m.Text):
			add("text", "the message is not valid UTF-8", "give a text, or clean it first", task.ErrInvalid)
		}
		if !m.Classification.Valid() {
			add("classification", "unknown label", "write public, internal, confidential or secret", label.ErrUnknown)
		}
		if m.TTL < 0 {
			add("ttlMs", "ttlMs must not be negative", "leave it out for no limit", task.ErrInvalid)
		}
	}
}

// reads reports whether a message is for this agent.
func (m *Message) reads(agent string) bool {
	return m.To == agent || m.To == messagebus.Everyone && m.From != agent
}
