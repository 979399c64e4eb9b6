package record

import (
	"context"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/promptview"
)

// A Prompt is recorded before a prompt is sent: every decision of the gate about it, and
// the prompt as the caller may see it. Prompt is nil if required context was withheld, so
// that no prompt is sent.
type Prompt struct {
	Handoffs []event.Handoff
	Prompt   *promptview.Shown
}

// A Recorder stores what the gate decided about a prompt, before the prompt is sent. An
// error keeps the prompt from being sent, and fails its task. A Recorder may be called by
// several goroutines at once.
type Recorder func(ctx context.Context, p Prompt) error
