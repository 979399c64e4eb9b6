package brief

import (
	"encoding/json"
	"fmt"

	"github.com/runteam/runteam/internal/gate"
)

// A Turn is what a later model call of a task adds to its conversation: what the agent
// said, the results of the calls that it asked for, and what the runtime has to say about it.
type Turn struct {
	Contract gate.Contract // everything sealed must belong to it
	Number   int           // of the turn, from 2
	Title    string        // of the task
	MaxBytes int           // of all messages; zero means [DefaultBytes]
	HasFiles bool          // the agent can read its workspace, which has the turns so far, and the whole of each result that was cut

	Said     gate.Sealed   // a [handoff.Draft]: a text, and a structured value of the form [Said] if the agent called tools
	Results  []gate.Sealed // one [handoff.ToolResult] for each call, in their order; the reply that a call waited for is a [handoff.Message]
	Unsaved  []bool        // parallel to Results: there was no room for the whole result; nil if there was for all
	Messages []gate.Sealed // each a [handoff.Message]; those that are withheld are left out
	Problem  *gate.Sealed  // a [handoff.Fault]; without results, it says what is wrong with the answer
}

// Len returns how many messages the turn adds to the conversation.
func (t *Turn) Len() int {
	n := 1 + len(t.Results)
	for i := range t.Messages {
		if !t.Messages[i].Withheld() {
			n++
		}
	}
	if t.Problem != nil {
		n++
	}
	return n
}

// HistoryDir is the folder of a workspace with the turns so far.
const HistoryDir = "history"

// HistoryFile returns the file with what turn n added to the conversation: what the agent
// said, and the results.
func HistoryFile(n int) string { return fmt.Sprintf("%s/step_%03d.json", HistoryDir, n) }

// OutputsDir is the folder of a workspace with results that are too long for the agent.
const OutputsDir = "outputs"

// OutputFile returns the file with the whole result of a call.
func OutputFile(call string) string { return OutputsDir + "/" + call + ".txt" }

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

// CallsOf returns the calls in the structured part of what an agent said; none if it is empty.
func CallsOf(canonical string) ([]Call, error) {
	if canonical == "" {
		return nil, nil
	}
	var said Said
	err := json.Unmarshal([]byte(canonical), &said)
	return said.Calls, err
}

// A Tool is the definition of a tool that the agent may call.
type Tool struct {
	Name        string
	Description string
	Parameters  string // JSON Schema

	TextCalls bool `json:",omitempty"` // a call that is written as text may be made
}
