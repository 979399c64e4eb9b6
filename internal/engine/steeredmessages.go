package engine

import (
	"slices"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/naming"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// A message of a command goes to one task: its next prompt, or its next turn, has it, and each
// later attempt. It passes the gate as every message does, and cannot raise the label of the task. It
// is stored with the command, and so before any prompt that has it.

// prepareInterrupt is prepare for an interrupt of a task that has not ended.
func (s *steering) prepareInterrupt(c *record.LeftCommand, i int) (do func() error, err error) {
	r := s.run
	t, a := &r.tasks[i], s.working[i]
	switch {
	case a == nil || t.Status != task.InProgress:
		return nil, refused("task %q does not run; to tell its agent something, use message", t.Title)
	case a.isPerson():
		return nil, refused("a person works on %q; answer the question, or cancel the task", t.Title)
	case r.team.Find(a.caps.Agent).IsUnconfined() && !r.team.Find(a.caps.Agent).Process().Repeatable:
		return nil, refused("the command of %q may have effects, and could not be run again; cancel the task instead", t.Title)
	case c.Text != "":
		err = s.checkMessage(c, holderOf(a).caps, i)
	}
	if err == nil && c.Text != "" {
		err = s.send(c, holderOf(a).caps.Agent, i)
	}
	return func() error {
		switch a := s.working[i]; {
		case a == nil:
		case a.interrupt != nil:
			a.interrupt(ErrInterrupted)
		default: // its next prompt may be built already
			a.outdated = true
		}
		return nil
	}, err
}

// isOutdated reports whether the prompt that an attempt is to be given lacks the message of an interrupt. Call it
// once for each prompt.
func isOutdated(s *steering, a *attempt) bool {
	if s == nil || a == nil {
		return false
	}
	a = ofTask(a)
	s.run.mu.Lock()
	defer s.run.mu.Unlock()
	outdated, m := a.outdated, s.run.messages
	a.outdated = false
	return outdated && m != nil && slices.ContainsFunc(m.directed[a.index], func(msg mailbox.Message) bool { return msg.To == holderOf(a).caps.Agent })
}

// prepareMessage is prepare for a message to an agent. A task of the agent that runs gets it with its
// next turn, and else the next one that begins.
func (s *steering) prepareMessage(c *record.LeftCommand) (do func() error, err error) {
	r, to := s.run, -1
	m, known := r.team.Index(c.Agent)
	if !known {
		return nil, refused("unknown agent %q; %s", c.Agent, naming.Suggest(c.Agent, r.team.Names()))
	}
	caps := &r.team.Capabilities[m]
	if to, err = s.reader(c, caps); err != nil {
		return nil, err
	}
	return func() error { return nil }, s.send(c, caps.Agent, to)
}

// reader returns the task that is to read a message: the first that runs and may, or -1 for the next
// one that begins.
func (s *steering) reader(c *record.LeftCommand, caps *gate.Capabilities) (to int, err error) {
	r, open := s.run, false
	readable := false
	if r.plan == nil {
		err = s.checkMessage(c, caps, -1)
	}
	for i := range r.tasks {
		a := s.working[i]
		isHeld := a != nil && holderOf(a).caps.Agent == caps.Agent || r.tasks[i].Assignee == caps.Agent
		if !isHeld && (r.plan == nil || !plan.MayHold(r.plan, i, caps.Agent)) || r.queue.Status(i).Terminal() {
			continue
		}
		open = true
		if refusal := s.checkMessage(c, caps, i); refusal != nil {
			err = refusal
			continue
		}
		readable = true
		if a != nil && r.tasks[i].Status == task.InProgress && holderOf(a).caps.Agent == caps.Agent && len(holderOf(a).tools) > 0 {
			return i, nil
		}
	}
	switch {
	case !open && r.plan != nil:
		return -1, refused("agent %q has no task left", caps.Agent)
	case readable && r.plan != nil:
		return -1, nil
	}
	return -1, err
}

// delivers reports whether a text passes under these terms.
func delivers(t *gate.Terms) bool { return t.Mode() != handoff.Minimal && plan.PassesAsText(t) }

// checkMessage returns an error if the gate would withhold a message from a task, or from any task of
// the agent if i is -1.
func (s *steering) checkMessage(c *record.LeftCommand, caps *gate.Capabilities, i int) error {
	r := s.run
	x := r.governed().MessageCrossing(handoff.User, c.Classification, caps)
	switch {
	case !delivers(r.governed().Terms(handoff.User, caps.Agent)):
		return refused("a rule of the policy keeps messages of the user from %q", caps.Agent)
	case x.Withheld():
		return refused("the text is %v, and the gate withholds it from %q", c.Classification, caps.Agent)
	case i >= 0 && x.After > r.plan.Labels[i]:
		return refused("the text is %v, and task %q reads at most %v", c.Classification, r.tasks[i].Title, r.plan.Labels[i])
	}
	return nil
}

// send sends the text of a command to an agent, for one of its tasks unless that is -1.
func (s *steering) send(c *record.LeftCommand, agent string, to int) error {
	r := s.run
	if r.messages == nil {
		r.openInbox()
		r.messages.begin()
	}
	m := r.messages
	msg, notify, err := m.post.Send(mailbox.Draft{From: handoff.User, To: agent, Content: c.Text, Classification: c.Classification, Name: m.names.next()}, envelope.Header{Classification: c.Classification, Hops: 1})
	if err != nil {
		return refused("%w", err)
	}
	sent := record.SentMessage{}
	if to >= 0 {
		sent.Task = r.tasks[to].ID
		m.direct(to, agent, msg)
	}
	m.record(msg, sent)
	m.notifyOnceDurable(notify)
	return nil
}

// direct takes a message out of the inbox of an agent, for the next prompt of one task.
func (m *runMessages) direct(i int, agent string, msg mailbox.Message) {
	list, err := m.bus.Take(agent, func(one mailbox.Message) bool { return one.ID == msg.ID })
	must(err) // the bus is one of this roster
	m.directed[i] = append(m.directed[i], list...)
}

// directedTo returns the messages that the next prompt of an attempt at a task has first. A later attempt
// at the task has them too.
func (m *runMessages) directedTo(a *attempt) []mailbox.Message {
	list := m.nextDirected(a.index, a.task.Assignee)
	m.given[a.index] = joined(list, m.given[a.index])
	return list
}

// nextDirected returns the messages of the user to one task that an agent of it gets with its next prompt.
func (m *runMessages) nextDirected(i int, agent string) (list []mailbox.Message) {
	for _, msg := range m.directed[i] {
		if msg.To == agent {
			list = append(list, msg)
		}
	}
	if len(list) > 0 {
		m.directed[i] = slices.DeleteFunc(m.directed[i], func(msg mailbox.Message) bool { return msg.To == agent })
	}
	return list
}

// offerMessages offers a turn what its agent was sent meanwhile. A turn that an earlier
// process had is offered what it had then.
func (t *turn) offerMessages() {
	a := t.of
	if a.isChild() {
		return // it reads its goal alone
	}
	r := a.run
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.messages
	if m == nil {
		return
	}
	list, had := []mailbox.Message(nil), true
	if a.after != nil {
		list = m.takeForHolder(a, t.call.part, false)
	} else {
		list, had = m.inTurn(a, t.call.turn)
	}
	if !had {
		list = append(list, m.directedTo(a)...)
		unread := m.takeUnread(a)
		m.given[a.index] = append(m.given[a.index], unread...)
		list = append(list, unread...)
	}
	for _, msg := range list {
		t.addMessage(msg, t.call.limits.On(gate.Source{Kind: handoff.Message, Name: m.name(msg)}, 0))
	}
}

// addMessage offers a message, of which the agent gets at most limit bytes. The lock of the run is held.
func (t *turn) addMessage(msg mailbox.Message, limit int) {
	o := t.call.run.messages.offerOf(msg, t.of.member)
	g := gate.WholeOf(o.Source, "")
	g.Terms, g.MaxBytes = t.call.by.Terms(msg.Envelope.Producer(), t.call.caps.Agent), limit
	t.call.offers, t.call.grants = append(t.call.offers, o), append(t.call.grants, g)
}

// inTurn returns the messages that a turn of an earlier process had, and whether that was answered in
// the conversation that continues. One that begins again has all of them in its next turn.
func (m *runMessages) inTurn(a *attempt, n int) (list []mailbox.Message, had bool) {
	b := a.run.memo.Task(a.task.ID)
	if b == nil || !a.cachedTurn && !a.run.memo.Is(memo.Strict) {
		list = m.turns[a.index]
		delete(m.turns, a.index)
		m.given[a.index] = append(m.given[a.index], list...) // for the next attempt
		return list, false
	}
	if m.offered == nil {
		m.offered = map[mailbox.ID]bool{}
	}
	was := b.Prompt(turnPart(n))
	for _, msg := range m.turns[a.index] {
		if slices.Contains(was.Messages, m.name(msg)) {
			list, m.offered[msg.ID] = append(list, msg), true
		}
	}
	return list, was.Answered
}
