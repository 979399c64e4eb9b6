package console

import (
	"context"
	"errors"

	"github.com/runteam/runteam/internal/cli/exit"
)

// Report prints the error that ended the command, in the form of the output, and returns the
// exit status. A nil error is success.
func (c *Console) Report(err error) int {
	if err == nil {
		return exit.StatusOK
	}
	if status, ok := errors.AsType[exit.Status](err); ok {
		return int(status)
	}
	kind := exit.KindOf(err)
	if !c.Settings.JSON() || c.PrintJSON(exit.NewDocument(kind, err)) != nil {
		c.PrintError(err)
	}
	return exit.StatusOf(err, kind)
}

// Interruptible returns a context that the first signal cancels. A second signal ends the
// process at once. The stop function waits for the goroutine that receives signals.
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
