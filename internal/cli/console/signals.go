package console

import (
	"context"
	"errors"
	"os"
	"sync"

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
		for first := true; ; {
			select {
			case got := <-c.Signals:
				cause := &exit.Interrupted{Signal: got}
				if got == os.Interrupt && c.interrupts.take(cause) {
					continue
				}
				if !first {
					c.Screen.Finish()
					c.Exit(cause.Status())
				}
				first = false
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

// interrupts is who takes an interrupt in place of the command.
type interrupts struct {
	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil if nobody does
}

// take cancels what takes the next interrupt. It reports whether there was something.
func (i *interrupts) take(cause error) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.cancel == nil {
		return false
	}
	i.cancel(cause)
	i.cancel = nil
	return true
}

// Part returns a context for a part of the command: the first interrupt cancels it and not the command.
// The next one ends the command, as does every other signal. Call stop when the part has ended.
func (c *Console) Part(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	c.interrupts.mu.Lock()
	c.interrupts.cancel = cancel
	c.interrupts.mu.Unlock()
	return ctx, func() {
		c.interrupts.mu.Lock()
		c.interrupts.cancel = nil
		c.interrupts.mu.Unlock()
		cancel(nil)
	}
}
