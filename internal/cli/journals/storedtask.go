package journals

import (
	"strings"
	"time"

	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A StoredTask is what the journal has about one task, or about one step of the coordinator.
type StoredTask struct {
	ID          task.ID
	Key         string
	Title       string
	Name        string // of an instance, by the keys of its items
	Agent       string
	Step        bool
	Status      task.Status
	Ended       record.TaskEnd       // how it ended, unless it completed
	Calls       []*record.AgentCall  // in order, including translations
	Interrupted []*record.CallStart  // calls that a crash ended
	Running     int                  // calls in progress
	Questions   []*runstate.Question // to people, the last one; several if they are about the calls of one turn
	attempts    runstate.Attempts
	of          *runstate.Task
}

// transfers returns the calls that transferred the conversation of the last attempt at which any did.
func (t *StoredTask) transfers() (list []*record.AgentCall) {
	for _, x := range t.of.Results {
		if x.TransferredTo == "" {
			continue
		}
		if len(list) > 0 && list[0].Attempt != x.Attempt {
			list = nil
		}
		list = append(list, x)
	}
	return list
}

// TransferredTo returns the agents to which the conversation of the last attempt was transferred, in their order.
func (t *StoredTask) TransferredTo() (names []string) {
	for _, x := range t.transfers() {
		names = append(names, x.TransferredTo)
	}
	return names
}

// Files returns the output files that belong to the result; nil if there are none.
func (t *StoredTask) Files() *record.AgentCall {
	x := t.Accepted()
	if x == nil {
		return nil
	}
	for _, f := range t.of.Files {
		if f.Session == x.Session {
			return f
		}
	}
	return nil
}

// rank sorts tasks first, then removed tasks, then the steps of the coordinator.
func (t *StoredTask) rank() int {
	switch {
	case t.Step:
		return 2
	case t.Status == Removed:
		return 1
	}
	return 0
}

// IsTask reports whether the run still has the task.
func (t *StoredTask) IsTask() bool { return t.rank() == 0 }

// Accepted returns the call whose answer is the result; nil if there is none.
func (t *StoredTask) Accepted() *record.AgentCall { return t.of.Accepted() }

// LastAttempt returns the call of the last attempt; nil if none ended.
func (t *StoredTask) LastAttempt() *record.AgentCall { return t.of.LastAttempt() }

// Attempts counts the attempts that ended or were interrupted.
func (t *StoredTask) Attempts() int { return t.attempts.Begun() }

// IsPartial reports whether the caller may not see all of a call for the task.
func (t *StoredTask) IsPartial() bool { return t.of.IsPartial() }

// Usage sums the tokens of a task. For interrupted calls it estimates those of the prompts.
func (t *StoredTask) Usage() llm.Usage {
	u := t.of.Usage()
	for _, call := range t.Interrupted {
		u.InputTokens += EstimatedTokens(call)
	}
	return u
}

// EstimatedTokens estimates the tokens of a prompt that no endpoint counted: zero if the
// caller may not see all of it.
func EstimatedTokens(call *record.CallStart) int {
	if call.Partial {
		return 0
	}
	return gate.Tokens(call.Bytes)
}

// Span returns when the first attempt of a task began and the last one ended.
func (t *StoredTask) Span() (start, end time.Time) { return t.of.Span() }

// Worked returns for how long processes worked on a task.
func (k *StoredRun) Worked(t *StoredTask) time.Duration { return k.state.Worked(t.of) }

// A StoredResult is a result as the user of the run may read it now.
type StoredResult struct {
	Text       string
	Structured string // canonical JSON; empty without a schema
	Label      label.Classification
	Hidden     bool // the text says why there is none
}

// IsWithheld reports whether a text only says that a result is withheld.
func IsWithheld(text string) bool {
	return strings.HasPrefix(text, "[withheld: ") && strings.HasSuffix(text, "]") && !strings.Contains(text, "\n")
}
