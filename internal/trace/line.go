package trace

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/prompt"
)

// maxPart is how much of a result stands in one line, in bytes: it fits
// [record.MaxLine] however it is escaped.
const maxPart = 2 << 20

// null is the result of which the parts stand before it.
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

// A session's id has the run, the task and the attempt, each behind a slash, and
// of a retelling more behind them.

// runIn returns the run in the id of a session.
func runIn(session string) string {
	run, _, _ := strings.Cut(session, "/")
	return run
}

// attempt returns which attempt a prompt is of, from 1; zero if its session does not say.
func attempt(r *prompt.Receipt) int {
	rest, _ := strings.CutPrefix(r.Session, r.Run+"/"+string(r.Task)+"/")
	number, _, _ := strings.Cut(rest, "/")
	n, _ := strconv.Atoi(number)
	return n
}
