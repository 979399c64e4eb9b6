package task

import (
	"encoding/json"
	"time"

	"github.com/runteam/runteam/internal/provenance"
	"github.com/runteam/runteam/label"
)

// A Spec is a task as a caller writes it. Dependencies are given by title, key or ID. Title
// and Description are required; the zero value of every other field is a good default.
type Spec struct {
	Key         string    // optional short name, [a-z0-9-]+
	Title       string    // required; one line of at most 200 characters
	Description string    // required, unless the task has a Value or a Template
	Assignee    string    // an agent; empty means that one is chosen before anything runs
	Requires    *Requires // what its agent must have, chosen or named; nil means nothing

	// Value is the result of a task that no agent performs: a text for a JSON string, and a
	// structured result for any other value but null.
	Value json.RawMessage

	// Template makes the result of a task that no agent performs, a text. It is a template of
	// text/template with the functions of that package. It reads what the task is granted, as
	// the gate delivers it: .inputs.NAME is a text; .results has results by the key and by the
	// title of their task, a text each, or the parsed value of a dependency that is delivered
	// as Structured or Both. An optional result that is missing is an empty text, and any other
	// missing name an error. It ends with the context of its attempt, and after 30 s.
	Template string

	DependsOn []Ref // tasks whose results it is granted; it starts when all of them have ended

	// When says whether it runs; nil means that it does. A task that does not run ends as
	// [NotNeeded], and so does what depends on it, unless the dependency is optional or has
	// alternatives.
	When *Condition

	Uses []Use // named inputs that it is granted

	// Tools are names of tools of its agent: those that it may call. Nil means all of them, and
	// an empty list none.
	Tools []string

	// NeedToKnow is the default of Need for all dependencies: the parts of each result that
	// are granted. Nil means the whole results.
	NeedToKnow []Path

	MemoryScope    MemoryScope
	Classification label.Classification // of its own text; zero means internal
	RequiredTags   []string             // tags that its result must carry and its agent must declare
	OutputSchema   json.RawMessage      // JSON Schema of its result; nil means its agent's, else free text
	TTL            time.Duration        // how long its result may be read; zero means without limit

	// OutputFiles are globs, such as report.md or src/**. Files of its workspace are results too
	// if they match and the task has written, changed or removed them. Other tasks get them with
	// Files of a [Ref]. A glob without a slash matches a name in any folder.
	OutputFiles []string

	Workspace *WorkspaceLimits // of its tools; nil means the defaults

	// MaxRetries is how many attempts may follow a failed one; negative counts as zero. There
	// is no upper limit; each delay is at most 30 s.
	// Failures that would repeat are not retried: context that the gate withholds, an
	// answer that is refused, filtered or does not match its schema, a refused key, an
	// unknown model. Within an attempt, a model call is tried up to three times.
	MaxRetries   int
	RetryDelay   time.Duration // before the first retry; zero means 1 s, [NoDelay] none
	RetryBackoff float64       // factor between two delays; zero means 2
	Timeout      time.Duration // limit on one attempt; zero means none

	// OnFailure says what it means for the run that the task fails, after its retries:
	// [FailRun], the default, or [ContinueRun], with which the run can still succeed. The task is
	// failed in both cases, and so is what depends on it, unless the dependency is optional. Some
	// failures always fail the run, such as context that the gate withholds; see team.TaskError.
	// That of a loop, a list of tasks or a task with judges counts for the tasks in it that have none.
	OnFailure string

	// OnTimeout says what happens if a person does not answer within Timeout: "suspend", the
	// default, leaves the question open, and "fail" fails the task with TIMEOUT once Timeout has
	// passed since the question was first asked, also while no process worked on the run.
	OnTimeout string

	// AcceptTruncated lets the task complete with an answer that a limit on tokens
	// ended. The result is marked as truncated wherever it is delivered or shown.
	// An answer that does not match OutputSchema is never accepted.
	AcceptTruncated bool

	Reuse string // "never": its result is not taken from an earlier run; empty: it may be

	Role     string         // shown in results; decides nothing
	Priority Priority       // breaks ties among tasks that are ready at the same time
	Metadata map[string]any // shown in results; at most 16 strings, numbers, booleans and []any of at most 16 of one type

	// Repeat makes it a loop of other tasks. A loop has a title, and may have a key, When and OnFailure.
	Repeat *Repeat

	// ForEach makes it a task for each item of a list.
	ForEach *ForEach

	// Verify lets judges accept or refute the result before other tasks get it.
	Verify *Verify

	// Instance says which part of a loop or of a list it is; nil for any other. [Unroll] sets it.
	Instance *Instance

	// Source says where the task and its description come from. Plans and package spec set
	// it. The description of a planned task reaches the agent as context, through the gate.
	Source provenance.Source
}

