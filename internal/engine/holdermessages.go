package engine

import (
	"cmp"
	"maps"
	"slices"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/memo"
	"github.com/runteam/runteam/internal/plan"
)

// A holder to which a conversation was transferred reads what was sent to its agent: with its first prompt
// all that was given to the agent for this task before, and what waits in the inbox; with each later turn
// what came since.

// A holderInbox are the messages that the holders of a task have had, by the agent.
type holderInbox struct {
	given    map[string][]mailbox.Message
	reserved map[string][]mailbox.Message // that prompts of an earlier process had, and none of this one yet
}

// holderInbox returns the messages of the holders of a task, and creates the inbox on first use.
func (m *runMessages) holderInbox(i int) *holderInbox {
	in := m.holders[i]
	if in == nil {
		in = &holderInbox{map[string][]mailbox.Message{}, map[string][]mailbox.Message{}}
		m.holders[i] = in
	}
	return in
}

// has reports whether a holder had a message.
func (in *holderInbox) has(msg mailbox.Message) bool {
	for _, by := range []map[string][]mailbox.Message{in.given, in.reserved} {
		if slices.ContainsFunc(by[msg.To], func(one mailbox.Message) bool { return one.ID == msg.ID }) {
			return true
		}
	}
	return false
}

// reserveForHolders takes the messages that holders of task i had in an earlier process out of the inboxes,
// and those of the user for them that no prompt has.
func (m *runMessages) reserveForHolders(p *plan.Plan, i int, b *memo.Task) {
	for _, h := range plan.Holders(p, i) {
		name := m.run.team.Config.Agents[h.Member].Name
		m.directed[i] = append(m.directed[i], m.takeNamed(name, m.run.memo.Undelivered(p.Graph.Task(i).ID))...)
	}
	if b == nil {
		return
	}
	in := m.holderInbox(i)
	for _, h := range slices.SortedFunc(slices.Values(b.Prompts), func(x, y memo.Prompt) int { return cmp.Compare(x.Part, y.Part) }) {
		if h.IsWithin() {
			in.reserved[h.Agent] = append(in.reserved[h.Agent], m.takeNamed(h.Agent, h.Messages)...)
		}
	}
}

// takeForHolder removes the messages for a prompt of a holder, its first one or that of a later turn, from the
// inboxes and returns them. The caller holds the lock of the run.
func (m *runMessages) takeForHolder(h *attempt, part string, first bool) (list []mailbox.Message) {
	agent, in := h.caps.Agent, m.holderInbox(h.index)
	continues := h.cached()
	if first {
		list, continues = slices.Clone(in.given[agent]), h.after.cached()
	}
	add := func(more []mailbox.Message) {
		list, in.given[agent] = append(list, more...), append(in.given[agent], more...)
		h.took = append(h.took, more...)
	}
	var was memo.Prompt
	if continues || h.run.memo.Is(memo.Strict) {
		was = h.run.memo.Task(h.task.ID).Prompt(part)
	}
	if was.Agent == "" {
		add(in.reserved[agent])
		delete(in.reserved, agent)
	} else {
		had := func(msg mailbox.Message) bool { return slices.Contains(was.Messages, m.name(msg)) }
		var again []mailbox.Message
		for _, msg := range in.reserved[agent] {
			if had(msg) {
				again = append(again, msg)
			}
		}
		in.reserved[agent] = slices.DeleteFunc(in.reserved[agent], had)
		list = slices.DeleteFunc(list, func(msg mailbox.Message) bool { return !had(msg) })
		add(again)
	}
	if !was.Answered {
		add(m.nextDirected(h.index, agent))
		add(m.takeUnread(h))
	}
	return list
}

// cached reports whether a conversation is one of an earlier process.
func (c *conversation) cached() bool { return c != nil && c.cachedTurn }

// offerToHolder offers a holder the messages of its first prompt.
func (m *runMessages) offerToHolder(h *attempt) {
	if m == nil {
		return
	}
	h.run.mu.Lock()
	defer h.run.mu.Unlock()
	list := m.takeForHolder(h, h.part, true)
	for _, msg := range list {
		h.offers = append(h.offers, m.offerOf(msg, h.member))
		g := gate.WholeOf(gate.Source{Kind: handoff.Message, Name: m.name(msg)}, "")
		g.Terms, g.MaxBytes = h.by.Terms(msg.Envelope.Producer(), h.caps.Agent), h.limits.On(g.Source, 0)
		h.grants = append(h.grants, g)
		h.messageCount++
	}
}

// returnToInbox returns the messages of a holder to the inbox if the conversation was not transferred to it. What
// its agent has read as an earlier holder stays read.
func (m *runMessages) returnToInbox(h *attempt) {
	if m == nil {
		return
	}
	h.run.mu.Lock()
	defer h.run.mu.Unlock()
	in, agent := m.holderInbox(h.index), h.caps.Agent
	m.markUnread(agent, h.took)
	in.given[agent] = slices.DeleteFunc(in.given[agent], func(msg mailbox.Message) bool {
		return slices.ContainsFunc(h.took, func(one mailbox.Message) bool { return one.ID == msg.ID })
	})
}

// settleHolders returns what the holders of task i have not read to the inboxes, and acknowledges the rest.
func (m *runMessages) settleHolders(i int) {
	in := m.holders[i]
	if in == nil {
		return
	}
	for _, agent := range slices.Sorted(maps.Keys(in.reserved)) {
		if m.run.repeats() { // a replay does not ask the holders again
			in.given[agent] = append(in.given[agent], in.reserved[agent]...)
		} else {
			m.markUnread(agent, in.reserved[agent])
		}
	}
	in.reserved = map[string][]mailbox.Message{}
	if !m.post.Forgets() {
		return
	}
	for _, agent := range slices.Sorted(maps.Keys(in.given)) {
		m.acknowledge(agent, in.given[agent])
	}
	delete(m.holders, i)
}

// markUnread puts messages back into the inbox of an agent.
func (m *runMessages) markUnread(agent string, list []mailbox.Message) {
	if len(list) > 0 { // else the task may be one without an agent
		must(m.bus.MarkUnread(agent, idsOf(list)...))
	}
}
