package engine

import (
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/task"
)

// A message is acknowledged when the task that was given it has ended. Until then another attempt may read it again,
// and its agent may reply to it. Afterwards nothing of it stays in the memory of the run: what is left are the journal,
// the trace and the receipts of the prompts that had it. Only a message bus of the caller keeps what it has.

// settle ends what a task has of messages and calls. The task has ended, or the run has.
func settle(r *results, i int) {
	t := &r.tasks[i]
	if r.messages != nil {
		settleMessages(r.messages, i, t.ID, t.Assignee)
	}
	r.calls.forget(t.ID)
}

// settleMessages puts back the messages of a task whose agent was never called, for the agent's next task, and
// acknowledges the others.
func settleMessages(m *runMessages, i int, id task.ID, agent string) {
	var back, had []mailbox.Message
	for _, msg := range m.directed[i] {
		if msg.To == agent {
			back = append(back, msg)
		} else { // for a later holder
			m.markUnread(msg.To, []mailbox.Message{msg})
		}
	}
	m.settleHolders(i)
	for _, msg := range m.turns[i] {
		if !m.offered[msg.ID] && !m.run.memo.Is(memo.Strict) { // a replay does not perform later turns again
			back = append(back, msg)
		} else {
			had = append(had, msg)
		}
	}
	given, delivered := m.given[i]
	switch {
	case !delivered:
		had = joined(had, m.again[i]) // of an earlier process
	case m.read[i]:
		had = joined(had, given)
	default:
		back = joined(back, given)
	}
	if m.post.Forgets() || !m.read[i] {
		delete(m.given, i)
	}
	delete(m.directed, i)
	delete(m.turns, i)
	m.markUnread(agent, back)
	if m.post.Forgets() {
		delete(m.again, i)
		delete(m.read, i)
		m.acknowledge(agent, had)
		endSender(m, id)
	}
}

// acknowledge removes messages that an agent has read from the memory of the run.
func (m *runMessages) acknowledge(agent string, list []mailbox.Message) {
	if len(list) == 0 {
		return
	}
	for i := range list {
		delete(m.offered, list[i].ID)
		if len(m.handoffs) == 0 {
			continue
		}
		if h := m.handoffs[m.name(list[i])]; h != nil {
			h.isRead = true
			h.wait.review()
			drop(m, h)
		}
	}
	must(m.post.Acknowledge(agent, idsOf(list)...)) // they were taken from this inbox
}

// keep keeps a handoff for the tasks that may refer to it.
func (m *runMessages) keep(h *sentHandoff) {
	m.handoffs[h.id] = h
	m.sentBy[h.sender] = append(m.sentBy[h.sender], h)
}

// endSender notes that a task has ended, which may have sent handoffs. The replies that it waited for are
// acknowledged.
func endSender(m *runMessages, id task.ID) {
	list := m.sentBy[id]
	delete(m.sentBy, id)
	for _, h := range list {
		if h.isOver = true; h.reply != nil {
			m.acknowledge(h.from, []mailbox.Message{*h.reply})
		}
		drop(m, h)
	}
}

// drop removes a handoff that no task can refer to any more: neither the one that sent it, which repeats its
// calls in another attempt, nor the one that was given it, which may reply.
func drop(m *runMessages, h *sentHandoff) {
	if h.isOver && (h.isRead || h.lost) {
		delete(m.handoffs, h.id)
	}
}

func idsOf(list []mailbox.Message) []mailbox.ID {
	ids := make([]mailbox.ID, len(list))
	for k := range list {
		ids[k] = list[k].ID
	}
	return ids
}
