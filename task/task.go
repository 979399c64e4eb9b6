// Package task decides what a task is and what a graph of tasks allows.
//
// A caller writes [Spec] values that name each other by title. [Resolve]
// checks all of them at once and gives every task its stable [ID]. Everything here
// only computes: times come in as arguments, and the same input gives the same
// output.
package task

import (
	"time"
)

// An ID names a task. [NewID] derives it from the title, so it is the same in
// every run; the run has an ID of its own.
type ID string

// A Path names parts of a structured value: a pointer as RFC 6901 writes it, in
// extended: "*" is any one element or member, "/**" at the end includes everything below,
// and a block may be a bare name, which matches at any depth. Whole, the empty path, is the
// value itself.
type Path string

// Whole is the path of a value as a whole.
const Whole Path = ""

// A Task is a [Spec] that was checked, with its identity and its state. Defaults are
// filled in, the title is trimmed, and references are IDs: DependsOn names tasks by
// ID, with the parts of each result in Need, and NeedToKnow is nil.
type Task struct {
	ID ID
	Spec
	Status    Status
	CreatedAt time.Time
	UpdatedAt time.Time
}

// A Use grants a named input to a task.
type Use struct {
	Name   string
	Need   []Path            // parts of the input that are granted; nil means the whole, and an empty list nothing
	Reveal map[string][]Path // personal kinds, such as iban, that are not redacted at these paths; see package redact
}

// Status is the state of a task. The empty string is not a status.
type Status string

// The statuses. Completed, Failed and Skipped are terminal.
const (
	Pending    Status = "pending"     // may run
	Blocked    Status = "blocked"     // waits for its dependencies
	InProgress Status = "in_progress" // runs
	Completed  Status = "completed"
	Failed     Status = "failed"
	Skipped    Status = "skipped"
)

// Payload says in which form a dependency is delivered. The zero value means Output.
type Payload string

// The forms of a dependency.
const (
	Output     Payload = "output"     // the result's text
	Structured Payload = "structured" // its validated JSON
	Both       Payload = "both"
)

// MemoryScope says what of the team's shared memory a task sees. The zero value means Dependencies.
type MemoryScope string

// The scopes.
const (
	ScopeDependencies MemoryScope = "dependencies" // nothing but the results of its dependencies
	ScopeAll          MemoryScope = "all"          // a digest of everything that had completed
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
