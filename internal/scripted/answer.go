package scripted

import (
	"encoding/json"
	"fmt"
)

// Answer returns the text that answers a prompt, without HTTP. The zero Handler has no
// replies. A reply with a status or a body instead of a text is an error.
func (h *Handler) Answer(system, user string) (string, error) {
	got := receive(system, []string{user})
	a, _ := h.choose(Request{System: system}, got)
	switch {
	case a == nil:
		return got.offline(), nil
	case a.Status != 0 || a.Body != "":
		return "", fmt.Errorf("%sit has no text", a.named())
	}
	return got.render(a.text)
}

// Instance returns a small JSON value that a decoded JSON Schema allows. Its free texts
// begin with [Mark].
func Instance(schema any) ([]byte, error) { return json.Marshal(instance(schema)) }
