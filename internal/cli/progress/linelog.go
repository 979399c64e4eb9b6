package progress

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/task"
)

// lineLog is progress as lines, for logs and pipes.
type lineLog struct {
	w     io.Writer
	start time.Time
	known map[string]bool // warnings that were printed before the run

	mu      sync.Mutex // guards what follows
	last    time.Time  // when a line was printed
	running []string   // titles, in the order in which they began
	tally   counts
	limited time.Time          // the time of the last line about a limited endpoint
	begun   map[task.ID]string // the lines about tasks that began, until it is known whether their answers are cached
}

func newLineLog(plan *engine.Plan, w io.Writer, start time.Time) *lineLog {
	return &lineLog{w: w, start: start, last: start, tally: newCounts(plan), known: knownWarnings(plan), begun: map[task.ID]string{}}
}

// knownWarnings returns the warnings of a plan, which were printed before the run.
func knownWarnings(plan *engine.Plan) map[string]bool {
	known := make(map[string]bool)
	if plan != nil {
		for _, warning := range plan.Warnings {
			known[warning.Error()] = true
		}
	}
	return known
}

// take prints the line of an event.
func (p *lineLog) take(e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally.take(e)
	p.count(e)
	switch {
	case e.Type == event.Warning && p.known[e.Message]:
		return
	case e.Type == event.Limited && e.Wait < heartbeat/2 && e.Time.Sub(p.limited) < heartbeat: // short waits follow each other quickly
		return
	case e.Type == event.Limited:
		p.limited = e.Time
	}
	text := sentence(e, p.tally.outcome(e))
	if e.Type == event.TaskStart {
		p.begun[e.Task] = text
		return
	}
	if start, held := p.begun[e.Task]; held && (text != "" || e.Type == event.AgentStart) {
		delete(p.begun, e.Task)
		if e.Reused == "" {
			p.print(e.Time, start)
		}
	}
	if text != "" {
		p.print(e.Time, text)
	}
	if e.Type == event.PlanReady {
		p.list(e.Plan)
	}
}

// count updates the running tasks and steps.
func (p *lineLog) count(e event.Event) {
	name := e.Title
	if ofCoordinator(e) {
		name = stepName(e)
	}
	switch {
	case begins(e):
		p.running = append(p.running, name)
	case ends(e):
		if i := slices.Index(p.running, name); i >= 0 {
			p.running = slices.Delete(p.running, i, i+1)
		}
	}
}

// maxPlanned is how many tasks of a plan are listed.
const maxPlanned = 20

// list prints the planned tasks of a goal.
func (p *lineLog) list(plan []event.Planned) {
	title := make(map[task.ID]string, len(plan))
	for _, t := range plan {
		title[t.Task] = t.Title
	}
	var b strings.Builder
	for i, t := range plan {
		if i == maxPlanned {
			fmt.Fprintf(&b, "%19s… and %d more\n", "", len(plan)-i)
			break
		}
		fmt.Fprintf(&b, "%19s%s (%s)", "", terminal.CleanLine(t.Title), terminal.CleanLine(t.Agent))
		var after []string
		for _, up := range t.DependsOn {
			after = append(after, title[up])
		}
		if len(after) > 0 {
			b.WriteString(" after " + format.List(after, 3))
		}
		b.WriteByte('\n')
	}
	_, _ = io.WriteString(p.w, b.String()) // as in print
}

// beat prints a line after a long silence.
func (p *lineLog) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.last) < heartbeat {
		return
	}
	text := p.tally.String()
	if n := len(p.running); n > 0 {
		text += "; running: " + format.List(p.running, 3)
	}
	p.print(now, "working   "+text)
}

func (p *lineLog) print(at time.Time, text string) {
	p.last = at
	_, _ = fmt.Fprintf(p.w, "%7s  %s\n", format.Elapsed(at.Sub(p.start)), text) // a failure to show progress is no error
}

// sentence describes an event in one line; it is empty for events without news. The outcome is that
// of the task or step that the event ends.
func sentence(e event.Event, outcome string) string {
	who, message := who(e), reason(e)
	switch e.Type {
	case event.PlanReady:
		return "planned   " + format.Plural(len(e.Plan), "task")
	case event.Message:
		return fmt.Sprintf("message   %s: from %s", who, terminal.CleanLine(e.From))
	case event.Budget:
		return "budget    " + who + ": " + message
	case event.TaskRetry:
		return fmt.Sprintf("retry     %s: attempt %d failed: %s; next attempt in %s", who, e.Attempt, message, format.Elapsed(e.Wait))
	case event.Reveal:
		return "reveal    " + message
	case event.Limited:
		return "limited   " + message + " for " + format.Elapsed(e.Wait)
	case event.Warning:
		if e.Title == "" {
			return "warning   " + message
		}
		return fmt.Sprintf("retry     %s: %s; retrying the call in %s", who, message, format.Elapsed(e.Wait))
	}
	switch {
	case begins(e):
		return "start     " + who
	case !ends(e):
		return ""
	case outcome != format.Completed:
		return fmt.Sprintf("%-9s %s: %s", outcome, who, message)
	case e.Reused != "":
		return "cached    " + who + reusedFrom(e)
	}
	return fmt.Sprintf("completed %s in %s%s", who, format.Elapsed(e.Duration), format.Tokens(e.Usage(), ", "+format.ApproximationMark(e.Rounded)))
}

// who returns the task or step that an event is about, and its agent.
func who(e event.Event) string {
	name := e.Title
	if ofCoordinator(e) {
		name = stepName(e)
	}
	if e.Agent != "" {
		name += " (" + e.Agent + ")"
	}
	return terminal.CleanLine(name)
}

// reason says why a task ended without a result: because of another task, or of its own error.
func reason(e event.Event) string {
	switch {
	case e.Type != event.Budget && budgetSpent(e.Code) != "": // the message repeats the budget
		return budgetSpent(e.Code)
	case e.Because == "":
		return terminal.CleanLine(e.Message)
	case e.Status == task.Skipped:
		return fmt.Sprintf("because %q did not complete", terminal.CleanLine(e.Because))
	}
	return fmt.Sprintf("because %q failed", terminal.CleanLine(e.Because))
}

// budgetName returns the name of the budget that an error code is about, or "".
func budgetName(code string) string {
	switch code {
	case codes.Budget:
		return "token budget"
	case codes.CostBudget:
		return "cost budget"
	}
	return ""
}

// budgetSpent returns a clause that says which budget is spent, or "" for other error codes.
func budgetSpent(code string) string {
	if name := budgetName(code); name != "" {
		return "the " + name + " is spent"
	}
	return ""
}
