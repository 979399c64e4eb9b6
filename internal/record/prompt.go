package record

import (
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/promptview"
)

// A Prompt is what is kept of one prompt before it is sent: every decision of
// the gate about it, and the prompt as the caller may see it. What was decided
// for a prompt that is never sent, since something was held, has no Prompt.
type Prompt struct {
	Handoffs []event.Handoff
	Prompt   *promptview.Shown
}
