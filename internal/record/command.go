package record

import (
	"time"

	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A Command is what somebody asked of the run while it worked, and got. A text that it sends is
// in a SentMessage that follows.
type Command struct {
	Kind   steer.Kind `json:"kind"`
	Task   task.ID    `json:"task,omitempty"`
	Title  string     `json:"title,omitempty"` // of the task
	Agent  string     `json:"agent,omitempty"`
	By     string     `json:"by"`
	Reason string     `json:"reason,omitempty"`
	Time   time.Time  `json:"time"`
	Taken  time.Time  `json:"taken,omitzero"`   // when the run took it, if another process sent it; see Effective
	Policy *Policy    `json:"policy,omitempty"` // the new one

	EventReason string `json:"eventReason,omitempty"` // Reason as events have it, without personal data; empty if there is no difference

	// Number is that of the LeftCommand; zero if this process sent it. With the entry, it waits
	// no more.
	Number int64 `json:"-"`
}

// Effective returns when the command took effect. Its sender may have waited for the process to begin.
func (c *Command) Effective() time.Time {
	if c.Taken.IsZero() {
		return c.Time
	}
	return c.Taken
}

// A LeftCommand is a command that another process left for the one that works on the run.
type LeftCommand struct {
	steer.Command
	Time    time.Time
	Number  int64
	Missing string // why the command has no effect, such as that it cannot be read; empty if it may have one
}
