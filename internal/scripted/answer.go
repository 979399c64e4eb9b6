package scripted

import (
	"encoding/json"
	"fmt"

	"github.com/runteam/runteam/llm"
)

// Answer returns the text that answers a prompt, without HTTP. The zero Handler has no
// replies. A reply that has a status or a body instead of a text, or that calls tools, is an
// error.
func (h *Handler) Answer(system, user string) (string, error) {
	got := receive(system, []llm.Message{{Role: llm.User, Text: user}})
	a, _ := h.choose(Request{System: system}, got)
	switch {
	case a == nil:
		return got.offline(), nil
	case a.Status != 0 || a.Body != "":
		return "", fmt.Errorf("%sit has no text", a.named())
	}
	res, err := a.answer(got, nil)
	return res.Text, err
}

// Instance returns a small JSON value that a decoded JSON Schema allows. Its free texts
// begin with [Mark].
func Instance(schema any) ([]byte, error) { return json.Marshal(instance(schema)) }
