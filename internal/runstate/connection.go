package runstate

import "github.com/runteam/runteam/task"

// A Connection says whether an agent is at work on a task.
type Connection string

// The connections of tasks.
const (
	Connected    Connection = "connected"    // an agent works on it: its model is called, or its tools or children work
	Idle         Connection = "idle"         // it waits for a person, a reply or its next attempt
	Disconnected Connection = "disconnected" // it has not begun or has ended, or no process works on the run
)

// Connection returns whether an agent is at work on a task.
func (s *State) Connection(t *Task) Connection {
	switch {
	case !s.Live, s.Status(t) != task.InProgress:
		return Disconnected
	case t.waits(), len(s.Replies(t)) > 0, s.Attempts(t).Running == 0:
		return Idle
	}
	return Connected
}
