// Package exit defines how the command ends: its exit statuses, the errors that cause them, and
// the JSON document that reports an error.
package exit

import (
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
	StatusSIGINT   = 130
	StatusSIGTERM  = 143
	MaxProblemText = 100 // problems that are printed as text; JSON holds all
)

// Status is the exit status of a command that has printed why it ended.
type Status int

// Error returns the status as shells report it.
func (e Status) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// An Interrupted is the cause of a context that a signal ended.
type Interrupted struct{ Signal os.Signal }

// Error says how the process was ended.
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
