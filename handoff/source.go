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

// Runtime is the producer of what the runtime itself says, such as what is
// wrong with a plan. No agent may have this name.
const Runtime = "runteam"

var kindNames = [...]string{"unknown", "dependency", "input", "memory", "message", "goal", "roster", "plan", "fault", "digest", "draft", "reasoning"}

// Instructs reports whether a source tells its reader what to do, or what the
// runtime has to say, instead of what somebody came to. Such words have no
// parts: labels, ceilings and redaction count for them, modes and paths do not.
// What went wrong in the words of an agent is none of them.
func (s Source) Instructs(from string) bool {
	switch s.Kind {
	case Goal, Roster, Plan, Draft:
		return true
	case Fault:
		return from == Runtime
	}
	return false
}

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

// Rules that let a source through, by what granted it.
const (
	RuleDependsOn Rule = "dependsOn"   // a dependency
	RuleUses      Rule = "uses"        // a named input
	RuleResult    Rule = "result"      // the reader asked for the run
	RuleMemory    Rule = "memoryScope" // the task reads shared memory
	RuleMessage   Rule = "message"     // the reader was written to
	RuleGoal      Rule = "goal"        // the reader plans for the goal, or answers it
	RuleRoster    Rule = "roster"      // the reader plans for the team
	RulePlan      Rule = "plan"        // the reader does the planned task, or mends the plan
	RuleFault     Rule = "fault"       // the reader mends what is wrong, or tells what failed
	RuleDraft     Rule = "draft"       // the reader corrects its own answer
	RuleDigested  Rule = "digested"    // the reader joins digests; [RuleDigest] is the one that holds what was altered
)

var granted = [...]Rule{
	Dependency: RuleDependsOn, Input: RuleUses, Memory: RuleMemory, Message: RuleMessage,
	Goal: RuleGoal, Roster: RuleRoster, Plan: RulePlan, Fault: RuleFault, Digest: RuleDigested, Draft: RuleDraft, Reasoning: RuleResult,
}

// granting names what lets a source through. There is none but [RuleGrant]
// for a carrier that this package does not know.
func granting(s Source) Rule {
	if int(s.Kind) < len(granted) {
		return granted[s.Kind]
	}
	return RuleGrant
}
