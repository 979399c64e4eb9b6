package event

import "github.com/runteam/runteam/task"

// A Delta is a piece of what a model writes for a task, while it arrives. It is no event: it has no
// number and is not stored. The public package has a type with the same fields.
type Delta struct {
	Task    task.ID
	Title   string
	Agent   string
	Attempt int
	Text    string // follows the text of the delta before
	Reset   bool   // the text begins again: what was shown of it before does not count
	Done    bool   // the text is whole, and the result of the task
}
