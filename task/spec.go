package task

import (
	"encoding/json"
	"time"

	"github.com/runteam/runteam/label"
)

// A Spec is a task as a caller writes it: other tasks are named, not identified.
// The zero value of every field but Title and Description is a good default.
type Spec struct {
	Key         string // optional short name, [a-z0-9-]+
	Title       string // required; one line of at most 200 characters
	Description string // required
	Params      []Param
	Assignee    string // empty: the scheduler picks an agent before anything runs

	DependsOn []Ref
	Uses      []Use

	MemoryScope    MemoryScope
	Classification label.Classification
	RequiredTags   []string
	OutputSchema   json.RawMessage
	TTL            time.Duration

	MaxRetries   int           // negative counts as zero
	RetryDelay   time.Duration // zero means 1 s; [NoDelay] means none
	RetryBackoff float64       // zero means 2
	Timeout      time.Duration

	Role     string
	Priority Priority
	Metadata map[string]any

	Origin Position
}

// NoDelay as a RetryDelay asks for retries without a pause.
const NoDelay time.Duration = -1

// A Ref names a task that another one depends on: by title (letter case and
// surrounding blanks do not matter), by key or by id.
type Ref struct {
	Task     string
	As       Payload
	Optional bool
}

// On returns plain references to the named tasks, for a [Spec]'s DependsOn.
func On(tasks ...string) []Ref {
	refs := make([]Ref, len(tasks))
	for i, name := range tasks {
		refs[i].Task = name
	}
	return refs
}
