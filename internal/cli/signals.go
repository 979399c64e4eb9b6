package cli

import (
	"context"
	"os"
	"syscall"
)

// An interrupted is the cause of a context that a signal ended.
type interrupted struct{ signal os.Signal }

func (e *interrupted) Error() string {
	if e.signal == syscall.SIGTERM {
		return "terminated"
	}
	return "interrupted"
}

// status returns the exit status that shells expect.
func (e *interrupted) status() int {
	if e.signal == syscall.SIGTERM {
		return statusSIGTERM
	}
	return statusSIGINT
}

// interruptible returns a context that the first signal ends. The second one
// ends the process at once. The stop function waits for the goroutine that listens.
func (a *app) interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for first := true; ; first = false {
			select {
			case got := <-a.signals:
				cause := &interrupted{signal: got}
				if !first {
					a.screen.leave()
					a.exit(cause.status())
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
