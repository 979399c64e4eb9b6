package progress

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/llm"
)

// table is progress as rows: one for each task, in the order of the spec, and one for each step of
// the coordinator, when it began; below them a line of counts. The screen draws it.
type table struct {
	start time.Time

	mu      sync.Mutex // guards what follows
	rows    []row
	byKey   map[string]int
	tally   counts
	ended   int // rows
	usage   llm.Usage
	rounded bool      // whether the tokens of any row are
	limited time.Time // until when an endpoint accepts no call
	titles  int       // width of the widest title
	agents  int       // width of the widest name of an agent
}

// row is one task, or one step of the coordinator.
type row struct {
	title, agent string
	state        state
	since        time.Time     // running: when it began; waiting for a retry: when that begins
	took         time.Duration // of a task that ended
	attempt      int
	messages     int // delivered with this attempt
	reason       string
	note         string // about a model call that is repeated
	cached       string // where a cached answer is from; empty without one
	ended        int    // its position among the ended rows, from 1; 0 if it has not ended
}

// The widest columns, in cells.
const (
	maxTitle = 40
	maxAgent = 16
)

// state is the state of a row.
type state uint8

const (
	waiting state = iota
	running
	retrying
	done
	failed
	skipped
	cancelled
)

var states = [...]struct{ word, color string }{
	waiting:   {"waiting", "2"},
	running:   {"running", "36"},
	retrying:  {"retry", "33"},
	done:      {format.Completed, "32"},
	failed:    {format.Failed, "31"},
	skipped:   {format.Skipped, "31"},
	cancelled: {format.Cancelled, "2"},
}

// newTable returns the table of a plan. The rows of a goal are added when its tasks are planned.
func newTable(plan *engine.Plan, start time.Time) *table {
	t := &table{start: start, byKey: make(map[string]int), tally: newCounts(plan)}
	if plan != nil {
		for _, p := range plan.Tasks {
			t.add(string(p.ID), p.Title, p.Assignee)
		}
	}
	return t
}

// add adds a row below the others.
func (t *table) add(key, title, agent string) *row {
	r := row{title: terminal.CleanLine(title), agent: terminal.CleanLine(agent)}
	t.byKey[key] = len(t.rows)
	t.rows = append(t.rows, r)
	t.titles = max(t.titles, terminal.Width(r.title))
	t.agents = max(t.agents, terminal.Width(r.agent))
	return &t.rows[len(t.rows)-1]
}

// take updates the table for an event.
func (t *table) take(e event.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tally.take(e)
	if until := e.Time.Add(e.Wait); e.Type == event.Limited && until.After(t.limited) {
		t.limited = until
	}
	if e.Type == event.PlanReady {
		for _, p := range e.Plan {
			t.add(string(p.Task), p.Title, p.Agent)
		}
	}
	if r := t.row(e); r != nil {
		t.note(r, e)
	}
}

// row returns the row that an event is about. A step of the coordinator gets a row when it begins.
func (t *table) row(e event.Event) *row {
	key := string(e.Task)
	if ofCoordinator(e) {
		key = stepName(e)
	}
	if i, ok := t.byKey[key]; ok {
		return &t.rows[i]
	}
	if ofCoordinator(e) && e.Type == event.AgentStart {
		return t.add(key, key, e.Agent)
	}
	return nil
}

// note updates a row for an event.
func (t *table) note(r *row, e event.Event) {
	switch e.Type {
	case event.TaskStart, event.AgentStart:
		if r.state != running {
			r.state, r.since = running, e.Time
		}
		r.note = ""
		if !ofCoordinator(e) { // whose number tells steps apart
			r.attempt = e.Attempt
		}
	case event.Message:
		r.messages++
	case event.Warning:
		r.note = fmt.Sprintf("retry in %s: %s", format.Elapsed(e.Wait), terminal.CleanLine(e.Message))
	case event.TaskRetry:
		r.state, r.since, r.reason = retrying, e.Time.Add(e.Wait), terminal.CleanLine(e.Message)
		r.messages = 0 // the next attempt gets them again
	case event.TaskComplete, event.TaskSkipped, event.Error:
		t.end(r, e)
	case event.AgentComplete:
		if ofCoordinator(e) {
			t.end(r, e)
		}
	}
}

func (t *table) end(r *row, e event.Event) {
	t.ended++
	t.usage, t.rounded = t.usage.Add(e.Usage()), t.rounded || e.Rounded
	r.ended, r.took, r.reason = t.ended, e.Duration, ""
	r.state = map[string]state{format.Failed: failed, format.Skipped: skipped, format.Cancelled: cancelled, format.Completed: done}[t.tally.outcome(e)]
	if r.state == done {
		r.cached = cached(e)
	} else {
		r.reason = reason(e)
	}
}

