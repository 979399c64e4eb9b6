package engine

import (
	"github.com/runteam/runteam/prompt"
)

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
