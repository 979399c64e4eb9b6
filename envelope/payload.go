package envelope

import (
	"fmt"

	"github.com/runteam/runteam/internal/jsonvalue"
)

// A Payload is a text, a structured value, or a text with a structured part.
// It is immutable. The zero value is an empty text.
type Payload struct {
	text       string
	structured string // canonical JSON (RFC 8785); empty means that there is none
}

// Text returns the payload of a plain text.
func Text(text string) Payload { return Payload{text: text} }

// Structured returns the payload of one JSON value, read as [ParseJSON] does.
func Structured(raw string) (Payload, error) {
	v, err := jsonvalue.Parse(raw)
	if err != nil {
		return Payload{}, err
	}
	return Payload{structured: v.Canonical()}, nil
}

// WithStructured returns the payload with v as its structured part.
func (p Payload) WithStructured(v jsonvalue.Value) Payload {
	p.structured = v.Canonical()
	return p
}

// WithText returns the payload with another text and the same structured part.
func (p Payload) WithText(text string) Payload {
	p.text = text
	return p
}

// Text returns the text; it is empty for a payload that is structured only.
func (p Payload) Text() string { return p.text }

// JSON returns the structured part in its canonical form; ok is false if there is none.
func (p Payload) JSON() (canonical string, ok bool) { return p.structured, p.structured != "" }

// Size returns the length of both parts in bytes.
func (p Payload) Size() int { return len(p.text) + len(p.structured) }

// Format writes "payload" for every verb, so that no verb prints what it holds.
func (p Payload) Format(f fmt.State, _ rune) { fmt.Fprint(f, "payload") }
