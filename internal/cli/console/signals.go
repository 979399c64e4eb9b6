package console

import (
	"context"
	"errors"
	"net/url"
	"os"
	"strings"
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
	err = c.withoutPasswords(err)
	kind := exit.KindOf(err)
	if !c.Settings.JSON() || c.PrintJSON(exit.NewDocument(kind, err)) != nil {
		c.PrintError(err)
	}
	return exit.StatusOf(err, kind)
}

// withoutPasswords returns an error that quotes no address of a database among the arguments, which may have a password.
func (c *Console) withoutPasswords(err error) error {
	text := err.Error()
	for _, arg := range c.Args {
		if at := strings.Index(arg, "postgres"); at >= 0 && mayHavePassword(arg[at:]) {
			text = strings.ReplaceAll(text, arg[at:], "postgres://…")
		}
	}
	if text == err.Error() {
		return err
	}
	return maskedError{err, text}
}

// mayHavePassword reports whether a word may be an address with a password.
func mayHavePassword(word string) bool {
	u, err := url.Parse(word)
	if err != nil || strings.Contains(strings.ToLower(word), "password") {
		return strings.Contains(word, "://")
	}
	_, has := u.User.Password()
	return has
}

// A maskedError has another text.
type maskedError struct {
	error
	text string
}

func (e maskedError) Error() string { return e.text }

func (e maskedError) Unwrap() error { return e.error }

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
				if c.taker.take(cause) {
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

// taker is who takes a signal in place of the command.
type taker struct {
	mu     sync.Mutex
	cancel context.CancelCauseFunc // nil if nobody does
	all    bool                    // of the signals, else only interrupts
}

// take cancels what takes the next signal. It reports whether there was something.
func (t *taker) take(cause *exit.Interrupted) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cancel == nil || !t.all && cause.Signal != os.Interrupt {
		return false
	}
	t.cancel(cause)
	t.cancel = nil
	return true
}

// Part returns a context for a part of the command: the first interrupt cancels it and not the command.
// The next one ends the command, as does every other signal. Call stop when the part has ended.
func (c *Console) Part(parent context.Context) (ctx context.Context, stop func()) {
	return c.taking(parent, false)
}

// AfterSignal returns a context for what a command does after its first signal: the second one cancels it, and
// does not end the process at once. The third one does. Call stop when that work has ended.
func (c *Console) AfterSignal(parent context.Context) (ctx context.Context, stop func()) {
	return c.taking(parent, true)
}

// taking returns a context that the next signal, or the next interrupt, cancels in place of the command.
func (c *Console) taking(parent context.Context, all bool) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	c.taker.mu.Lock()
	c.taker.cancel, c.taker.all = cancel, all
	c.taker.mu.Unlock()
	return ctx, func() {
		c.taker.mu.Lock()
		c.taker.cancel = nil
		c.taker.mu.Unlock()
		cancel(nil)
	}
}
