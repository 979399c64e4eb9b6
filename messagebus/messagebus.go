// Package messagebus carries messages between the agents of a team, and from a program
// to them.
//
//	bus, err := messagebus.New([]string{"analyst", "writer"}, messagebus.Options{})
//	id, err := bus.Send("analyst", "writer", "The claim is for 1,200 euros.", envelope.Header{})
//	messages, err := bus.Unread("writer")
//
// A message is an envelope with a reader. The bus never opens it: whether an agent may
// see a message is decided when the message is delivered. Reading a message marks it and
// removes nothing. A bus is safe for concurrent use and starts no goroutine.
package messagebus

import (
	"encoding/json"
	"fmt"
	"log/slog"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/mailbox"
)

// The conditions that this package reports. Its errors wrap these.
var (
	ErrUnknown = mailbox.ErrUnknown // no such agent, or no such message to it
	ErrInvalid = mailbox.ErrInvalid // an invalid message, list of agents or option
	ErrNoEdge  = mailbox.ErrNoEdge  // no edge leads from the sender to the reader, or only for lower labels
	ErrFull    = mailbox.ErrFull    // an inbox has no room
	ErrBusy    = mailbox.ErrBusy    // another run uses the bus
)

// Options tune a bus. The zero value means the defaults.
type Options struct {
	Edges     []handoff.Edge // along which agents may write to each other; without edges, only the user can send
	MaxUnread int            // unread messages that an agent may have of each sender, in a run of each task; zero means 1000
	Logger    *slog.Logger   // receives an error when a subscriber panics; nil discards it
}

func (o Options) internal() mailbox.Options {
	return mailbox.Options{Edges: o.Edges, MaxUnread: o.MaxUnread, Logger: o.Logger}
}

// A Message is what was sent. It prints without its content, as its envelope does.
type Message struct {
	From     string // an agent, or the user (handoff.User)
	To       string // an agent, or "*" for a broadcast
	Envelope *envelope.Envelope
}

// A Bus keeps the messages of a team. [New] and [FromSnapshot] make one, and
// a team makes one for its agents with NewBus.
type Bus struct{ box *mailbox.Bus }

// New returns a bus without messages for agents, whose names differ in more than letter
// case. Errors wrap [ErrInvalid].
func New(agents []string, o Options) (*Bus, error) { return wrap(mailbox.New(agents, o.internal())) }

// FromSnapshot restores a bus from a snapshot, for the same agents or more. Invalid
// snapshots return an error.
func FromSnapshot(snapshot []byte, agents []string, o Options) (*Bus, error) {
	var s mailbox.Snapshot
	if err := json.Unmarshal(snapshot, &s); err != nil {
		return nil, err
	}
	return wrap(mailbox.FromSnapshot(s, agents, o.internal()))
}

func wrap(b *mailbox.Bus, err error) (*Bus, error) {
	if err != nil {
		return nil, err
	}
	return &Bus{b}, nil
}

// Internal returns what the engine of this module uses of b. It is nil for a nil bus.
func (b *Bus) Internal() *mailbox.Bus {
	if b == nil {
		return nil
	}
	return b.box
}

// Snapshot returns all messages as JSON, for [FromSnapshot]. Do not log it: it contains the
// texts.
func (b *Bus) Snapshot() ([]byte, error) {
	if b.Internal() == nil {
		return nil, fmt.Errorf("snapshot: %w bus: it is nil or zero; make one with New", ErrInvalid)
	}
	return json.Marshal(b.box.Snapshot())
}

// Send puts a message into the inbox of an agent and returns its ID. The sender is an
// agent or the user (handoff.User); the program that owns the bus vouches for it. Of the header
// only the classification and the expiry count.
//
// The errors are [ErrUnknown] for an unknown name, [ErrNoEdge] for an agent that may not write to the other, [ErrInvalid] for a text that is empty,
// not valid UTF-8 or above 1 MiB, and [ErrFull] if the reader has too many unread messages of the sender. While a run uses the bus,
// the program can send only as the user; agents send through the run.
func (b *Bus) Send(from, to, text string, h envelope.Header) (envelope.ID, error) {
	return b.Internal().Send(draft(from, to, text, h))
}

// Broadcast puts one message into the inbox of every agent but its sender. Its errors
// are those of [Bus.Send].
func (b *Bus) Broadcast(from, text string, h envelope.Header) (envelope.ID, error) {
	return b.Internal().Broadcast(draft(from, "", text, h))
}

func draft(from, to, text string, h envelope.Header) mailbox.Draft {
	return mailbox.Draft{From: from, To: to, Content: text, Classification: h.Classification, ExpiresAt: h.ExpiresAt}
}

// Unread returns the messages that an agent has not read, in the order of sending.
func (b *Bus) Unread(agent string) ([]Message, error) { return list(b.Internal().Unread(agent)) }

// All returns every message to an agent, in the order of sending.
func (b *Bus) All(agent string) ([]Message, error) { return list(b.Internal().All(agent)) }

// Conversation returns what two parties have written to each other, without broadcasts.
func (b *Bus) Conversation(one, other string) ([]Message, error) {
	return list(b.Internal().Conversation(one, other))
}

// MarkRead marks messages to an agent as read. If one ID is unknown, none is marked.
func (b *Bus) MarkRead(agent string, ids ...envelope.ID) error {
	return b.Internal().MarkRead(agent, ids...)
}

// Subscribe calls fn for every message that is sent to an agent from now on, until
// cancel is called. Calls happen within Send and Broadcast, one at a time and in the
// order of sending, so a slow function holds up the sender. Fn may call the bus. Cancel
// waits for a call of fn that is under way, unless fn itself calls it.
func (b *Bus) Subscribe(agent string, fn func(Message)) (cancel func(), err error) {
	if fn == nil {
		return b.Internal().Subscribe(agent, nil)
	}
	return b.Internal().Subscribe(agent, func(m mailbox.Message) { fn(message(m)) })
}

func list(all []mailbox.Message, err error) ([]Message, error) {
	if err != nil {
		return nil, err
	}
	out := make([]Message, len(all))
	for i := range all {
		out[i] = message(all[i])
	}
	return out, nil
}

func message(m mailbox.Message) Message { return Message{From: m.From, To: m.To, Envelope: m.Envelope} }
