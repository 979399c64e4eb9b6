package progress

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
)

// lineLog is progress as lines, for logs and pipes.
type lineLog struct {
	*tracker // its mutex guards what follows, too
	w        io.Writer
	last     time.Time               // when a line was printed
	limited  time.Time               // of the last line about a limited endpoint
	answer   func(run string) string // of a [View]; nil once a line has it
	printed  map[string]bool         // long messages
	skips    []skip                  // that have no line yet
}

// A skip is instances of a task that ended for one reason without having begun. A loop or a list may have
// thousands of them, so they have one line together.
type skip struct {
	title, agent string // of the task as written
	reason       string
	state        state
	first        event.Event
	n            int
}

// take prints the line of an event.
func (p *lineLog) take(e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, r := p.tracker.take(e)
	switch {
	case r == nil && e.Type == event.TaskNotNeeded: // a round or an item that there is not
		return
	case e.Type == event.Warning && p.known[e.Message]:
		return
	case e.Type == event.Limited && e.Wait < heartbeat/2 && e.Time.Sub(p.limited) < heartbeat: // short waits follow each other quickly
		return
	case e.Type == event.Limited:
		p.limited = e.Time
	}
	if r != nil && r.instance && ends(e) && r.begun == 0 && (r.state == skipped || r.state == notNeeded) {
		p.skip(e, r)
		return
	}
	message := terminal.CleanLine(e.Message)
	if p.printed[message] {
		e.Message = "as above"
	}
	text := sentence(e, outcome(e, r))
	if e.Type == event.TaskStart {
		if !r.item { // a list may be long: each of its items has one line, about its end
			r.unprinted = text
		}
		return
	}
	if r != nil && r.unprinted != "" && (text != "" || e.Type == event.AgentStart) {
		if e.Reused == "" {
			p.print(e.Time, r.unprinted)
		}
		r.unprinted = ""
	}
	if e.Type == event.TaskWaiting && p.answer != nil {
		text += "; to answer: " + p.answer(e.Run)
		p.answer = nil
	}
	if text != "" {
		p.print(e.Time, text)
	}
	if len(message) > maxRepeated && strings.Contains(text, message) {
		if p.printed == nil {
			p.printed = map[string]bool{}
		}
		p.printed[message] = true
	}
	switch e.Type {
	case event.PlanReady:
		p.list(e.Plan)
	case event.RunComplete:
		p.printSkips()
	}
}

// skip adds an instance that ended without having begun to those that have no line yet.
func (p *lineLog) skip(e event.Event, r *row) {
	one := skip{title: p.group(e).title, agent: e.Agent, reason: format.CommonReason(reason(e)), state: r.state, first: e}
	i := slices.IndexFunc(p.skips, func(s skip) bool { return s.title == one.title && s.state == one.state && s.reason == one.reason })
	if i < 0 {
		p.skips, i = append(p.skips, one), len(p.skips)
	}
	p.skips[i].n++
}

// printSkips prints a line for the instances of each task that ended without having begun.
func (p *lineLog) printSkips() {
	list := p.skips
	p.skips = nil
	for _, s := range list {
		text := sentence(s.first, s.state)
		if s.n > 1 {
			text = fmt.Sprintf("%-9s %s: %s", states[s.state].word, format.Instances(terminal.CleanLine(s.title), s.n)+ofAgent(s.agent), s.reason)
		}
		p.print(s.first.Time, text)
	}
}

// maxRepeated is how many bytes a message has at most that is printed again.
const maxRepeated = 60

// maxPlanned is how many tasks of a plan are listed.
const maxPlanned = 20

// list prints the planned tasks of a goal.
func (p *lineLog) list(plan []event.Planned) {
	title := make(map[task.ID]string, len(plan))
	for _, t := range plan {
		title[t.Task] = cmp.Or(t.Written, t.Title)
	}
	var b strings.Builder
	tasks := writtenOnce(plan)
	for i, t := range tasks {
		if i == maxPlanned {
			fmt.Fprintf(&b, "%19s… and %d more\n", "", len(tasks)-i)
			break
		}
		name := terminal.CleanLine(title[t.Task])
		if g := p.groups[t.Written]; g != nil {
			name += format.Rounds(g.most)
		}
		fmt.Fprintf(&b, "%19s%s (%s)", "", name, terminal.CleanLine(t.Agent))
		var after []string
		for _, up := range t.DependsOn {
			if !slices.Contains(after, title[up]) {
				after = append(after, title[up])
			}
		}
		if len(after) > 0 {
			b.WriteString(" after " + format.List(after, 3))
		}
		b.WriteByte('\n')
	}
	_, _ = io.WriteString(p.w, b.String()) // as in print
}

