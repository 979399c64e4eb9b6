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

// ErrOutbox reports a message that an agent may not send: the team has no edges, or the turn has ended.
var ErrOutbox = errors.New("cannot send a message")

// An Outbox sends the messages of an agent while it works on a task. Package
// team sets the sender, the run and the label, which is that of the conversation up to
// the turn in which it is sent; the agent sets none of them. Each turn has an outbox of its own.
//
// What is sent takes effect when the attempt succeeds: the messages become
// durable together with the answer, and reach the next tasks of their readers.
// An attempt that fails sends nothing, so a retry repeats nothing. Of an answer
// that is corrected, only what was sent with the correction counts. The methods
// are safe for concurrent use; those of a nil *Outbox return an [ErrOutbox].
type Outbox struct {
	post   *mailbox.Post
	of     *modelCall // of the turn
	from   string
	header envelope.Header
	err    error // why nothing may be sent

	mu      sync.Mutex // guards the rest
	ended   bool       // the turn has ended
	letters []letter   // of the turns so far
	before  int        // how many of them are of earlier turns
	bytes   int
}

// A letter is what an agent sends.
type letter struct {
	to, text string
	header   *envelope.Header // of the outbox of its turn
}

type outboxKey struct{}

// OutboxFrom returns the outbox of the attempt that ctx belongs to: ctx is the
// one that [Agent].Run was given, or derives from it. It is nil outside of an
// attempt, and in a run of a team without [Config].Edges that has no [RunOptions].Bus.
func OutboxFrom(ctx context.Context) *Outbox {
	o, _ := ctx.Value(outboxKey{}).(*Outbox)
	return o
}

// Send sends a text to another agent of the team. An unknown reader, a text that
// is empty, too large or not valid UTF-8, and a turn that has
// ended are errors, and then nothing is sent. A full inbox is none: that is a warning to the user.
func (o *Outbox) Send(to, text string) error {
	if to == "" || to == mailbox.Everyone {
		return fmt.Errorf("%w: the reader %q is no agent; name one, or use Broadcast", ErrOutbox, to)
	}
	return o.add(letter{to: to, text: text})
}

// Broadcast sends a text to every agent to which an edge leads. Its errors are those
// of [Outbox.Send]. An edge that carries less than the label of the conversation
// is an error too, and then the text is sent to nobody: send it to each reader that
// may have it.
func (o *Outbox) Broadcast(text string) error {
	return o.add(letter{to: mailbox.Everyone, text: text})
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
		return fmt.Errorf("%w: the turn of %q has ended; send before Run returns", ErrOutbox, o.from)
	}
	l.header = &o.header
	if err := o.post.Check(o.draft(l)); err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if most := o.of.run.team.Config.MaxMessageBytes; len(l.text) > most {
		return fmt.Errorf("%w: %w", ErrOutbox, tooLong(len(l.text), most))
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
	return mailbox.Draft{From: o.from, To: l.to, Content: l.text, Classification: l.header.Classification, Task: o.of.task.ID}
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

// used reports whether the agent sent anything in the turn.
func (o *Outbox) used() bool {
	if o == nil {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.letters) > o.before
}

// newOutbox returns the outbox of a turn whose agent is called now, with what it sent in earlier turns; nil if
// the run has no message bus.
func (a *attempt) newOutbox(x *modelCall) *Outbox {
	if a.run.messages == nil || a.task.IsComputed() {
		return nil
	}
	hops, last := 0, (*modelCall)(nil)
	if a.conversation != nil {
		for _, last = range a.earlier {
			hops = max(hops, gate.HopsOf(last.sealed))
		}
	}
	h, err := (&gate.Compartment{Contract: x.contract}).GateMessage(x.sealed, hops, time.Now())
	o := &Outbox{post: a.run.messages.post, of: x, from: a.caps.Agent, header: h, err: err}
	if was := a.outbox; was != nil {
		o.letters = was.end()
		if was.of != last || len(last.reply.ToolCalls) == 0 { // the turn is repeated, or its answer is corrected
			o.letters = o.letters[:was.before]
		}
		for _, l := range o.letters {
			o.bytes += len(l.text)
		}
		o.before = len(o.letters)
	}
	return o
}
