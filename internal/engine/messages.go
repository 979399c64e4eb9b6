package engine

import (
	"fmt"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
)

// newMessageBus returns a message bus for the members of a roster, which may forget what is acknowledged.
func newMessageBus(t *plan.Roster, forget bool) *mailbox.Bus {
	b, err := mailbox.New(t.Names(), mailbox.Options{Edges: t.Config.Edges, Logger: t.Log, Forget: forget})
	if err != nil {
		panic(fmt.Sprintf("runteam: %v", err)) // the names were checked
	}
	return b
}

// deliver offers an attempt the messages that wait for its agent, each once and
// to all attempts at one task. One that is more sensitive than the task may be
// waits for a task that may read it. A message that has expired is not delivered.
func (a *attempt) deliver() {
	r := a.run
	converses := r.memo.Counted(a.task.ID).Converses // then its next turn has what came since
	if _, given := r.messages.given[a.index]; !given {
		list := r.messages.again[a.index]
		if !converses {
			list = joined(list, r.messages.takeUnread(a))
		}
		r.messages.given[a.index] = list
		a.start = time.Now() // not before the last of them was sent
	}
	if !converses {
		r.messages.directedTo(a)
	}
	a.offers = slices.Grow(a.offers, len(r.messages.given[a.index]))
	for _, m := range r.messages.given[a.index] {
		a.offers = append(a.offers, r.messages.offerOf(m, a.member))
		a.messageCount++
	}
}

// joined returns one list after the other. It copies them only if neither is empty.
func joined(first, second []mailbox.Message) []mailbox.Message {
	switch {
	case len(first) == 0:
		return slices.Clip(second)
	case len(second) == 0:
		return slices.Clip(first)
	}
	return slices.Concat(first, second)
}

// started returns the outbox of the attempt.
func (a *attempt) started() *Outbox {
	if a.root != nil {
		return nil // a child or a later holder sends nothing
	}
	return a.newOutbox(&a.modelCall)
}

// warnUndelivered warns of the messages that no task of the plan got, of those that the caller may see.
func (m *runMessages) warnUndelivered(p *plan.Plan) {
	if m == nil || p == nil {
		return
	}
	for _, name := range m.run.team.Names() {
		waiting, err := m.bus.Unread(name)
		must(err)
		for _, msg := range waiting {
			if !m.isShown(msg) {
				continue
			}
			if m.run.memo.HadDirected(m.name(msg)) {
				continue
			}
			why := fmt.Sprintf("no task of %q began after it was sent", name)
			if msg.Envelope.Fresh(time.Now()) != nil {
				why = "it expired before"
			} else if level, any := highestLabel(p, name); !any {
				why = fmt.Sprintf("%q has no task", name)
			} else if msg.Envelope.Classification() > level {
				why = fmt.Sprintf("it is %v, and its tasks are at most %v", msg.Envelope.Classification(), level)
			}
			m.run.warn(fmt.Sprintf("a message from %q to %q was not delivered: %s", msg.From, name, why))
		}
	}
}

// highestLabel returns the highest label that a task of an agent has, if it has any.
func highestLabel(p *plan.Plan, agent string) (level label.Classification, any bool) {
	level = label.Public
	for i := range p.Labels {
		if p.Graph.Task(i).Assignee == agent {
			level, any = max(level, p.Labels[i]), true
		}
	}
	return level, any
}
