// Package exit defines how the command ends: its exit statuses, the errors that cause them, and
// the JSON document that reports an error.
package exit

import (
	"errors"
	"fmt"
	"os"
	"syscall"
)

// The exit statuses.
const (
	StatusOK       = 0
	StatusFailed   = 1 // the run ended without success
	StatusUsage    = 2 // usage or a bad file; nothing was run
	StatusNoRun    = 3 // could not run: no key, no endpoint, no model
	StatusWaiting  = 4 // the run is suspended: it waits for the answers of people
	StatusSIGINT   = 130
	StatusSIGTERM  = 143
	MaxProblemText = 100 // problems that are printed as text; JSON holds all
)

// A Status is the exit status of a command that has already printed why it ended.
type Status int

// Error returns the status in words.
func (e Status) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// An Interrupted is the cause of a context that a signal canceled.
type Interrupted struct{ Signal os.Signal }

// Error names the effect of the signal.
func (e *Interrupted) Error() string {
	if e.Signal == syscall.SIGTERM {
		return "terminated"
	}
	return "interrupted"
}

// Status returns the exit status that shells expect.
func (e *Interrupted) Status() int {
	if e.Signal == syscall.SIGTERM {
		return StatusSIGTERM
	}
	return StatusSIGINT
}

// StatusOf returns the exit status for an error of a kind.
func StatusOf(err error, kind Kind) int {
	if e, ok := errors.AsType[*Error](err); ok && e.Status != 0 {
		return e.Status
	}
	if stop, ok := errors.AsType[*Interrupted](err); ok {
		return stop.Status()
	}
	if kind == KindIO && (errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)) { // as for a journal on a full disk
		return StatusNoRun
	}
	return kind.Status()
}
