package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// plain is progress as lines, for logs and pipes.
type plain struct {
	w     io.Writer
	start time.Time
	total int

	mu      sync.Mutex // guards what follows
	last    time.Time  // when a line was printed
	running []string   // titles, in the order in which they began
	counts  counts
}

// counts are how many tasks ended, and how.
type counts struct {
	done, failed, skipped int
	hit                   int // not run because of one that failed
}

// take counts a task; root is the other task that it ended because of, if any.
func (c *counts) take(s task.Status, root task.ID) {
	switch s {
	case task.Completed:
		c.done++
	case task.Failed:
		if root != "" {
			c.hit++
			return
		}
		c.failed++
	case task.Skipped:
		c.skipped++
	}
}

// ended is how many tasks ended.
func (c counts) ended() int { return c.done + c.failed + c.skipped + c.hit }

// of is "3 of 7 tasks done, 1 failed, 2 not run because of it".
func (c counts) of(total int) string {
	text := fmt.Sprintf("%s of %s done", number(c.done), plural(total, "task"))
	if c.failed > 0 {
		text += fmt.Sprintf(", %s failed", number(c.failed))
	}
	if c.hit > 0 {
		because := "it"
		if c.failed > 1 {
			because = "them"
		}
		text += fmt.Sprintf(", %s not run because of %s", number(c.hit), because)
	}
	if c.skipped > 0 {
		text += fmt.Sprintf(", %s skipped", number(c.skipped))
	}
	return text
}

func newPlain(plan *team.Plan, w io.Writer, start time.Time) *plain {
	return &plain{w: w, start: start, last: start, total: len(plan.Tasks)}
}

// take prints the line of an event.
func (p *plain) take(e event.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.count(e)
	if text := sentence(e); text != "" {
		p.print(e.Time, text)
	}
}

func (p *plain) count(e event.Event) {
	switch e.Type {
	case event.TaskStart:
		p.running = append(p.running, e.Title)
	case event.TaskComplete, event.TaskSkipped, event.Error:
		p.counts.take(e.Status, e.Root)
		for i, title := range p.running {
			if title == e.Title {
				p.running = append(p.running[:i], p.running[i+1:]...)
				break
			}
		}
	}
}

// beat prints a line if none was for a while.
func (p *plain) beat(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now.Sub(p.last) < heartbeat {
		return
	}
	text := p.counts.of(p.total)
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
func sentence(e event.Event) string {
	who := cleanLine(e.Title)
	if e.Agent != "" {
		who += " (" + cleanLine(e.Agent) + ")"
	}
	message := reason(e)
	switch e.Type {
	case event.TaskStart:
		return "start     " + who
	case event.TaskRetry:
		return fmt.Sprintf("retry     %s: attempt %d: %s; again in %s", who, e.Attempt, message, elapsed(e.Wait))
	case event.TaskComplete:
		return fmt.Sprintf("done      %s in %s%s", who, elapsed(e.Duration), tokens(e.Input, e.Output, ", "))
	case event.TaskSkipped:
		return "skipped   " + who + ": " + message
	case event.Reveal:
		return "reveal    " + message
	case event.Error:
		if notRun(e) {
			return "not run   " + who + ": " + message
		}
		return "failed    " + who + ": " + message
	case event.Warning:
		if e.Task != "" {
			return fmt.Sprintf("again     %s: %s; again in %s", who, message, elapsed(e.Wait))
		}
	}
	return "" // warnings of the spec were printed with their places before the run
}

// reason says why a task ended without a result: because of another task, by
// its title, or what went wrong with it.
func reason(e event.Event) string {
	switch {
	case e.Because == "":
		return cleanLine(e.Message)
	case e.Status == task.Skipped:
		return fmt.Sprintf("because %q was skipped", cleanLine(e.Because))
	}
	return fmt.Sprintf("because %q failed", cleanLine(e.Because))
}

// notRun reports whether a task that counts as failed was never begun, because of another one.
func notRun(e event.Event) bool { return e.Type == event.Error && e.Root != "" }

// listed names the first few of a list.
func listed(names []string, most int) string {
	more := ""
	if n := len(names) - most; n > 0 {
		names, more = names[:most], fmt.Sprintf(" and %d more", n)
	}
	clean := make([]string, len(names))
	for i, n := range names {
		clean[i] = cleanLine(n)
	}
	return strings.Join(clean, ", ") + more
}

// tokens says what was spent, after a separator; nothing if it was not counted.
func tokens(in, out int, before string) string {
	if in+out == 0 {
		return ""
	}
	return fmt.Sprintf("%s%s tokens in, %s out", before, number(in), number(out))
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
