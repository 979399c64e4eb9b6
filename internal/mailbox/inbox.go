package mailbox

import (
	"fmt"
	"slices"
)

// An inbox is what one agent was sent. Both lists are indexes of messages, in
// the order of sending; what is not unread is read.
type inbox struct {
	all, unread   []int
	subscriptions []*subscription
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
	return b.messages.choose(box.unread), nil
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
	return b.messages.choose(box.all), nil
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
	for _, i := range b.messages.numbers() {
		m := b.messages.kept[i].Message
		if m.From == one && m.To == other || m.From == other && m.To == one {
			list = append(list, m)
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
		wanted = slices.DeleteFunc(wanted, func(i int) bool { return !accept(b.message(i)) })
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	taken := slices.DeleteFunc(wanted, func(i int) bool {
		_, still := slices.BinarySearch(box.unread, i)
		return !still
	})
	box.read(taken)
	return b.messages.choose(taken), nil
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

func (b *Bus) mark(verb, agent string, ids []ID, how func(*inbox, []int)) error {
	box, err := b.box(verb, agent)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	indexes := make([]int, len(ids))
	for k, id := range ids {
		i, ok := b.messages.find(id)
		if ok {
			_, ok = slices.BinarySearch(box.all, i)
		}
		if !ok {
			return fmt.Errorf("%s: %w message %.60q: it was not sent to %q", verb, ErrUnknown, id, agent)
		}
		indexes[k] = i
	}
	slices.Sort(indexes)
	how(box, indexes)
	return nil
}

// read takes sorted indexes from the unread messages.
func (box *inbox) read(indexes []int) { box.unread = without(box.unread, indexes) }

// without removes sorted indexes from a list.
func without(list, indexes []int) []int {
	return slices.DeleteFunc(list, func(i int) bool {
		_, found := slices.BinarySearch(indexes, i)
		return found
	})
}

// putBack adds indexes to the unread messages.
func (box *inbox) putBack(indexes []int) {
	box.unread = append(box.unread, indexes...)
	slices.Sort(box.unread)
	box.unread = slices.Compact(box.unread)
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

// unread returns which messages are unread now.
func (b *Bus) unread(box *inbox) []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(box.unread)
}

// message returns one message.
func (b *Bus) message(i int) Message {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.messages.kept[i].Message
}
