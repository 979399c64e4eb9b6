package trace

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/prompt"
)

// A line is one line of a trace, of one kind. Lines of a "part" and of the
// "result" are written member by member. The lines of the chain of decisions are package audit's.
type line struct {
	Trace  *header    `json:"trace,omitempty"`
	Event  *wireEvent `json:"event,omitempty"`
	Prompt *Prompt    `json:"prompt,omitempty"`
}

// maxPart is how much of a result stands in one line, in bytes: it fits
// [audit.MaxLine] however it is escaped.
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

// plainEvent is an event without its own way into JSON, which has none back.
type plainEvent event.Event

// wireEvent is an event as it is written.
type wireEvent struct {
	plainEvent
	WaitMs     int64 `json:"waitMs,omitempty"`
	DurationMs int64 `json:"durationMs,omitempty"`
}

func (e *wireEvent) event() event.Event {
	out := event.Event(e.plainEvent)
	out.Wait, out.Duration = time.Duration(e.WaitMs)*time.Millisecond, time.Duration(e.DurationMs)*time.Millisecond
	return out
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
