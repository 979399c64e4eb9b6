package mailbox

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
)

// Send puts a message into the inbox of one agent and returns its id. The bus
// makes the envelope: the sender is its producer, it is untrusted, and it has
// been handed on once. Subscribers of the reader are called before Send
// returns; see [Bus.Subscribe].
//
// Names that are not in the roster are refused with [ErrUnknown], an agent that
// writes to itself, an impossible content, label or TTL with [ErrInvalid], an agent that
// no edge allows to write with [ErrNoEdge], and a message too many with [ErrFull]. Then
// nothing is sent.
//
// Send is for the program that owns the bus and vouches for the sender and the
// label. While a run uses the bus, the only sender is [handoff.User]: agents send
// through the run.
func (b *Bus) Send(d Draft) (ID, error) {
	if err := b.usable(); err != nil {
		return "", fmt.Errorf("send: %w", err)
	}
	to, err := b.agents.direct(&d)
	if err != nil {
		return "", fmt.Errorf("send: %w", err)
	}
	return b.publish("send", &d, []int{to})
}

// direct checks a message to one agent and returns the index of its reader.
func (r *roster) direct(d *Draft) (int, error) {
	to, err := r.reader(d.To)
	if err = errors.Join(r.party(d.From), err, d.check()); err == nil && d.From == d.To {
		err = fmt.Errorf("%w message: %q writes to itself: write to another agent", ErrInvalid, d.From)
	}
	return to, err
}

// Broadcast puts one message into the inbox of every agent to whom the sender may write; the
// draft's To is empty or [Everyone]. It has one id and one envelope, and each
// reader has to read it. Its errors are those of [Bus.Send]; it is also refused if
// there is no other agent, and delivered to none if one inbox is full.
func (b *Bus) Broadcast(d Draft) (ID, error) {
	if err := b.usable(); err != nil {
		return "", fmt.Errorf("broadcast: %w", err)
	}
	readers, err := b.agents.toAll(&d)
	if err != nil {
		return "", fmt.Errorf("broadcast: %w", err)
	}
	return b.publish("broadcast", &d, readers)
}

// toAll checks a broadcast and returns the indexes of its readers.
func (r *roster) toAll(d *Draft) ([]int, error) {
	err := errors.Join(r.party(d.From), d.check())
	if d.To != "" && d.To != Everyone {
		err = errors.Join(err, fmt.Errorf("%w message: a broadcast to %.60q: send it, or leave the reader out", ErrInvalid, d.To))
	}
	readers := r.neighbors(d.From)
	switch {
	case len(readers) > 0:
	case len(r.names) > 1:
		err = errors.Join(err, fmt.Errorf("%w leads from %.60q to another agent", ErrNoEdge, d.From))
	default:
		err = errors.Join(err, fmt.Errorf("%w message: nobody but %.60q is in the roster", ErrInvalid, d.From))
	}
	d.To = Everyone
	return readers, err
}

// address checks a draft to one agent or to all and returns the indexes of its readers.
func (r *roster) address(d *Draft) ([]int, error) {
	if d.To == "" || d.To == Everyone {
		return r.toAll(d)
	}
	to, err := r.direct(d)
	if err != nil {
		return nil, err
	}
	return r.each[to : to+1 : to+1], nil
}

// check reports everything that is wrong with what a draft says; the names are
// the roster's to check. No error quotes the content.
func (d *Draft) check() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("%w message: "+format, append([]any{ErrInvalid}, args...)...))
	}
	switch {
	case d.Content == "":
		bad("it is empty: write what it says")
	case len(d.Content) > MaxContent:
		bad("%d bytes, at most %d: send less", len(d.Content), MaxContent)
	case !utf8.ValidString(d.Content):
		bad("it is not valid UTF-8: send text")
	}
	if !d.Classification.Valid() {
		bad("%w %v: write one of %s", label.ErrUnknown, d.Classification, strings.Join(label.Classifications(), ", "))
	}
	if d.TTL < 0 {
		bad("a TTL of %v: leave it out for a message without end", d.TTL)
	}
	return errors.Join(errs...)
}

