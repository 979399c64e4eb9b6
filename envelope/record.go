package envelope

import (
	"encoding/json"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/jsonvalue"
)

// A Record is an envelope as it is stored: the only form that carries the
// payload out of the process. The caller decides where it may be stored.
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

// Envelope returns the envelope that r stores, with the digest that it was
// stored with: if a byte was changed since, [Envelope.Genuine] says so. A
// record that no envelope can come from is refused with [ErrInvalid] or [jsonvalue.ErrInvalid].
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

// MarshalJSON writes the header and the [bytesize.Class] of the payload, without
// the payload.
func (e *Envelope) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Header
		Bytes int `json:"bytes"`
	}{e.Header(), bytesize.Class(max(e.Open().Size(), 1))})
}
