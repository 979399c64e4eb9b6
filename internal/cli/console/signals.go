package console

import (
	"context"
	"errors"

	"github.com/runteam/runteam/internal/cli/exit"
)

// Report prints what ended the command, where the output expects it, and
// returns the exit status. A nil error is success.
func (c *Console) Report(err error) int {
	if err == nil {
		return exit.StatusOK
	}
	if status, ok := errors.AsType[exit.Status](err); ok {
		return int(status)
	}
	k := exit.KindOf(err)
	problems := exit.Problems(err)
	if !c.Settings.JSON() || c.PrintJSON(exit.NewDocument(k, err, problems)) != nil {
		c.PrintError(err, problems)
	}
	if f, ok := errors.AsType[*exit.Error](err); ok && f.Status != 0 {
		return f.Status
	}
	return k.Status()
}

// Interruptible returns a context that the first signal ends. The second one
// ends the process at once. The stop function waits for the goroutine that listens.
func (c *Console) Interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for first := true; ; first = false {
			select {
			case got := <-c.Signals:
				cause := &exit.Interrupted{Signal: got}
				if !first {
					c.Screen.Finish()
					c.Exit(cause.Status())
				}
				cancel(cause)
			case <-quit:
				return
			}
		}
	}()
	return ctx, func() {
		close(quit)
		<-done
		cancel(nil)
	}
}
