package event

import (
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// Handoff (context_handoff) is a decision of the gate about one piece of context for the
// agent of the event: the rule that decided, and what was left out. It has names, counts
// and sizes, never a value.
type Handoff struct {
	From    string             // the producer
	Kind    handoff.SourceKind // what the context is
	Source  string             // the ID of its task or the name of its input
	Verdict string             // held, passed, minimized or needs translation
	Reason  string             // why it was withheld
	Detail  string             // the reason, for people
	Mode    handoff.Mode
	Rule    handoff.Rule
	Line    string         // where the rule is written
	Entries []handoff.Rule // the declassifiers, endorsers and renewals that were used

	Label     label.Classification // of the value
	Delivered label.Classification // of what was delivered
	Bytes     int                  // of the value
	Sent      int                  // of what was delivered
	Included  []task.Path
	Excluded  []task.Path // a key that neither spec nor schema names is written *
	Redacted  redact.Counts
	Revealed  redact.Counts

	// If the context is the result of a task: how many results of From the prompt was to have, and how
	// many of them were delivered. Zero for other context, such as an input.
	Results, ResultsSent int

	Coarse     bool // the user may not see the value: there are no sizes, paths and counts
	Translated bool // a translation rewrote it
}
