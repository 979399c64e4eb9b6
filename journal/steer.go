package journal

import (
	"context"

	"github.com/runteam/runteam/steer"
)

// Steer sends a command to the process that works on a run, which is named by its ID or the first
// digits of it. That process looks for commands every second. Steer returns nil once the command is
// stored with the run, from when on it takes effect, and an error that wraps [steer.ErrRefused] and
// says why if the process refuses it. Commands that are sent one after another take effect in this
// order, also while the run is paused.
//
// If the process has not looked within five seconds, if it ends, or if ctx does, Steer withdraws the
// command, which has no effect then, and returns an error. No command waits until the run is resumed.
// In the rare case that the process has read the command but cannot store it, the error says that the
// command may still take effect.
//
// The error wraps [steer.ErrInvalid], [steer.ErrNotRunning] if no process works on the run,
// [ErrUnknownRun], [ErrReadOnly], or [ErrNoKey] if the text is above confidential and the journal has
// no key. Both processes need the same key for such a text.
//
// A program steers its own runs with team.Monitor, which needs no journal.
func (j *Journal) Steer(ctx context.Context, run string, c steer.Command) error {
	return j.stored.Steer(ctx, run, c)
}
