package handoff

import (
	"fmt"
	"slices"
)

// A Verdict is what the gate rules. The zero value holds.
type Verdict uint8

// The verdicts.
const (
	Held             Verdict = iota // nothing crosses
	NeedsTranslation                // retell it as Decision.Translate says, and ask again
	Passed                          // the gated form may be sealed
	Minimized                       // heading and status cross, and nothing of the value
)

var verdictNames = [...]string{"held", "needs translation", "passed", "minimized"}

// String returns the verdict's name; one that does not exist reads "held".
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return verdictNames[Held]
}

// MarshalText writes the verdict's name.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads a verdict's name, strictly. After an error v is Held.
func (v *Verdict) UnmarshalText(text []byte) error {
	at := slices.Index(verdictNames[:], string(text))
	*v = Verdict(max(at, 0))
	if at < 0 {
		return fmt.Errorf("unknown verdict %q", text)
	}
	return nil
}

// A Mode says how much of a result an edge delivers.
type Mode string

// The modes. Full is what a declared dependency or input gets.
const (
	Full    Mode = "full"    // the whole of that one result
	Scoped  Mode = "scoped"  // allowed paths only
	Minimal Mode = "minimal" // heading and status
)

// A Rule is the id of the rule that decided.
type Rule string

// What a gate can hold a piece of context for, as withheld lines name it.
const (
	ReasonRule      Reason = "rule"
	ReasonClearance Reason = "clearance"
	ReasonExpired   Reason = "expired"
	ReasonTampered  Reason = "tampered"
	ReasonMinimal   Reason = "minimal"
	ReasonFailed    Reason = "failed"
	ReasonSkipped   Reason = "skipped"
)

// A Reason is the one word for why something was withheld.
type Reason string
