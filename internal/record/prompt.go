package record

import (
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/promptview"
)

// A Prompt is recorded for one prompt before it is sent: every decision of the gate
// about it, and the prompt as the caller may see it. If required context is
// withheld, the prompt is never sent, and its decisions are recorded without a
// Prompt.
type Prompt struct {
	Handoffs []event.Handoff
	Prompt   *promptview.Shown
}
