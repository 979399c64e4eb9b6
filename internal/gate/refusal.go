package gate

import "github.com/runteam/runteam/handoff"

// A Refusal reports that an agent may not do a task: which rule refused, and why.
type Refusal struct {
	Rule   handoff.Rule
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

// The reasons for which context is withheld, as the line in a prompt names them.
const (
	ReasonRule      = "rule"
	ReasonClearance = "clearance"
	ReasonExpired   = "expired"
	ReasonTampered  = "tampered"
	ReasonMinimal   = "minimal"
	ReasonFailed    = "failed"
	ReasonSkipped   = "skipped"
	ReasonNotNeeded = "not needed"
)

// The values of [handoff.Translation].Recast.
const (
	RecastUser   = "user"
	RecastSystem = "system"
)
