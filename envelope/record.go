package envelope

import (
	"encoding/json"

	"github.com/runteam/runteam/internal/jsonvalue"
)

// A Record is the stored form of an envelope, and the only form that contains the payload.
// The caller decides where it may be stored.
type Record struct {
	Header
	Text   string          `json:"text,omitempty"`
	JSON   json.RawMessage `json:"json,omitempty"`
	Digest string          `json:"digest"`
}

// Record returns the stored form of e.
func (e *Envelope) Record() Record {
	r := Record{Header: e.Header(), Text: *e.text, Digest: e.Digest()}
	if *e.structured != "" {
		r.JSON = json.RawMessage(*e.structured)
	}
	return r
}

// Envelope returns the envelope that r stores, with its stored digest: if a byte has
// changed since, [Envelope.Genuine] returns an error. An invalid header is an error that
// wraps [ErrInvalid]; invalid JSON is an error too.
func (r Record) Envelope() (*Envelope, error) {
	p := Text(r.Text)
	if r.JSON != nil {
		v, err := jsonvalue.Parse(string(r.JSON))
		if err != nil {
			return nil, err
		}
		p = p.WithStructured(v)
	}
	e, err := New(r.Header, p)
	if err != nil {
		return nil, err
	}
	e.stored = &r.Digest
	return e, nil
}

// MarshalJSON writes the header, without the payload and its size.
func (e *Envelope) MarshalJSON() ([]byte, error) { return json.Marshal(e.Header()) }
