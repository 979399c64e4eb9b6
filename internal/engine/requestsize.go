package engine

import (
	"github.com/runteam/runteam/prompt"
)

// messageBytes returns the length of the user message of a prompt by its receipt.
func messageBytes(r *prompt.Receipt) int {
	if n := len(r.Text); n > 0 {
		return int(r.Text[n-1].End)
	}
	return 0
}

// toolBytes returns the bytes of the definitions of tools in a request.
func toolBytes(p prompt.Prompt) (n int) {
	for _, f := range p.Tools() {
		n += len(f.Name) + len(f.Description) + len(f.Parameters)
	}
	return n
}

// sentBytes returns the bytes of the request of a turn.
func (t *turn) sentBytes(messages []prompt.Message) int {
	n := len(t.prompt.System()) + toolBytes(t.prompt)
	for _, m := range messages {
		n += len(m.Text) + len(m.CallID)
		for _, c := range m.Calls {
			n += len(c.ID) + len(c.Name) + len(c.Arguments)
		}
	}
	return n
}
