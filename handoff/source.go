package handoff

import (
	"fmt"
	"slices"
)

// A Source names where a piece of context comes from.
type Source struct {
	Kind SourceKind `json:"kind"`
	Name string     `json:"name"` // the task's id, the input's name
}

// SourceKind tells the carriers of context apart.
type SourceKind uint8

// The carriers. The zero value is none of them and is never granted.
const (
	_          SourceKind = iota
	Dependency            // the result of a task
	Input                 // a named input of the caller
	Memory                // an entry of shared memory
	Message               // a message of a team member
	Goal                  // what the caller wants of the team
	Roster                // who is on the team, and what each can do
	Plan                  // a text of the coordinator: the description of a planned task, or a draft of a plan
	Fault                 // an error text, or a list of what is wrong
	Digest                // the coordinator's digest of a part of the results
	Draft                 // an answer of the reader itself, which it is to correct
	Reasoning             // what a model wrote before its answer; the caller is its only reader
)

var kindNames = [...]string{"unknown", "dependency", "input", "memory", "message", "goal", "roster", "plan", "fault", "digest", "draft", "reasoning"}

// String returns the carrier's name.
func (k SourceKind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return kindNames[0]
}

// MarshalText writes the carrier's name.
func (k SourceKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a carrier's name, strictly. After an error k is the zero
// value, which is never granted.
func (k *SourceKind) UnmarshalText(text []byte) error {
	at := slices.Index(kindNames[:], string(text))
	*k = SourceKind(max(at, 0))
	if at < 0 {
		return fmt.Errorf("unknown carrier %q", text)
	}
	return nil
}
