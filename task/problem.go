package task

import (
	"fmt"
	"strings"
)

// A Problem is one mistake in the tasks, the configuration or the options of the caller.
//
// Pointer says where, as an RFC 6901 pointer into a spec file. If the tasks were built in
// Go, /tasks/2/dependsOn/0 means tasks[2].dependsOn[0]. Package spec turns the pointer into
// a line and a column.
type Problem struct {
	Pointer string
	Line    int    // line within a text value, from 1; zero means the value as a whole
	Subject string // what the value belongs to, such as `task "Write letter"`
	Message string // what is wrong
	Hint    string // what to write instead; may be empty
	Err     error  // the error that Problem wraps, such as [ErrUnknown]; may be nil
}

// Error reads like `task "Write letter": dependsOn[0]: no task "Scoer": did you mean "Score"?`.
func (p Problem) Error() string {
	var b strings.Builder
	if p.Subject != "" {
		fmt.Fprintf(&b, "%s: ", p.Subject)
	}
	b.WriteString(p.Message)
	if p.Line > 0 {
		fmt.Fprintf(&b, " (line %d)", p.Line)
	}
	if p.Hint != "" {
		fmt.Fprintf(&b, ": %s", p.Hint)
	}
	return b.String()
}

// Unwrap returns p.Err.
func (p Problem) Unwrap() error { return p.Err }

// Problems is an error that lists all problems that one stage of a check found, in the order
// of the text.
type Problems []Problem

// Err returns p as an error, or nil when it is empty.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// Error lists the problems, one a line.
func (p Problems) Error() string {
	lines := make([]string, len(p))
	for i, one := range p {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns the problems one by one, for errors.Is and errors.As.
func (p Problems) Unwrap() []error {
	errs := make([]error, len(p))
	for i, one := range p {
		errs[i] = one
	}
	return errs
}
