package handoff

import (
	"errors"
	"strconv"
)

// ErrPolicy reports a policy that cannot be enforced. Problems of a policy wrap it.
var ErrPolicy = errors.New("invalid policy")

// A WithheldError reports that the gate withheld a piece of context that its reader
// needs, or that it refused a message or a reply. It contains no part of a value.
type WithheldError struct {
	Kind   SourceKind // of the context
	From   string     // its producer
	Rule   Rule       // the rule that decided
	Reason string     // one word, such as "clearance" or "expired"
	Detail string     // an explanation
	Line   string     // the line of the spec with the grant or the rule
}

// Error names the source, the rule and the line.
func (e *WithheldError) Error() string {
	text := string(e.Kind) + " from " + strconv.Quote(e.From) + " is withheld by " + string(e.Rule)
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	if e.Line != "" {
		text += " (" + e.Line + ")"
	}
	return text
}