// publish stores a checked message of the program and calls the subscribers of
// its readers.
func (b *Bus) publish(verb string, d *Draft, readers []int) (ID, error) {
	h := envelope.Header{Classification: d.Classification, ExpiresAt: d.ExpiresAt, Hops: 1}
	m, subscribers, err := b.store(d, h, readers, handoff.User)
	if err != nil {
		return "", fmt.Errorf("%s: %w", verb, err)
	}
	for _, s := range subscribers {
		s.deliver()
	}
	return m.ID, nil
}

// store puts a message into the inboxes of its readers, or into none, and into
// the queues of their subscribers, which it returns. The envelope is made under
// the lock, so that ids have no gap and times follow them. While a run uses the bus, only the given
// sender may write; empty means anyone.
func (b *Bus) store(d *Draft, h envelope.Header, readers []int, only string) (m Message, subscribers []*subscription, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.post != nil && only != "" && d.From != only {
		return Message{}, nil, fmt.Errorf("%w sender %q: run %q uses the bus; an agent sends through its outbox, the program as %q", ErrInvalid, d.From, b.post.run, only)
	}
	if err := errors.Join(b.agents.sends(d.From, h.Classification, readers), b.room(d, readers)); err != nil {
		return Message{}, nil, err
	}
	e, err := b.seal(d, h)
	if err != nil {
		return Message{}, nil, err
	}
	added := b.deposit(d, e, readers)
	if only != "" && b.post != nil && b.post.sent != nil {
		added.Name = b.post.sent(added.Message)
	}
	m = added.Message
	for _, r := range readers {
		for _, s := range b.inboxes[r].subscriptions {
			s.push(m)
			subscribers = append(subscribers, s)
		}
	}
	return m, subscribers, nil
}

// deposit appends a message to the inboxes of its readers. The caller holds the lock.
func (b *Bus) deposit(d *Draft, e *envelope.Envelope, readers []int) *entry {
	m := Message{ID: e.ID(), From: d.From, To: d.To, At: e.CreatedAt(), Bytes: len(d.Content) + len(d.Structured.Canonical()), Envelope: e, Name: d.Name, Task: d.Task}
	added := b.messages.add(m, len(readers))
	for _, r := range readers {
		box := &b.inboxes[r]
		box.all, box.unread = append(box.all, added), append(box.unread, added)
		box.count(&added.Message)
	}
	return added
}

// room names the readers that may not get another message of this sender. The caller holds the lock.
func (b *Bus) room(d *Draft, readers []int) error {
	var full []string
	for _, r := range readers {
		if box := &b.inboxes[r]; len(box.unread) >= b.options.MaxUnread && box.unreadOf(sender{d.From, d.Task}) >= b.options.MaxUnread {
			full = append(full, fmt.Sprintf("%q", b.agents.names[r]))
		}
	}
	if len(full) > 0 {
		return fmt.Errorf("%w: %s: %d messages of this sender are unread: send when some are read", ErrFull, strings.Join(full, ", "), b.options.MaxUnread)
	}
	return nil
}

// seal makes the envelope of the next message. The caller holds the lock.
func (b *Bus) seal(d *Draft, h envelope.Header) (*envelope.Envelope, error) {
	h.ID, h.Producer, h.Run = b.messages.nextID(), d.From, cmp.Or(h.Run, b.options.Run)
	if h.CreatedAt.IsZero() {
		h.CreatedAt = b.options.Now().UTC()
	}
	if end := h.CreatedAt.Add(d.TTL); d.TTL > 0 && (h.ExpiresAt.IsZero() || end.Before(h.ExpiresAt)) {
		h.ExpiresAt = end
	}
	payload := envelope.Text(d.Content)
	if d.Structured.Canonical() != "" {
		payload = payload.WithStructured(d.Structured)
	}
	e, err := envelope.NewLike(b.last, h, payload)
	if err != nil { // as when the clock knows no time
		return nil, fmt.Errorf("%w message: %w", ErrInvalid, err)
	}
	b.last = e
	return e, nil
}
