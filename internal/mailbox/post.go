package mailbox

import (
	"errors"
	"fmt"

	"github.com/runteam/runteam/envelope"
)

// ErrBusy reports a bus that another run uses.
var ErrBusy = errors.New("bus in use")

// A Post sends messages in the name of agents. The runtime holds it while a run
// uses the bus, so that no agent can name another one as the sender.
type Post struct {
	bus   *Bus
	run   string
	sent  func(Message) (name string)
	first int // the number of the first message that can be sent meanwhile
}

// Attach lets a run use the bus, one at a time: another Attach is an [ErrBusy]
// until [Post.Detach]. Meanwhile [Bus.Send] and [Bus.Broadcast] take only what
// the user (handoff.User) sends. If sent is not nil, it is called with each of these
// messages before anyone can read it, in the order of sending, and names it; it must
// not call the bus.
func (b *Bus) Attach(run string, sent func(Message) (name string)) (*Post, error) {
	if err := b.usable(); err != nil {
		return nil, fmt.Errorf("attach: %w", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.post != nil {
		return nil, fmt.Errorf("attach: %w: run %q has it; wait for its end, or make another bus", ErrBusy, b.post.run)
	}
	b.post = &Post{bus: b, run: run, sent: sent, first: b.messages.sent}
	return b.post, nil
}

// usable returns an error for a post that [Bus.Attach] did not make.
func (p *Post) usable() error {
	if p == nil || p.bus == nil {
		return fmt.Errorf("%w post: it is nil or zero; make one with Attach", ErrInvalid)
	}
	return nil
}

// NameOf returns what the run calls a message; empty for one that was sent before [Bus.Attach], whose name is that
// of another run, and for one without a name.
func (p *Post) NameOf(m Message) string {
	if p.usable() != nil || numberOf(m.ID) < p.first {
		return ""
	}
	return m.Name
}

// Detach ends the use of the bus. It may be called more than once.
func (p *Post) Detach() {
	if p.usable() != nil {
		return
	}
	p.bus.mu.Lock()
	defer p.bus.mu.Unlock()
	if p.bus.post == p {
		p.bus.post = nil
	}
}

// Check returns the error that [Post.Send] would return for a draft with its own label, except
// [ErrFull]: whether its reader has read what it was sent is not for the sender to know.
func (p *Post) Check(d Draft) error {
	if err := p.usable(); err != nil {
		return err
	}
	readers, err := p.bus.agents.address(&d)
	if err != nil {
		return err
	}
	return p.bus.agents.sends(d.From, d.Classification, readers)
}

// Send sends a draft, a broadcast if To is empty or [Everyone]. The header says
// what the runtime knows of the message: label, run, expiry, hops, sources and,
// unless it is zero, the time of creation. Its id and producer are set by the
// bus, and the draft's label is not used.
//
// Subscribers learn of the message when notify is called; it is nil if there are none.
func (p *Post) Send(d Draft, h envelope.Header) (m Message, notify func(), err error) {
	if err := p.usable(); err != nil {
		return Message{}, nil, err
	}
	readers, err := p.bus.agents.address(&d)
	if err != nil {
		return Message{}, nil, err
	}
	m, subscribers, err := p.bus.store(&d, h, readers, "")
	if len(subscribers) == 0 {
		return m, nil, err
	}
	return m, func() {
		for _, s := range subscribers {
			s.deliver()
		}
	}, nil
}

// Restore puts a message of an earlier process into the inboxes again, also
// beyond their limit. Subscribers do not learn of it.
func (p *Post) Restore(d Draft, h envelope.Header) (Message, error) {
	if err := p.usable(); err != nil {
		return Message{}, err
	}
	readers, err := p.bus.agents.address(&d)
	if err == nil {
		err = p.bus.agents.sends(d.From, h.Classification, readers)
	}
	if err != nil {
		return Message{}, err
	}
	p.bus.mu.Lock()
	defer p.bus.mu.Unlock()
	e, err := p.bus.seal(&d, h)
	if err != nil {
		return Message{}, err
	}
	return p.bus.deposit(&d, e, readers).Message, nil
}

// Acknowledge says that an agent needs messages no more, which it has read. If the bus forgets, they leave its
// inbox, and those that no other reader has left are gone; otherwise they are kept. An id of no message to that
// agent is an [ErrUnknown], and then nothing changes.
func (p *Post) Acknowledge(agent string, ids ...ID) error {
	if err := p.usable(); err != nil {
		return err
	}
	b := p.bus
	return b.mark("acknowledge", agent, ids, func(box *inbox, list []*entry) {
		box.read(list)
		if !b.options.Forget {
			return
		}
		box.all = without(box.all, list)
		for _, e := range list {
			b.messages.acknowledge(e)
		}
	})
}

// Forgets reports whether messages that are acknowledged are gone.
func (p *Post) Forgets() bool { return p.usable() == nil && p.bus.options.Forget }

// Len returns how many messages the bus keeps.
func (p *Post) Len() int {
	if p.usable() != nil {
		return 0
	}
	p.bus.mu.Lock()
	defer p.bus.mu.Unlock()
	return len(p.bus.messages.kept) - p.bus.messages.gone
}
