package handoff

import (
	"errors"
	"strconv"
)

// ErrPolicy reports a policy that cannot be enforced. Problems of a policy wrap it.
var ErrPolicy = errors.New("invalid policy")

// A Refusal reports that an agent may not do a task: which rule refused, and why.
type Refusal struct {
	Rule   Rule
	Reason string
	Hint   string // what to change
}

// Error returns the reason and the hint.
func (r *Refusal) Error() string {
	if r.Hint == "" {
		return r.Reason
	}
	return r.Reason + ": " + r.Hint
}

// A HeldError reports that the gate withheld a piece of context that its reader
// needs, or that it refused a message or a reply. It contains no part of a value.
type HeldError struct {
	Kind   SourceKind // of the context
	From   string     // its producer
	Rule   Rule       // the rule that decided
	Reason Reason
	Detail string // an explanation
	Line   string // the line of the spec with the grant or the rule
}

// Error names the source, the rule and the line.
func (e *HeldError) Error() string {
	text := e.Kind.String() + " from " + strconv.Quote(e.From) + " is held by " + string(e.Rule)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Line != "" {
		text += " (" + e.Line + ")"
	}
	return text
}
