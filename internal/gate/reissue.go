package gate

import (
	"cmp"
	"time"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/label"
)

// RecordOf returns a result in the form in which it is stored, to be taken again
// with [Reissue].
func RecordOf(e *envelope.Envelope) *envelope.Record {
	r := e.Record()
	return &r
}

// IsShownWhole reports whether the caller reads a stored result as it is: its text, or
// its structured part in its place, and its structured part.
func IsShownWhole(r *envelope.Record, text, structured string) bool {
	return text == cmp.Or(r.Text, string(r.JSON)) && structured == string(r.JSON)
}

// Reissue returns the reply that a stored result was, for [Compartment.GateInbound]
// to issue it anew: at least as sensitive as it was, and with no longer life.
// The error says why the result cannot be relied on any more: it does not match its
// digest or, by now, has expired. At a zero time nothing has expired, and the
// life of what is issued anew does not depend on that of the result.
func Reissue(r *envelope.Record, now time.Time) (Reply, *envelope.Envelope, error) {
	e, err := r.Envelope()
	if err == nil {
		err = e.Genuine()
	}
	if err == nil && !now.IsZero() {
		err = e.Fresh(now)
	}
	if err != nil {
		return Reply{}, nil, err
	}
	h, p := e.Header(), e.Open()
	reply := Reply{Text: p.Text(), Tags: h.Tags, Truncated: h.Truncated, Earlier: &Earlier{Classification: h.Classification}}
	if !now.IsZero() {
		reply.Earlier.ExpiresAt = h.ExpiresAt
	}
	if canonical, ok := p.JSON(); ok {
		reply.JSON, err = jsonvalue.Parse(canonical)
	}
	return reply, e, err
}

// InputText returns the text of a result of an earlier run, and its header, for a
// run that takes the result as an input: its canonical JSON if it has a
// structured part, else its text. The error says why the result cannot be
// relied on: it does not match its digest or, by now, has expired. At a zero
// time nothing has expired.
func InputText(e *envelope.Envelope, now time.Time) (string, envelope.Header, error) {
	err := e.Genuine()
	if err == nil && !now.IsZero() {
		err = e.Fresh(now)
	}
	if err != nil {
		return "", envelope.Header{}, err
	}
	p := e.Open()
	canonical, _ := p.JSON()
	return cmp.Or(canonical, p.Text()), e.Header(), nil
}

// Raise returns a result with at least a label, such as that of a loop, which also tells how many
// rounds there were.
func Raise(e *envelope.Envelope, level label.Classification) *envelope.Envelope {
	if e == nil || level <= e.Classification() {
		return e
	}
	h := e.Header()
	h.Classification = level
	raised, err := envelope.New(h, e.Open())
	if err != nil {
		panic(err) // its header and payload are those of an envelope
	}
	return raised
}
