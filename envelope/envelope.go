// Package envelope defines immutable payloads with provenance: the pieces of context that
// agents may receive, each with its producer, label, trust and expiry.
//
// An [Envelope] cannot change. To change its payload, make a new one that names the old one
// in DerivedFrom. Nothing in this package prints a payload: an envelope formats, logs and
// marshals as its header alone.
package envelope

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/task"
)

// An ID names an envelope within its run.
type ID string

// MaxHops is how many times context may be forwarded by messages, handoffs and spawns.
// Dependencies do not count, because their graph has no cycle.
const MaxHops = 16

// Errors about envelopes. Errors of this package wrap these.
var (
	ErrInvalid  = errors.New("invalid envelope")
	ErrExpired  = errors.New("envelope expired")
	ErrTampered = errors.New("envelope does not match its digest")
)

// A Header describes a piece of context; it does not contain the context itself.
type Header struct {
	ID             ID                   `json:"id"`
	Producer       string               `json:"producer"` // an agent's name, or "user" for what the user of the run gave: inputs, goals, messages
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
// immutable and safe for concurrent use. [New] and [Record.Envelope] make one. Fresh and
// Genuine of a nil *Envelope return errors; its other methods must not be called.
type Envelope struct {
	header           Header
	text, structured *string // of the payload; no verb of fmt follows a pointer to a string
	stored           *string // the digest that it was stored with; nil if it was made in this process
}

// New returns an envelope with this header and payload. The header's slices are copied. A
// header without an ID, without a producer or without a creation time, with a label that
// does not exist, with more than [MaxHops] hops, or with an expiry time that is not after
// its creation is an error that wraps [ErrInvalid].
func New(h Header, p Payload) (*Envelope, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	h.DerivedFrom, h.Tags = slices.Clone(h.DerivedFrom), slices.Clone(h.Tags)
	return seal(h, p), nil
}

// NewLike is [New], but shares the slices of the header with an envelope that has equal ones, which saves memory if
// many envelopes have the same parents. A nil envelope is [New] itself.
func NewLike(e *Envelope, h Header, p Payload) (*Envelope, error) {
	if e == nil || !slices.Equal(e.header.DerivedFrom, h.DerivedFrom) || !slices.Equal(e.header.Tags, h.Tags) {
		return New(h, p)
	}
	if err := h.check(); err != nil {
		return nil, err
	}
	h.DerivedFrom, h.Tags = e.header.DerivedFrom, e.header.Tags
	return seal(h, p), nil
}

// seal makes an envelope with a checked header, whose slices belong to it.
func seal(h Header, p Payload) *Envelope {
	// Expiry goes by the wall clock: a monotonic clock stops while a machine
	// sleeps. CreatedAt keeps its own, so that a clock that is set back during a
	// run does not date earlier envelopes in the future.
	h.ExpiresAt = h.ExpiresAt.Round(0)
	made := &struct { // one allocation for both
		envelope Envelope
		payload  Payload
	}{Envelope{header: h}, p}
	e := &made.envelope
	e.text, e.structured = &made.payload.text, &made.payload.structured
	return e
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

// ID returns the envelope's ID.
func (e *Envelope) ID() ID { return e.header.ID }

// Producer returns the name of the agent that made the payload, or user for the user of the run.
func (e *Envelope) Producer() string { return e.header.Producer }

// Task returns the ID of the task whose result the payload is; it is empty if the payload is no result.
func (e *Envelope) Task() task.ID { return e.header.Task }

// Classification returns how sensitive the payload is.
func (e *Envelope) Classification() label.Classification { return e.header.Classification }

// Trust returns whether the payload is endorsed.
func (e *Envelope) Trust() label.Trust { return e.header.Trust }

// CreatedAt returns when the payload was made.
func (e *Envelope) CreatedAt() time.Time { return e.header.CreatedAt }

// ExpiresAt returns the moment from which the payload may no longer be read; zero means never.
func (e *Envelope) ExpiresAt() time.Time { return e.header.ExpiresAt }

// Hops returns how many times the payload was forwarded by messages, handoffs and spawns.
func (e *Envelope) Hops() int { return e.header.Hops }

// Lineage returns the envelopes that the payload was made from, and the tags that it carries. The lists are shared and
// must not be changed.
func (e *Envelope) Lineage() (parents []ID, tags []string) {
	return e.header.DerivedFrom, e.header.Tags
}

// Truncated reports whether the payload is an answer that a limit on tokens ended.
func (e *Envelope) Truncated() bool { return e.header.Truncated }

// Size returns the length of the payload in bytes: of the text, or of the structured part if there is no text. A text
// with a structured part says the same twice.
func (e *Envelope) Size() int { return cmp.Or(len(*e.text), len(*e.structured)) }

// Structured reports whether the payload has a structured part.
func (e *Envelope) Structured() bool { return *e.structured != "" }

// Digest returns the SHA-256 of the header and the payload, in hex. For an envelope that was
// stored, it is the stored digest, which [Envelope.Genuine] verifies.
func (e *Envelope) Digest() string {
	if e.stored != nil {
		return *e.stored
	}
	return e.sum()
}

// Fresh returns nil if the payload may be read at the given time. It returns [ErrInvalid]
// before the creation time and [ErrExpired] at or after the expiry time.
func (e *Envelope) Fresh(now time.Time) error {
	if e == nil {
		return fmt.Errorf("%w: it is nil", ErrInvalid)
	}
	h := &e.header
	if h.CreatedAt.After(now) {
		return fmt.Errorf("%w: %q was made in the future, at %s", ErrInvalid, h.ID, h.CreatedAt.Format(time.RFC3339))
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

// Open returns the payload as its producer made it, unfiltered and unredacted. Only the
// gate should call it; every other reader gets the form that the gate delivers.
func (e *Envelope) Open() Payload { return Payload{*e.text, *e.structured} }

// Format writes the header in one line for every verb, so that no verb prints a
// payload, even of a dereferenced Envelope.
func (e Envelope) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "envelope %q from %q, %v", e.header.ID, e.header.Producer, e.header.Classification)
}

// LogValue returns the header for a structured log, without the payload.
func (e *Envelope) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("id", string(e.header.ID)),
		slog.String("producer", e.header.Producer),
		slog.String("classification", e.header.Classification.String()),
	)
}
