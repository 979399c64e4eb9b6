package format

import (
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/steer"
)

// Start is the command of a request that started a run. No run can be sent it.
const Start steer.Kind = "start"

// Steered describes a command to a run in one line: who sent which, about which task or agent, and
// why.
func Steered(kind steer.Kind, about, by, reason string) string {
	about, by = terminal.CleanLine(about), terminal.CleanLine(by)
	text := by + " sent " + terminal.CleanLine(string(kind))
	switch {
	case kind == Start:
		text = "started by " + by
	case kind == steer.Pause:
		text = "paused by " + by
	case kind == steer.Resume:
		text = "continued by " + by
	case kind == steer.Cancel && about == "":
		text = "cancelled by " + by
	case kind == steer.Cancel:
		text = by + " cancelled " + about
	case kind == steer.Interrupt:
		text = by + " interrupted " + about
	case kind == steer.Message:
		text = by + " sent a message to " + about
	case kind == steer.Rerun:
		text = by + " had " + about + " run again"
	case kind == steer.ReplacePolicy:
		text = by + " replaced the policy"
	}
	if reason != "" {
		text += ": " + terminal.CleanLine(reason)
	}
	return text
}
