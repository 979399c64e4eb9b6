package team

import (
	"context"
	"encoding/json"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/steer"
)

// An Outbox sends the messages of an agent while it works on a task. The runtime sets the
// sender, the run and the label, which is that of the conversation up to the turn: each call of
// [Agent].Run has an outbox of its own.
//
// Messages take effect when the attempt succeeds: they become durable together with the
// answer, and reach the next tasks of their readers. An attempt that fails sends nothing, and
// of an answer that is corrected only the correction counts.
// The methods are safe for concurrent use. On a nil *Outbox they return an error.
type Outbox struct{ of *engine.Outbox }

// OutboxFrom returns the outbox of the attempt that ctx belongs to: ctx is the one that
// [Agent].Run got, or derives from it. It is nil outside of an attempt, and in a run of a team
// without [Config].Edges that has no [RunOptions].Bus. An agent sends along edges only.
func OutboxFrom(ctx context.Context) *Outbox {
	if of := engine.OutboxFrom(ctx); of != nil {
		return &Outbox{of}
	}
	return nil
}

// Send sends a text to another agent of the team. It returns an error, and sends nothing,
// if the reader is unknown, the text is empty, too large or not valid UTF-8, or the turn has
// ended, whose ctx gave the outbox. A full inbox is no error, but a warning of the run.
func (o *Outbox) Send(to, text string) error { return o.inner().Send(to, text) }

// Broadcast sends a text to every other agent of the team. Its errors are those of
// [Outbox.Send].
func (o *Outbox) Broadcast(text string) error { return o.inner().Broadcast(text) }

func (o *Outbox) inner() *engine.Outbox {
	if o == nil {
		return nil
	}
	return o.of
}

// A Monitor shows one run during and after its execution. The zero value is ready for use.
// It is safe for concurrent use; with several runs, it shows the most recent one.
type Monitor struct{ of record.Monitor }

// Snapshot returns the current state of the run as JSON: its phase, token usage, queue and
// messages: those of the caller's bus or, without one, those whose readers have not ended. Do not log it: it contains unredacted payloads. Before a run has begun,
// Snapshot returns an error.
func (m *Monitor) Snapshot(ctx context.Context) (json.RawMessage, error) {
	s, err := m.inner().Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	return json.Marshal(s)
}

// Steer has a command take effect in the run, and returns once it has and is durable. The error wraps
// [steer.ErrInvalid], [steer.ErrNotRunning] or, with the reason, [steer.ErrRefused]; everything that is
// wrong with a policy is in it as [task.Problems].
func (m *Monitor) Steer(ctx context.Context, c steer.Command) error { return m.inner().Steer(ctx, c) }

// Policy returns the policy of the run that works, and its digest, which a [steer.Command] that
// replaces it has.
func (m *Monitor) Policy() (p *handoff.Policy, digest string, err error) {
	stored, err := m.inner().Policy()
	if err == nil {
		digest = stored.Digest
		p, err = stored.Policy()
	}
	return p, digest, err
}

func (m *Monitor) inner() *record.Monitor {
	if m == nil {
		return nil
	}
	return &m.of
}
