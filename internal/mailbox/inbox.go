package mailbox

import (
	"fmt"
	"slices"

	"github.com/runteam/runteam/task"
)

// An inbox is what one agent was sent. Both lists are in the order of sending;
// what is not unread is read.
type inbox struct {
	all, unread   []*entry
	counts        map[sender]int // unread messages; nil until an inbox is longer than the limit, and after it was read
	subscriptions []*subscription
}

// A sender has a limit of its own in each inbox, so that what a reader may not see displaces nothing that it may see.
// In a run each task is one, since an agent may write in one task what it does not know in another.
type sender struct {
	name string
	task task.ID
}

// unreadOf returns how many messages of a sender are unread.
func (box *inbox) unreadOf(s sender) int {
	if box.counts == nil {
		box.counts = map[sender]int{}
		for _, e := range box.unread {
			box.count(&e.Message)
		}
	}
	return box.counts[s]
}

// count notes another unread message.
func (box *inbox) count(m *Message) {
	if box.counts != nil {
		box.counts[sender{m.From, m.Task}]++
	}
}

// Unread returns the messages that an agent has not read, broadcasts among
// them, in the order of sending. A name that is no agent's is an [ErrUnknown].
func (b *Bus) Unread(agent string) ([]Message, error) {
	box, err := b.box("unread messages", agent)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return messagesOf(box.unread), nil
}

// All returns every message to an agent, read and unread, broadcasts among
// them, in the order of sending. A name that is no agent's is an [ErrUnknown].
func (b *Bus) All(agent string) ([]Message, error) {
	box, err := b.box("all messages", agent)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return messagesOf(box.all), nil
}

// Conversation returns what two parties have written to each other, both ways,
// in the order of sending. A party is an agent or the user (handoff.User). Broadcasts
// are not among them: they are to everyone. Unknown names are an [ErrUnknown],
// twice the same one an [ErrInvalid].
func (b *Bus) Conversation(one, other string) ([]Message, error) {
	if err := b.usable(); err != nil {
		return nil, fmt.Errorf("conversation: %w", err)
	}
	if err := b.agents.pair(one, other); err != nil {
		return nil, fmt.Errorf("conversation: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []Message
	for _, e := range b.messages.all() {
		if e.From == one && e.To == other || e.From == other && e.To == one {
			list = append(list, e.Message)
		}
	}
	return list, nil
}

// Take returns the unread messages of an agent that accept lets through, in the
// order of sending, and marks exactly those as read; a nil accept lets all
// through. Each message is returned by one call only, until [Bus.MarkUnread] is called for it. A name that is no agent's is
// an [ErrUnknown].
//
// Accept is called without the lock, in the order of sending, for what is
// unread when Take is called; it may call the bus. A message that another call
// takes meanwhile is not returned. If
// accept panics, nothing is marked.
func (b *Bus) Take(agent string, accept func(Message) bool) ([]Message, error) {
	box, err := b.box("take", agent)
	if err != nil {
		return nil, err
	}
	wanted := b.unread(box)
	if accept != nil {
		wanted = slices.DeleteFunc(wanted, func(e *entry) bool { return !accept(e.Message) })
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := slices.DeleteFunc(wanted, func(e *entry) bool {
		_, still := slices.BinarySearchFunc(box.unread, e.number, byNumber)
		return !still
	})
	box.read(taken)
	return messagesOf(taken), nil
}

// MarkRead marks messages to an agent as read; marking one twice is fine. An
// id of no message to that agent is an [ErrUnknown], and then none is marked.
func (b *Bus) MarkRead(agent string, ids ...ID) error {
	return b.mark("mark read", agent, ids, (*inbox).read)
}

// MarkUnread puts messages back into the inbox of an agent, each at its old
// place, as after a turn that failed before the agent saw them. They count as
// unread again, if need be beyond the limit, and subscribers are not called
// again. An id of no message to that agent is an [ErrUnknown], and then
// nothing changes.
func (b *Bus) MarkUnread(agent string, ids ...ID) error {
	return b.mark("mark unread", agent, ids, (*inbox).putBack)
}

func (b *Bus) mark(verb, agent string, ids []ID, how func(*inbox, []*entry)) error {
	box, err := b.box(verb, agent)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	list := make([]*entry, len(ids))
	for k, id := range ids {
		at, ok := slices.BinarySearchFunc(box.all, numberOf(id), byNumber)
		if !ok {
			return fmt.Errorf("%s: %w message %.60q: it was not sent to %q", verb, ErrUnknown, id, agent)
		}
		list[k] = box.all[at]
	}
	how(box, inOrder(list))
	return nil
}

// inOrder puts messages into the order of sending, each once.
func inOrder(list []*entry) []*entry {
	slices.SortFunc(list, func(a, b *entry) int { return byNumber(a, b.number) })
	return slices.Compact(list)
}

// read takes some messages from the unread ones.
func (box *inbox) read(list []*entry) { box.unread, box.counts = without(box.unread, list), nil }

// without removes messages from a list. Both are in the order of sending.
func without(list, removed []*entry) []*entry {
	return slices.DeleteFunc(list, func(e *entry) bool {
		for len(removed) > 0 && removed[0].number < e.number {
			removed = removed[1:]
		}
		return len(removed) > 0 && removed[0] == e
	})
}

// putBack adds messages to the unread ones.
func (box *inbox) putBack(list []*entry) {
	box.unread, box.counts = inOrder(append(box.unread, list...)), nil
}

// box returns the inbox of an agent. The error names the operation.
func (b *Bus) box(verb, agent string) (*inbox, error) {
	if err := b.usable(); err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	i, err := b.agents.reader(agent)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", verb, err)
	}
	return &b.inboxes[i], nil
}

// unread returns the messages that are unread now.
func (b *Bus) unread(box *inbox) []*entry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(box.unread)
}
