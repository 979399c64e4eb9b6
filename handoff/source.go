package handoff

import (
	"fmt"
	"slices"
)

// A Source identifies where a piece of context comes from.
type Source struct {
	Kind SourceKind `json:"kind"`
	Name string     `json:"name"` // the ID of the task or the name of the input
}

// A SourceKind is what a piece of context is.
type SourceKind uint8

// The kinds of context. The zero value is not one of them and is never delivered.
const (
	_          SourceKind = iota
	Dependency            // the result of a task
	Input                 // a named input of the caller
	Memory                // an entry of shared memory
	Message               // a message of a team member
	Goal                  // what the caller asks of the team
	Roster                // who is on the team, and what each can do
	Plan                  // a text of the coordinator: the description of a planned task, or a draft of a plan
	Fault                 // an error text, or a list of what is wrong
	Digest                // the coordinator's digest of a part of the results
	Draft                 // an answer of the reader itself, which it is to correct
	Reasoning             // what a model wrote before its answer; only the caller reads it
)

var kindNames = [...]string{"unknown", "dependency", "input", "memory", "message", "goal", "roster", "plan", "fault", "digest", "draft", "reasoning"}

// String returns the name of the kind.
func (k SourceKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[0]
}

// MarshalText returns the name of the kind.
func (k SourceKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads the name of a kind. Any other text is an error, and k is the
// zero value.
func (k *SourceKind) UnmarshalText(text []byte) error {
	at := slices.Index(kindNames[:], string(text))
	*k = SourceKind(max(at, 0))
	if at < 0 {
		return fmt.Errorf("unknown carrier %q", text)
	}
	return nil
}
