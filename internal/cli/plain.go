package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// plain is progress as lines, for logs and pipes.
type plain struct {
	w     io.Writer
	start time.Time
	known map[string]bool // warnings that were printed before the run, with their places

	mu      sync.Mutex // guards what follows
	last    time.Time  // when a line was printed
	running []string   // titles, in the order in which they began
	tally   tally
	limited time.Time // the time of the last line about a limited endpoint
}

// doneOf is "3 of 7 tasks done, 1 failed, 1 cancelled, 2 not run".
func doneOf(o event.Outcomes, of string) string {
	var text strings.Builder
	text.WriteString(fmt.Sprintf("%s of %s done", number(o.Completed), of))
	for _, part := range []struct {
		n    int
		word string
	}{{o.Failed, outcomeFailed}, {o.Cancelled, outcomeCancelled}, {o.NotRun, outcomeNotRun}} {
		if part.n > 0 {
			text.WriteString(fmt.Sprintf(", %s %s", number(part.n), part.word))
		}
	}
	return text.String()
}

func newPlain(plan *team.Plan, w io.Writer, start time.Time) *plain {
	return &plain{w: w, start: start, last: start, tally: newTally(plan), known: knownWarnings(plan)}
}

// knownWarnings are those of a plan, which were printed before the run.
func knownWarnings(plan *team.Plan) map[string]bool {
	known := make(map[string]bool)
	if plan != nil {
		for _, warning := range plan.Warnings {
			known[warning.Error()] = true
		}
	}
	return known
}

// take prints the line of an event.
func (p *plain) take(e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.tally.take(e)
	p.count(e)
	switch {
	case e.Type == event.Warning && p.known[e.Message]:
		return
	case e.Type == event.Limited && e.Wait < heartbeat/2 && e.Time.Sub(p.limited) < heartbeat: // short waits come in quick succession
		return
	case e.Type == event.Limited:
		p.limited = e.Time
	}
	if text := sentence(e, p.tally.outcome(e)); text != "" {
		p.print(e.Time, text)
	}
	if e.Type == event.PlanReady {
		p.list(e.Plan)
	}
}

// count keeps what runs.
func (p *plain) count(e event.Event) {
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

// list prints the tasks of a goal, when they are planned.
func (p *plain) list(plan []event.Planned) {
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
		fmt.Fprintf(&b, "%19s%s (%s)", "", cleanLine(t.Title), cleanLine(t.Agent))
		var after []string
		for _, up := range t.DependsOn {
			after = append(after, title[up])
		}
		if len(after) > 0 {
			b.WriteString(" after " + listed(after, 3))
		}
		b.WriteByte('\n')
	}
	_, _ = io.WriteString(p.w, b.String()) // as print
}

// beat prints a line if none was for a while.
func (p *plain) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.last) < heartbeat {
		return
	}
	text := p.tally.String()
	if n := len(p.running); n > 0 {
		text += "; running: " + listed(p.running, 3)
	}
	p.print(now, "working   "+text)
}

func (p *plain) print(at time.Time, text string) {
	p.last = at
	_, _ = fmt.Fprintf(p.w, "%7s  %s\n", elapsed(at.Sub(p.start)), text) // progress that nobody can see is not worth an error
}

// sentence says an event in one line. Events that add nothing to others have none.
// The outcome is that of a task or step which the event ends.
func sentence(e event.Event, outcome string) string {
	who, message := who(e), reason(e)
	switch e.Type {
	case event.PlanReady:
		return "planned   " + plural(len(e.Plan), "task")
	case event.Message:
		return fmt.Sprintf("message   %s: from %s", who, cleanLine(e.From))
	case event.Budget:
		return "budget    " + who + ": " + message
	case event.TaskRetry:
		return fmt.Sprintf("retry     %s: attempt %d: %s; again in %s", who, e.Attempt, message, elapsed(e.Wait))
	case event.Reveal:
		return "reveal    " + message
	case event.Limited:
		return "limited   " + message + " for " + elapsed(e.Wait)
	case event.Warning:
		if e.Title == "" {
			return "warning   " + message
		}
		return fmt.Sprintf("again     %s: %s; again in %s", who, message, elapsed(e.Wait))
	}
	switch {
	case begins(e):
		return "start     " + who
	case !ends(e):
		return ""
	case outcome != outcomeDone:
		return fmt.Sprintf("%-9s %s: %s", outcome, who, message)
	case e.Reused != "":
		return "done      " + who + ", " + reusedFrom(e)
	}
	return fmt.Sprintf("done      %s in %s%s", who, elapsed(e.Duration), tokens(e.Usage(), ", "+mark(e.Rounded)))
}

// who names what an event is about, and who works on it.
func who(e event.Event) string {
	name := e.Title
	if ofCoordinator(e) {
		name = stepName(e)
	}
	if e.Agent != "" {
		name += " (" + e.Agent + ")"
	}
	return cleanLine(name)
}

// reason says why a task ended without a result: because of another task, by
// its title, or what went wrong with it.
func reason(e event.Event) string {
	switch {
	case e.Type != event.Budget && budgetSpent(e.Code) != "": // whose words were all about the budget
		return budgetSpent(e.Code)
	case e.Because == "":
		return cleanLine(e.Message)
	case e.Status == task.Skipped:
		return fmt.Sprintf("because %q did not complete", cleanLine(e.Because))
	}
	return fmt.Sprintf("because %q failed", cleanLine(e.Because))
}

// budgetName returns the name of the budget that an error code is about, or "".
func budgetName(code string) string {
	switch code {
	case team.CodeBudget:
		return "token budget"
	case team.CodeCostBudget:
		return "cost budget"
	}
	return ""
}

// budgetSpent returns a clause that says which budget is spent, by the code of an error, or
// "" for any other code.
func budgetSpent(code string) string {
	if name := budgetName(code); name != "" {
		return "the " + name + " is spent"
	}
	return ""
}

// listed names the first few of a list.
func listed(names []string, most int) string { return listedOf(names, most, len(names)) }

// listedOf joins at most so many names, the first of a total, and says how many more there are.
func listedOf(names []string, most, total int) string {
	more := ""
	if n := total - most; n > 0 {
		names, more = names[:most], fmt.Sprintf(" and %d more", n)
	}
	clean := make([]string, len(names))
	for i, n := range names {
		clean[i] = cleanLine(n)
	}
	return strings.Join(clean, ", ") + more
}

// tokens says what was spent, after a separator; nothing if it was not counted.
func tokens(u llm.Usage, before string) string {
	if u.InputTokens+u.OutputTokens == 0 {
		return ""
	}
	return fmt.Sprintf("%s%s tokens in%s, %s out%s", before, number(u.InputTokens), ofWhich(u.CachedTokens, "cached"), number(u.OutputTokens), ofWhich(u.ReasoningTokens, "reasoning"))
}

// ofWhich returns how many tokens are of a kind, in parentheses; "" if none are.
func ofWhich(n int, kind string) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" (%s %s)", number(n), kind)
}

// seconds writes a time that goes on, so that it changes once a second: 0s, 42s, 3m05s.
func seconds(d time.Duration) string {
	if d < time.Minute {
		return fmt.Sprintf("%ds", int(max(d, 0).Seconds()))
	}
	return elapsed(d)
}

// elapsed writes a time as people read it: 0.3s, 42.0s, 3m05s, 2h03m.
func elapsed(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%.1fs", max(d, 0).Seconds())
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
}
