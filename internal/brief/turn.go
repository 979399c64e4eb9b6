package brief

import (
	"encoding/json"

	"github.com/runteam/runteam/internal/gate"
)

// A Turn is what a later model call of a task adds to its conversation: what the agent
// said, and then either the results of the calls that it asked for or what is wrong with
// its answer.
type Turn struct {
	Contract gate.Contract // everything sealed must belong to it
	Number   int           // of the turn, from 2
	Title    string        // of the task
	MaxBytes int           // of all messages; zero means [DefaultBytes]

	Said    gate.Sealed   // a [handoff.Draft]: a text, and a structured value of the form [Said] if the agent called tools
	Results []gate.Sealed // one [handoff.ToolResult] for each call, in their order
	Problem *gate.Sealed  // a [handoff.Fault], in place of results
}

// Said is the structured part of what an agent said when it called tools.
type Said struct {
	Calls []Call `json:"calls"`
}

// A Call is one call of a tool.
type Call struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// A Tool is the definition of a tool that the agent may call.
type Tool struct {
	Name        string
	Description string
	Parameters  string // JSON Schema
}