// writtenOnce returns the tasks of a plan, of those with instances the last one, which may depend on
// others.
func writtenOnce(plan []event.Planned) (tasks []event.Planned) {
	last := map[string]int{}
	for i, t := range plan {
		last[t.Written] = i
	}
	for i, t := range plan {
		if t.Written == "" || last[t.Written] == i {
			tasks = append(tasks, t)
		}
	}
	return tasks
}

// beat prints a line after a long silence.
func (p *lineLog) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.last) < heartbeat {
		return
	}
	text := p.counts()
	if all := p.running(); len(all) > 0 {
		text += "; running: " + format.List(all, 3)
	}
	p.print(now, "working   "+text)
}

func (p *lineLog) print(at time.Time, text string) {
	p.printSkips() // they came before
	p.last = at
	_, _ = fmt.Fprintf(p.w, "%7s  %s\n", format.Elapsed(at.Sub(p.start)), text) // a failure to show progress is no error
}

// steered describes the command of an event.
func steered(e event.Event) string {
	return format.Steered(steer.Kind(e.Code), cmp.Or(stepName(e), e.Agent), e.From, e.Message)
}

// whatWaits says what waits for a person.
func whatWaits(e event.Event) string {
	if e.From != "" {
		return "a call of " + terminal.CleanLine(e.From) + " waits for approval"
	}
	return "no answer yet"
}

// replyEnd says how the wait for a reply ended.
func replyEnd(e event.Event) string {
	from, took := terminal.CleanLine(e.From), format.Elapsed(e.Duration)
	if e.Code == "" {
		return fmt.Sprintf("%s replied after %s", from, took)
	}
	return fmt.Sprintf("no reply of %s after %s: %s", from, took, e.Code)
}

// childEnd says how a child ended.
func childEnd(e event.Event) string {
	agent, took := terminal.CleanLine(e.From), format.Elapsed(e.Duration)
	if e.Code == "" {
		return fmt.Sprintf("%s completed a goal in %s", agent, took)
	}
	return fmt.Sprintf("%s did not complete a goal in %s: %s", agent, took, e.Code)
}

// PlannedTasks counts the tasks of a plan, and how often they run at most.
func PlannedTasks(plan []event.Planned) string {
	return format.TasksThatRun(len(writtenOnce(plan)), len(plan))
}

// sentence describes an event in one line; it is empty for events without news. The end is that
// of the task or step that the event ends.
func sentence(e event.Event, end state) string {
	who, message := who(e), reason(e)
	switch e.Type {
	case event.PlanReady:
		return "planned   " + PlannedTasks(e.Plan)
	case event.Message:
		return fmt.Sprintf("message   %s: from %s", who, terminal.CleanLine(e.From))
	case event.MessageSent:
		return fmt.Sprintf("sent      %s: to %s", who, terminal.CleanLine(e.To))
	case event.ReplyWait:
		return fmt.Sprintf("waits     %s: for a reply of %s, at most %s", who, terminal.CleanLine(e.From), format.Elapsed(e.Wait))
	case event.ReplyEnd:
		return fmt.Sprintf("waited    %s: %s", who, replyEnd(e))
	case event.AgentResult:
		return fmt.Sprintf("child     %s: %s", who, childEnd(e))
	case event.AgentTransfer:
		return fmt.Sprintf("transfer  %s: to %s", who, terminal.CleanLine(e.To))
	case event.Steered:
		return "steered   " + steered(e)
	case event.Budget:
		return "budget    " + who + ": " + message
	case event.TaskWaiting:
		return "asked     " + who + ": " + whatWaits(e)
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
		if e.Wait == 0 && (e.Code == "" || e.Code == codes.Loop) { // no call is repeated
			return "warning   " + who + ": " + message
		}
		return fmt.Sprintf("retry     %s: %s; retrying the call in %s", who, message, format.Elapsed(e.Wait))
	}
	switch {
	case begins(e):
		return "start     " + who
	case !ends(e):
		return ""
	case end != done:
		return fmt.Sprintf("%-9s %s: %s", states[end].word, who, message)
	case e.Reused != "":
		return "cached    " + who + reusedFrom(e)
	}
	text := "completed " + who
	if !e.Partial {
		text += " in " + format.Elapsed(e.Duration)
	}
	return format.Partial(text+format.Tokens(e.Usage(), ", "), e.Partial)
}

// who returns the task or step that an event is about, and its agent.
func who(e event.Event) string {
	return terminal.CleanLine(stepName(e)) + ofAgent(e.Agent)
}

// ofAgent names an agent behind its task; it is empty if there is none.
func ofAgent(name string) string {
	if name == "" {
		return ""
	}
	return " (" + terminal.CleanLine(name) + ")"
}