// IsComputed reports whether the task has a value or a template in place of an agent, or counts
// judges.
func (s *Spec) IsComputed() bool { return s.Value != nil || s.Template != "" || s.CountsJudges() }

// CountsJudges reports whether the task counts the judges who accept a result; see [Verify].
func (s *Spec) CountsJudges() bool {
	return s.Instance != nil && s.Instance.Quorum > 0 && !s.Instance.Joins
}

// WorkspaceLimits bound the workspace of a task, as its tools change it. They are checked after
// each call that may change files: above a limit the agent gets an error, and the task fails
// with WORKSPACE_LIMIT if the next such call does not correct that. Zero means the default.
type WorkspaceLimits struct {
	MaxBytes       int `json:"maxBytes,omitempty"`       // of all files together; 256 MiB unless set
	MaxFiles       int `json:"maxFiles,omitempty"`       // files and folders; 20,000 unless set
	MaxOutputs     int `json:"maxOutputs,omitempty"`     // files in its folder outputs; 10 unless set
	MaxOutputBytes int `json:"maxOutputBytes,omitempty"` // of each file there; 1 MiB unless set

	MaxTotalOutputBytes int `json:"maxTotalOutputBytes,omitempty"` // of all files there together; 10 MiB unless set
}

// Values of [Spec].OnFailure.
const (
	FailRun     = "fail"
	ContinueRun = "continue"
)

// NoDelay is a [Spec].RetryDelay that means no delay.
const NoDelay time.Duration = -1

// A Ref is a dependency: it grants the result of another task.
type Ref struct {
	// Task names the other task. In a Spec it is a title (letter case and surrounding
	// spaces do not matter), a key or an ID; in a Task it is the ID.
	Task string
	As   Payload

	// OneOf names alternatives, in place of Task: the result of the first of them that completed
	// is granted. It is for tasks of which one runs, by their conditions. In a Task, there is a
	// Ref for each alternative, one after the other, and OneOf has the IDs of all.
	OneOf []string

	Each  string // in place of Task: all instances of a task with ForEach, in the order of the list
	Item  Path   // of the one item of a list that is granted, such as /searches/0, of what Need has; ForEach grants each instance its own
	Title string // the heading in prompts of what is granted; the title of the other task unless set
	Round string // [Previous] for the result of the round before, in a loop; empty for that of the same round

	Need     []Path // parts of the result that are granted; nil means the task's NeedToKnow, else the whole; an empty list nothing
	Optional bool   // the dependent runs even if the result is missing or withheld

	// Files are paths of output files of the other task that are granted, such as /src/**;
	// [Whole] means all of them. They are put into the workspace of the dependent. The folder is as the
	// other task left it: what that task was given is in it too.
	Files []Path

	// OnConflict says which version of a file the dependent gets if two tasks changed it and neither was
	// given the version of the other: "fail", the default, ends the task with FILES_CONFLICT; "both" gives it
	// both, as NAME.TASK.EXT; the title, key or ID of a task takes its version.
	OnConflict string

	// MaxContextBytes limits the size of what is delivered; zero means the limit of the
	// agent that reads it. See team.Limits.
	MaxContextBytes int
}

// Values of [Ref].OnConflict that name no task.
const (
	FailOnConflict = "fail"
	KeepBoth       = "both"
)

// MayBeMissing reports whether a task can run without this dependency: it is optional, one of
// several alternatives, or of an instance that a shorter list does not have.
func (r *Ref) MayBeMissing() bool { return r.Optional || len(r.OneOf) > 0 || r.Each != "" }

// On returns references to the named tasks, for [Spec].DependsOn.
func On(tasks ...string) []Ref {
	refs := make([]Ref, len(tasks))
	for i, name := range tasks {
		refs[i].Task = name
	}
	return refs
}
