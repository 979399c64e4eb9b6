// Package task defines tasks and checks task graphs.
//
// A caller writes [Spec] values that name each other by title. [Resolve]
// checks all of them at once and gives every task its stable [ID]. The functions read no
// clock, so the same arguments give the same result.
package task

import (
	"time"
)

// An ID names a task. [NewID] derives it from the title, so it is the same in
// every run; the run has an ID of its own.
type ID string

// A Path names parts of a structured value. It is an RFC 6901 pointer with two extensions:
// "*" matches any one element or member, and a final "/**" includes everything below. In
// the Block of a policy rule, a bare name matches at any depth. [Whole], the empty path, is
// the value itself.
type Path string

// Whole is the path of a value as a whole.
const Whole Path = ""

// A Task is a [Spec] that was checked, with its identity and its state. Defaults are
// filled in, the title is trimmed, and references are IDs: DependsOn names tasks by
// ID, with the parts of each result in Need, and NeedToKnow is nil.
type Task struct {
	ID ID
	Spec
	Reads     int // how many of DependsOn, at its end, are read by When alone, and are in no prompt
	Status    Status
	CreatedAt time.Time
	UpdatedAt time.Time
}

// A Use grants a named input to a task.
type Use struct {
	Name   string
	Need   []Path            // parts of the input that are granted; nil means the whole, and an empty list nothing
	Reveal map[string][]Path // kinds of personal data, such as "iban", that are not redacted at these paths; see package redact

	// At is the folder of the workspace that gets the files of an input that is a folder;
	// "." is the workspace itself, and empty means the name of the input. Paths of Need are
	// then paths of files, such as /src/**.
	At string

	Item  Path   // of the item of the input that is granted in place of it, in a task for each item; [Unroll] sets it
	Title string // the heading of what is granted; the name of the input unless [Unroll] sets it
}

// Status is the state of a task. The empty string is not a status.
type Status string

// The statuses. Completed, Failed, Skipped and NotNeeded are terminal.
const (
	Pending    Status = "pending"     // may run
	Blocked    Status = "blocked"     // waiting for its dependencies
	InProgress Status = "in_progress" // running
	Completed  Status = "completed"
	Failed     Status = "failed"
	Skipped    Status = "skipped"
	NotNeeded  Status = "not_needed" // its condition does not hold, or that of a task before it
)

// Payload says in which form a dependency is delivered. The zero value means Output.
type Payload string

// The forms of a dependency.
const (
	Output     Payload = "output"     // the result's text
	Structured Payload = "structured" // its validated JSON
	Both       Payload = "both"
)

// MemoryScope says which part of the team's shared memory a task sees. The zero value means
// [ScopeDependencies].
type MemoryScope string

// The scopes.
const (
	ScopeDependencies MemoryScope = "dependencies" // nothing but the results of its dependencies
	ScopeAll          MemoryScope = "all"          // a digest of all results that exist when it starts
)

// Priority breaks ties among tasks that are ready at the same time. The zero value means Normal.
type Priority string

// The priorities.
const (
	Low      Priority = "low"
	Normal   Priority = "normal"
	High     Priority = "high"
	Critical Priority = "critical"
)
