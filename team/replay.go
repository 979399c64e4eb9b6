package team

import "github.com/runteam/runteam/event"

// A Replay repeats a run from what its journal has.
type Replay struct {
	Past *event.History // of the run

	// Ask has agents asked where the run has no answer to the very same prompt.
	// Otherwise nobody is, and what has no answer fails with [CodeReplay].
	Ask bool

	// Without are tasks, by title, key or id, and WithoutInputs inputs, that are
	// left out, as if no task had named them.
	Without       []string
	WithoutInputs []string
}
