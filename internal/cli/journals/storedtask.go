package journals

import (
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// LastPrompt is the exchange of the last attempt; nil if none ended.
func (t *StoredTask) LastPrompt() (last *record.AgentCall) {
	for _, x := range t.Exchanges {
		if x.Part == "" {
			last = x
		}
	}
	return last
}

// StepStatus returns the status of a step of the coordinator.
func (t *StoredTask) StepStatus(answer *record.AgentCall) task.Status {
	switch {
	case answer != nil:
		return task.Completed
	case t.Running > 0 || len(t.Exchanges) == 0:
		return task.InProgress
	}
	return task.Failed
}

// A StoredTask is what there is of one task, or of one step of the coordinator.
type StoredTask struct {
	ID          task.ID
	Key         string
	Title       string
	Agent       string
	Step        bool
	Status      task.Status
	Ended       record.TaskEnd      // how, if the run came to its end
	Exchanges   []*record.AgentCall // in order, those of retellings among them
	Interrupted []*record.CallStart // that a crash ended
	Running     int                 // that are under way
}

// rank puts the steps of the coordinator behind the tasks, and before those what
// is no task any more.
func (t *StoredTask) rank() int {
	switch {
	case t.Step:
		return 2
	case t.Status == Removed:
		return 1
	}
	return 0
}

// IsTask reports whether it is a task that the run has now.
func (t *StoredTask) IsTask() bool { return t.rank() == 0 }

// Accepted is the exchange whose answer is the result; nil if there is none.
func (t *StoredTask) Accepted() *record.AgentCall {
	for _, x := range slices.Backward(t.Exchanges) {
		if x.Part == "" && x.Completed() {
			return x
		}
	}
	return nil
}

// Attempts counts those that ended, in any way.
func (t *StoredTask) Attempts() int {
	n := len(t.Interrupted)
	for _, x := range t.Exchanges {
		if x.Part == "" {
			n++
		}
	}
	return n
}

// Usage sums what was paid for a task; of what was interrupted it is what the
// prompts had, a fourth of their bytes.
func (t *StoredTask) Usage() (u llm.Usage) {
	for _, x := range t.Exchanges {
		u = u.Add(x.Usage())
	}
	for _, asked := range t.Interrupted {
		u.InputTokens += EstimatedTokens(asked)
	}
	return u
}

// EstimatedTokens estimates the tokens of a prompt that no endpoint counted.
func EstimatedTokens(asked *record.CallStart) int {
	return gate.Tokens(asked.Bytes)
}

// Span returns when the work on a task began and ended.
func (t *StoredTask) Span() (start, end time.Time) {
	for _, asked := range t.Interrupted {
		if start.IsZero() || asked.Time.Before(start) {
			start = asked.Time
		}
	}
	for _, x := range t.Exchanges {
		if start.IsZero() || x.Start.Before(start) {
			start = x.Start
		}
		if x.End.After(end) {
			end = x.End
		}
	}
	return start, end
}

// A StoredResult is a result as the user of the run may read it now.
type StoredResult struct {
	Text       string
	Structured string // canonical JSON; empty without a schema
	Label      label.Classification
	Hidden     bool // the text says why there is none
}

// IsWithheld reports whether the text for a reader says that the result is
// withheld, and nothing else.
func IsWithheld(text string) bool {
	return strings.HasPrefix(text, "[withheld: ") && strings.HasSuffix(text, "]") && !strings.Contains(text, "\n")
}
