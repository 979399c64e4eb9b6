package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/mailbox"
	"github.com/runteam/runteam/internal/plan"
)

// ErrOutbox reports a message that an agent may not send: the team has no edges, or the attempt has ended.
var ErrOutbox = errors.New("cannot send a message")

// An Outbox sends the messages of an agent while it works on a task. Package
// team sets the sender, the run and the label, which is that of the attempt's
// prompt; the agent sets none of them.
//
// What is sent takes effect when the attempt succeeds: the messages become
// durable together with the answer, and reach the next tasks of their readers.
// An attempt that fails sends nothing, so a retry repeats nothing. The methods
// are safe for concurrent use; those of a nil *Outbox return an [ErrOutbox].
type Outbox struct {
	post   *mailbox.Post
	from   string
	header envelope.Header
	err    error // why nothing may be sent

	mu      sync.Mutex // guards the rest
	ended   bool       // the attempt has ended
	letters []letter
	bytes   int
}

// A letter is what an agent sends.
type letter struct{ to, text string }

type outboxKey struct{}

// OutboxFrom returns the outbox of the attempt that ctx belongs to: ctx is the
// one that [Agent].Run was given, or derives from it. It is nil outside of an
// attempt, and in a run of a team without [Config].Edges that has no [RunOptions].Bus.
func OutboxFrom(ctx context.Context) *Outbox {
	o, _ := ctx.Value(outboxKey{}).(*Outbox)
	return o
}

// Send sends a text to another agent of the team. An unknown reader, a text that
// is empty, too large or not valid UTF-8, a full inbox, and an attempt that has
// ended are errors, and then nothing is sent.
func (o *Outbox) Send(to, text string) error {
	if to == "" || to == mailbox.Everyone {
		return fmt.Errorf("%w: the reader %q is no agent; name one, or use Broadcast", ErrOutbox, to)
	}
	return o.add(letter{to, text})
}

// Broadcast sends a text to every agent to which an edge leads. Its errors are those
// of [Outbox.Send]. An edge that carries less than the label of the attempt's prompt
// is an error too, and then the text is sent to nobody: send it to each reader that
// may have it.
func (o *Outbox) Broadcast(text string) error {
	return o.add(letter{mailbox.Everyone, text})
}

func (o *Outbox) add(l letter) error {
	if o == nil || o.post == nil {
		return fmt.Errorf("%w: no edge leads from the agent to another one, or ctx belongs to no attempt; set Config.Edges of the team", ErrOutbox)
	}
	if o.err != nil {
		return o.err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ended {
		return fmt.Errorf("%w: the attempt of %q has ended; send before Run returns", ErrOutbox, o.from)
	}
	if err := o.post.Check(o.draft(l)); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if len(o.letters) >= plan.MaxHandoffs {
		return fmt.Errorf("%w: an attempt at a task sends at most %d messages", ErrOutbox, plan.MaxHandoffs)
	}
	if o.bytes += len(l.text); o.bytes > gate.MaxReply {
		o.bytes -= len(l.text)
		return fmt.Errorf("%w: the messages of one attempt are larger than %d MiB; send less", ErrOutbox, gate.MaxReply>>20)
	}
	o.letters = append(o.letters, l)
	return nil
}

// draft returns a message of the attempt.
func (o *Outbox) draft(l letter) mailbox.Draft {
	return mailbox.Draft{From: o.from, To: l.to, Content: l.text, Classification: o.header.Classification}
}

// end closes the outbox and returns what was sent. Later sends are errors.
func (o *Outbox) end() []letter {
	if o == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	return o.letters
}

// newOutbox returns the outbox of an attempt whose agent is called now; nil if
// the run has no message bus.
func (a *attempt) newOutbox() *Outbox {
	if a.run.messages == nil || a.task.IsComputed() {
		return nil
	}
	h, err := (&gate.Compartment{Contract: a.contract}).GateMessage(a.sealed, 0, time.Now())
	return &Outbox{post: a.run.messages.post, from: a.caps.Agent, header: h, err: err}
}
