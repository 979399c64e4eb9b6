package team

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/messagebus"
	"github.com/runteam/runteam/task"
)

// NewBus returns a message bus for the agents of the team, for
// [RunOptions].Bus. It is safe for concurrent use, and for one run at a time. A
// team that [New] did not make panics.
func (t *Team) NewBus() *messagebus.Bus {
	if err := t.made(context.Background()); err != nil {
		panic(fmt.Sprintf("runteam: %v", err))
	}
	b, err := messagebus.New(t.names(), messagebus.Options{Logger: t.log})
	if err != nil {
		panic(fmt.Sprintf("runteam: %v", err)) // New has checked the names
	}
	return b
}

// deliver offers an attempt the messages that wait for its agent, each once and
// to all attempts at one task. One that is more sensitive than the task may be
// waits for a task that may read it; one that has expired waits for nobody.
func (a *attempt) deliver() {
	r := a.run
	if _, given := r.mail.given[a.index]; !given {
		now := time.Now()
		waiting, err := r.mail.bus.Take(a.task.Assignee, func(m messagebus.Message) bool {
			x := r.team.mailed(m.Envelope.Producer(), m.Envelope.Classification(), a.caps)
			return !x.Held() && x.After <= a.bound && !errors.Is(m.Envelope.Fresh(now), envelope.ErrExpired)
		})
		r.must(err) // the bus is one of this roster
		r.mail.given[a.index] = append(r.mail.again[a.index], waiting...)
		a.start = time.Now() // not before the last of them was sent
	}
	for _, m := range r.mail.given[a.index] {
		a.offers = append(a.offers, handoff.Offer{
			Source: handoff.Source{Kind: handoff.Message, Name: r.mail.name(m)}, Title: m.From, Assignee: m.From, Envelope: m.Envelope, Optional: true,
		})
		a.messages++
	}
}

// mailed is what becomes of a message of some label on its way to a reader. Its
// text was held to no schema, so only an entry with unsafeText lowers it.
func (t *Team) mailed(from string, level label.Classification, to *handoff.Capabilities) handoff.Crossing {
	x := t.edges.between(from, to.Agent).Crossing(level, to.Clearance(), to.Agent)
	if d := x.Lowers; d != nil && !d.UnsafeText && !x.Held() {
		x.After, x.Lowers, x.Rule, x.Reason = level, nil, handoff.Rule(d.Name), handoff.ReasonRule
		x.Detail = fmt.Sprintf("it is %v, %q may see %v, and %q lowers only the validated parts of a result", level, to.Agent, to.Clearance(), d.Name)
	}
	return x
}

// begun emits an event for each message in the prompt.
func (a *attempt) begun() *Outbox {
	for i := range a.told {
		if s := &a.told[i]; !s.Withheld() && a.run.bus.live() {
			d := a.run.decided(s.Decision())
			a.run.bus.emit(event.Event{Type: event.Message, Task: a.task.ID, Title: a.task.Title, Agent: a.task.Assignee, Attempt: a.number, From: s.Assignee(), Bytes: d.BytesAfter})
		}
	}
	return a.newOutbox()
}

// returnMail puts back the messages of a task whose agent was never asked, for
// the agent's next task.
func (r *run) returnMail(i int) {
	if r.mail == nil || r.mail.read[i] || len(r.mail.given[i]) == 0 {
		return
	}
	var ids []messagebus.ID
	for _, m := range r.mail.given[i] {
		ids = append(ids, m.ID)
	}
	r.must(r.mail.bus.MarkUnread(r.tasks[i].Assignee, ids...))
	delete(r.mail.given, i)
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
			why := fmt.Sprintf("no task of %q began after it was sent", name)
			if m.Envelope.Fresh(time.Now()) != nil {
				why = "it expired before"
			} else if level, any := r.highest(name); !any {
				why = fmt.Sprintf("%q has no task", name)
			} else if m.Envelope.Classification() > level {
				why = fmt.Sprintf("it is %v, and its tasks are at most %v", m.Envelope.Classification(), level)
			}
			r.warn(fmt.Sprintf("a message from %q to %q was not delivered: %s", m.From, name, why))
		}
	}
}

// highest returns the highest label that a task of an agent has, if it has any.
func (r *run) highest(agent string) (level label.Classification, any bool) {
	level = label.Public
	for i := range r.tasks {
		if r.tasks[i].Assignee == agent {
			level, any = max(level, r.plan.labels[i]), true
		}
	}
	return level, any
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
			c.add(task.Problem{Pointer: naming.Pointer("messages", i, key), Subject: fmt.Sprintf("message %d", i+1), Message: message, Hint: hint, Err: err})
		}
		if m.From != handoff.User && !slices.Contains(names, m.From) {
			add("from", fmt.Sprintf("no agent is called %q", m.From), naming.Suggest(m.From, append([]string{handoff.User}, names...)), ErrUnknownAgent)
		}
		if m.To != messagebus.Everyone && !slices.Contains(names, m.To) {
			add("to", fmt.Sprintf("no agent is called %q", m.To), naming.Suggest(m.To, names), ErrUnknownAgent)
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
			c.add(unknownLabel(naming.Pointer("messages", i, "classification"), fmt.Sprintf("message %d", i+1)))
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
