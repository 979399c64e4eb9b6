package messagebus

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/label"
)

// Send puts a message into the inbox of one agent and returns its id. The bus
// makes the envelope: the sender is its producer, it is untrusted, and it has
// been handed on once. Subscribers of the reader are called before Send
// returns; see [Bus.Subscribe].
//
// Names that are not in the roster are refused with [ErrUnknown], an agent that
// writes to itself, an impossible content, label or TTL with [ErrInvalid], and
// a message too many with [ErrFull]. Then nothing is sent.
func (b *Bus) Send(d Draft) (ID, error) {
	to, err := b.agents.reader(d.To)
	if err = errors.Join(b.agents.party(d.From), err, d.check()); err == nil && d.From == d.To {
		err = fmt.Errorf("%w message: %q writes to itself: write to another agent", ErrInvalid, d.From)
	}
	if err != nil {
		return "", fmt.Errorf("send: %w", err)
	}
	return b.post("send", &d, []int{to})
}

// Broadcast puts one message into the inbox of every agent but its sender; the
// draft's To is empty or [Everyone]. It has one id and one envelope, and each
// reader has to read it. Its errors are those of [Bus.Send]; it is also refused
// when nobody else is there, and sent to nobody when one inbox is full.
func (b *Bus) Broadcast(d Draft) (ID, error) {
	err := errors.Join(b.agents.party(d.From), d.check())
	if d.To != "" && d.To != Everyone {
		err = errors.Join(err, fmt.Errorf("%w message: a broadcast to %.60q: send it, or leave the reader out", ErrInvalid, d.To))
	}
	readers := b.agents.others(d.From)
	if len(readers) == 0 {
		err = errors.Join(err, fmt.Errorf("%w message: nobody but %.60q is in the roster", ErrInvalid, d.From))
	}
	if err != nil {
		return "", fmt.Errorf("broadcast: %w", err)
	}
	d.To = Everyone
	return b.post("broadcast", &d, readers)
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

// post stores a checked message and tells the subscribers of its readers.
func (b *Bus) post(verb string, d *Draft, readers []int) (ID, error) {
	id, told, err := b.store(d, readers)
	if err != nil {
		return "", fmt.Errorf("%s: %w", verb, err)
	}
	for _, s := range told {
		s.deliver()
	}
	return id, nil
}

// store puts a message into the inboxes of its readers, or into none, and into
// the queues of their subscribers, which it returns. The envelope is made under
// the lock, so that ids have no gap and times follow them.
func (b *Bus) store(d *Draft, readers []int) (id ID, told []*subscription, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.room(readers); err != nil {
		return "", nil, err
	}
	e, err := b.seal(d)
	if err != nil {
		return "", nil, err
	}
	m := Message{ID: e.ID(), From: d.From, To: d.To, At: e.Header().CreatedAt, Bytes: len(d.Content), Envelope: e}
	at := len(b.messages)
	b.messages = append(b.messages, m)
	for _, r := range readers {
		box := &b.inboxes[r]
		box.all, box.unread = append(box.all, at), append(box.unread, at)
		for _, s := range box.subscriptions {
			s.push(m)
			told = append(told, s)
		}
	}
	return m.ID, told, nil
}

// room names the readers that may not get another message.
func (b *Bus) room(readers []int) error {
	var full []string
	for _, r := range readers {
		if len(b.inboxes[r].unread) >= b.options.MaxUnread {
			full = append(full, fmt.Sprintf("%q", b.agents.names[r]))
		}
	}
	if len(full) > 0 {
		return fmt.Errorf("%w: %s: %d messages are unread: send when some are read", ErrFull, strings.Join(full, ", "), b.options.MaxUnread)
	}
	return nil
}

// seal makes the envelope of the next message.
func (b *Bus) seal(d *Draft) (*envelope.Envelope, error) {
	h := envelope.Header{
		ID: b.nextID(), Producer: d.From, Run: b.options.Run,
		Classification: d.Classification, CreatedAt: b.options.Now().UTC(), Hops: 1,
	}
	if d.TTL > 0 {
		h.ExpiresAt = h.CreatedAt.Add(d.TTL)
	}
	e, err := envelope.New(h, envelope.Text(d.Content))
	if err != nil { // as when the clock knows no time
		return nil, fmt.Errorf("%w message: %w", ErrInvalid, err)
	}
	return e, nil
}
