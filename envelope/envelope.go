// Package envelope decides what a piece of context is: whose it is, how fresh,
// how sensitive, and what it was made from.
//
// An [Envelope] cannot change. To alter what it carries, make a new one that
// names the old one in its DerivedFrom. Nothing in this package prints a
// payload: an envelope formats, logs and marshals as its header alone.
package envelope

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// An ID names an envelope within its run.
type ID string

// MaxHops is how many times context may be handed on by messages, handoffs and
// spawns. Dependencies do not count: their graph has no cycle.
const MaxHops = 16

// What can be wrong with an envelope. Errors of this package wrap these.
var (
	ErrInvalid  = errors.New("invalid envelope")
	ErrExpired  = errors.New("envelope expired")
	ErrFuture   = errors.New("envelope made in the future")
	ErrTampered = errors.New("envelope does not match its digest")
)

// A Header says everything about a piece of context but the context itself.
type Header struct {
	ID             ID                   `json:"id"`
	Producer       string               `json:"producer"` // an agent's name, or user for what the caller brought: inputs, goals, messages
	Task           task.ID              `json:"task,omitempty"`
	Run            string               `json:"run,omitempty"`
	Classification label.Classification `json:"classification"`
	Trust          label.Trust          `json:"trust"`
	CreatedAt      time.Time            `json:"createdAt"`
	ExpiresAt      time.Time            `json:"expiresAt,omitzero"` // zero means never
	Hops           int                  `json:"hops,omitempty"`
	DerivedFrom    []ID                 `json:"derivedFrom,omitempty"`
	Tags           []string             `json:"tags,omitempty"`
	Truncated      bool                 `json:"truncated,omitempty"` // a limit on tokens ended the answer, and the task accepted it
}

// An Envelope is a payload with its header. Its digest covers both. It is
// immutable and safe for concurrent use; only [New] and [Record.Envelope]
// make one. Fresh and Genuine of a nil *Envelope return errors; its other methods
// must not be called.
type Envelope struct {
	header           Header
	text, structured *string // of the payload; no verb of fmt follows a pointer to a string
	stored           *string // the digest that it was stored with; nil if it was made in this process
}

// New seals a payload under a header. The header's slices are copied. A header
// without an id or producer, made at no time, with a label that does not exist,
// more than [MaxHops] hops, or an expiry that is not after its creation is
// refused with [ErrInvalid].
func New(h Header, p Payload) (*Envelope, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	h.DerivedFrom, h.Tags = slices.Clone(h.DerivedFrom), slices.Clone(h.Tags)
	// Expiry goes by the wall clock: a monotonic clock stops while
	// a machine sleeps. CreatedAt keeps its own, so that a clock that is set back
	// during a run does not put what was made before into the future.
	h.ExpiresAt = h.ExpiresAt.Round(0)
	made := &struct { // one allocation for both
		envelope Envelope
		payload  Payload
	}{Envelope{header: h}, p}
	e := &made.envelope
	e.text, e.structured = &made.payload.text, &made.payload.structured
	return e, nil
}

func (h *Header) check() error {
	switch {
	case h.ID == "":
		return fmt.Errorf("%w: no id", ErrInvalid)
	case h.Producer == "":
		return fmt.Errorf("%w %q: no producer", ErrInvalid, h.ID)
	case !h.Classification.Valid():
		return fmt.Errorf("%w %q: %v does not exist", ErrInvalid, h.ID, h.Classification)
	case h.Trust > label.Endorsed:
		return fmt.Errorf("%w %q: no such trust", ErrInvalid, h.ID)
	case h.CreatedAt.IsZero():
		return fmt.Errorf("%w %q: no creation time", ErrInvalid, h.ID)
	case h.Hops < 0 || h.Hops > MaxHops:
		return fmt.Errorf("%w %q: %d hops, at most %d", ErrInvalid, h.ID, h.Hops, MaxHops)
	case !h.ExpiresAt.IsZero() && !h.ExpiresAt.After(h.CreatedAt):
		return fmt.Errorf("%w %q: expires before it is made", ErrInvalid, h.ID)
	}
	return nil
}

// Header returns a copy of the header.
func (e *Envelope) Header() Header {
	h := e.header
	h.DerivedFrom, h.Tags = slices.Clone(h.DerivedFrom), slices.Clone(h.Tags)
	return h
}

// ID returns the envelope's id.
func (e *Envelope) ID() ID { return e.header.ID }

// Producer returns the name of the agent that made the payload, or user for the caller.
func (e *Envelope) Producer() string { return e.header.Producer }

// Classification returns how sensitive the payload is.
func (e *Envelope) Classification() label.Classification { return e.header.Classification }

// Trust returns whether the payload is endorsed.
func (e *Envelope) Trust() label.Trust { return e.header.Trust }

// ExpiresAt returns the moment from which the payload may no longer be read; zero means never.
func (e *Envelope) ExpiresAt() time.Time { return e.header.ExpiresAt }

// Truncated reports whether a limit on tokens ended the answer that this is.
func (e *Envelope) Truncated() bool { return e.header.Truncated }

// Size returns the length of both parts of the payload in bytes.
func (e *Envelope) Size() int { return len(*e.text) + len(*e.structured) }

// Structured reports whether the payload has a structured part.
func (e *Envelope) Structured() bool { return *e.structured != "" }

// Digest returns the SHA-256 of the versioned header and the payload, in hex: the one that
// the envelope was stored with, or that of an envelope made in this process.
func (e *Envelope) Digest() string {
	if e.stored != nil {
		return *e.stored
	}
	return e.sum()
}

// Fresh returns nil if the payload may be read at the given time: not before
// it was made ([ErrFuture]), and before, not at, its expiry ([ErrExpired]).
func (e *Envelope) Fresh(now time.Time) error {
	if e == nil {
		return fmt.Errorf("%w: it is nil", ErrInvalid)
	}
	h := &e.header
	if h.CreatedAt.After(now) {
		return fmt.Errorf("%w: %q is from %s", ErrFuture, h.ID, h.CreatedAt.Format(time.RFC3339))
	}
	if !h.ExpiresAt.IsZero() && !now.Before(h.ExpiresAt) {
		return fmt.Errorf("%w: %q at %s", ErrExpired, h.ID, h.ExpiresAt.Format(time.RFC3339))
	}
	return nil
}

// Genuine returns nil if header and payload match the digest that the envelope was
// stored with, and [ErrTampered] otherwise. An envelope made in this process is
// genuine, because it cannot change.
func (e *Envelope) Genuine() error {
	if e == nil || e.text == nil {
		return fmt.Errorf("%w: it is nil or zero", ErrInvalid)
	}
	if e.stored != nil && e.sum() != *e.stored {
		return fmt.Errorf("%w: %q", ErrTampered, e.header.ID)
	}
	return nil
}

// Open returns the payload as its producer made it: nothing filtered, nothing
// redacted. It is for the gate alone; every other reader gets what the gate
// made of it.
func (e *Envelope) Open() Payload { return Payload{*e.text, *e.structured} }

// Format writes the header in one line for every verb, so that no verb prints a
// payload, even of a dereferenced Envelope.
func (e Envelope) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "envelope %q from %q, %v, %s", e.header.ID, e.header.Producer, e.header.Classification, bytesize.ClassText(e.Open().Size()))
}

// LogValue returns the header for a structured log, without the payload.
func (e *Envelope) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", string(e.header.ID)),
		slog.String("producer", e.header.Producer),
		slog.String("classification", e.header.Classification.String()),
		slog.Int("bytes", bytesize.Class(max(e.Open().Size(), 1))),
	)
}