// cached says where a cached answer is from; it is empty for any other.
func cached(e event.Event) string {
	if e.Reused == "" {
		return ""
	}
	return "cached" + reusedFrom(e)
}

// reusedFrom names the other run that a cached answer is from; it is empty if
// the answer is from this run, which was resumed.
func reusedFrom(e event.Event) string {
	if e.Reused == e.Run {
		return ""
	}
	return ", reused from " + journals.ShortRun(e.Reused)
}

// lines renders the table for the size of a terminal. With height 0 it shows every row.
func (t *table) lines(width, height int, now time.Time, color bool) []terminal.Line {
	t.mu.Lock()
	defer t.mu.Unlock()
	shown, hidden := t.window(height)
	lines := make([]terminal.Line, 0, len(shown)+1)
	for _, i := range shown {
		lines = append(lines, t.line(&t.rows[i], width-1, now, color))
	}
	text := t.tally.String() + ", " + format.Seconds(now.Sub(t.start))
	if left := t.limited.Sub(now); left > 0 {
		text += ", rate limited for " + format.Seconds(left)
	}
	if hidden > 0 {
		text += fmt.Sprintf(", %s not shown", format.Plural(hidden, "row"))
	}
	return append(lines, terminal.Line{Text: terminal.Clip(text+format.Tokens(t.usage, ", "+format.ApproximationMark(t.rounded)), width-1)})
}

// line renders a row of this width in cells.
func (t *table) line(r *row, width int, now time.Time, color bool) terminal.Line {
	state := states[r.state]
	head := terminal.Pad(state.word, 9)
	tail := r.detail(now)
	room := width - terminal.Width(head) - 1
	agents := min(t.agents, maxAgent)
	titles := room - agents - 2 - 2 - 12 // the room that the agent and a short detail leave
	text := head + " "
	if titles < min(t.titles, 16) { // too narrow for columns: the title and what fits
		text += terminal.Clip(r.title, room)
		if left := width - terminal.Width(text) - 2; left >= 6 && tail != "" {
			text += "  " + terminal.Clip(tail, left)
		}
	} else {
		titles = min(titles, t.titles, maxTitle)
		text += terminal.Pad(terminal.Clip(r.title, titles), titles) + "  " + terminal.Pad(terminal.Clip(r.agent, agents), agents)
		text += "  " + terminal.Clip(tail, width-terminal.Width(text)-2)
	}
	l := terminal.Line{Text: terminal.Clip(strings.TrimRight(text, " "), width)}
	if color {
		l.Color, l.Colored = state.color, min(len(state.word), len(l.Text))
	}
	return l
}

// detail returns the last column of a row.
func (r *row) detail(now time.Time) string {
	switch r.state {
	case running:
		text := format.Seconds(now.Sub(r.since))
		if r.attempt > 1 {
			text += fmt.Sprintf("  attempt %d", r.attempt)
		}
		if r.note != "" {
			text += "  " + r.note
		}
		return text + r.read()
	case retrying:
		return "in " + format.Seconds(r.since.Sub(now)) + ": " + r.reason
	case done:
		if r.cached != "" {
			return r.cached
		}
		return format.Elapsed(r.took) + r.read()
	}
	return r.reason
}

// read returns how many messages were delivered to a task.
func (r *row) read() string {
	if r.messages == 0 {
		return ""
	}
	return "  " + format.Plural(r.messages, "message")
}

// window chooses the rows that fit: running ones, then failed, lately ended and waiting ones. One
// line is left for the counts and one for the cursor.
func (t *table) window(height int) (shown []int, hidden int) {
	n := len(t.rows)
	room := n
	if height > 0 {
		room = min(n, max(0, height-2))
	}
	keep := make([]bool, n)
	take := func(want func(*row) bool) {
		for i := range t.rows {
			if room > 0 && !keep[i] && want(&t.rows[i]) {
				keep[i] = true
				room--
			}
		}
	}
	if room < n {
		take(func(r *row) bool { return r.state == running || r.state == retrying })
		take(func(r *row) bool { return r.state == failed || r.state == skipped })
		take(func(r *row) bool { return r.ended > t.ended-max(1, room/2) })
	}
	take(func(r *row) bool { return r.state == waiting })
	take(func(*row) bool { return true })
	for i, k := range keep {
		if k {
			shown = append(shown, i)
		}
	}
	return shown, n - len(shown)
}
