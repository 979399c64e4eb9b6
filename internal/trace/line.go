package trace

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/prompt"
)

// maxPart is how many bytes of a result one line has: they fit into [record.MaxLine] however
// they are escaped.
const maxPart = 2 << 20

// null is the result in the line after its parts.
var null = json.RawMessage("null")

// header is the first line.
type header struct {
	Version int       `json:"version"`
	Run     string    `json:"run,omitempty"`
	Name    string    `json:"name,omitempty"`
	Time    time.Time `json:"time,omitzero"`
	Tasks   []Task    `json:"tasks,omitempty"`
	Inputs  []Input   `json:"inputs,omitempty"`
}

// runIn returns the run in the ID of a session. Such an ID has the run, the task and the
// attempt, separated by slashes; that of a translation has more parts.
func runIn(session string) string {
	run, _, _ := strings.Cut(session, "/")
	return run
}

// attempt returns the number of the attempt of a prompt, from 1; zero if it is unknown.
func attempt(r *prompt.Receipt) int {
	rest, _ := strings.CutPrefix(r.Session, r.Run+"/"+string(r.Task)+"/")
	number, _, _ := strings.Cut(rest, "/")
	n, _ := strconv.Atoi(number)
	return n
}
