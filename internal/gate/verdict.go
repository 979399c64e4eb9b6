package gate

import (
	"fmt"
	"slices"
)

// A Verdict is the outcome of a decision. The zero value is [Withheld].
type Verdict uint8

// The verdicts.
const (
	Withheld         Verdict = iota // withheld
	NeedsTranslation                // to be translated by a model before it can pass
	Passed                          // delivered, in the form that the rules allow
	Minimized                       // delivered by heading and status only
)

var verdictNames = [...]string{"held", "needs translation", "passed", "minimized"}

// String returns the name of the verdict, or "held" for an undefined one.
func (v Verdict) String() string {
	if int(v) < len(verdictNames) {
		return verdictNames[v]
	}
	return verdictNames[Withheld]
}

// MarshalText returns the name of the verdict.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// UnmarshalText reads the name of a verdict. Any other text is an error, and v is [Withheld].
func (v *Verdict) UnmarshalText(text []byte) error {
	at := slices.Index(verdictNames[:], string(text))
	*v = Verdict(max(at, 0))
	if at < 0 {
		return fmt.Errorf("unknown verdict %q", text)
	}
	return nil
}
