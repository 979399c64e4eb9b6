package view

import (
	"encoding/json"
	"time"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// A Command is a command to the run while it worked, in JSON.
type Command struct {
	Command steer.Kind `json:"command"`
	Task    task.ID    `json:"task,omitempty"`
	Title   string     `json:"title,omitempty"`
	Agent   string     `json:"agent,omitempty"`
	By      string     `json:"by"`
	Reason  string     `json:"reason,omitempty"`
	Time    time.Time  `json:"sentAt"`

	Digest string          `json:"digest,omitempty"` // of the policy
	Policy json.RawMessage `json:"policy,omitempty"`
}

// commandsOf returns the commands that a run has taken, the oldest first. The first one is the request that
// started the run, if that had a reason.
func commandsOf(k *journals.StoredRun) (list []Command) {
	if r := k.Request(); r != nil {
		list = append(list, Command{Command: format.Start, By: r.By, Reason: r.Reason, Time: k.Started})
	}
	for i := range k.History.Log {
		if c := k.History.Log[i].Command; c != nil {
			d := Command{Command: c.Kind, Task: c.Task, Title: c.Title, Agent: c.Agent, By: c.By, Reason: c.Reason, Time: c.Time}
			if c.Policy != nil {
				d.Digest, d.Policy = c.Policy.Digest, c.Policy.Text
			}
			list = append(list, d)
		}
	}
	return list
}
