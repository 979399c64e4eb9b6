package progress

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/cli/format"
	"github.com/runteam/runteam/internal/cli/journals"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// row is one task, or one step of the coordinator.
type row struct {
	title, agent string
	position     int // among the rows as shown; equal ones are shown in the order in which they were added
	state        state
	begun        int           // its position among the rows that began, from 1; 0 if it has not begun
	since        time.Time     // running: when it began; waiting for a retry: when that begins
	took         time.Duration // of a task that ended
	attempt      int
	messages     messageCounts
	reason       string
	note         string // about a model call that is repeated
	conversation
	writes    string // the end of what the model has written
	cached    string // where a cached answer is from; empty without one
	ended     int    // its position among the ended rows, from 1; 0 if it has not ended
	unprinted string // the line about its start, until it is known whether the answer is cached

	// Of loops and lists.
	instance bool   // whether it is a round, or for an item
	round    string // of an instance, such as #2; empty for none
	item     bool   // whether it is for an item of a list
	rounds   int    // how many a loop has at most
	counts   string // in place of the detail, of a row that stands for several
}

// A messageCounts counts the messages of an attempt.
type messageCounts struct{ read, sent int }

// A conversation is how far an attempt with tools is.
type conversation struct {
	holder   string   // the agent that it was transferred to; empty for none
	turn     int      // from 1; 0 for an attempt that has not called a tool
	called   bool     // a tool was called in this turn
	tools    []string // that are being called
	repliers []string // the agents whose replies it waits for
	children int      // that work
}

// update updates a conversation for an event.
func (c *conversation) update(e event.Event) {
	name := terminal.CleanLine(format.ToolName(strings.TrimPrefix(e.From, "tool:")))
	switch e.Type {
	case event.TaskStart, event.TaskRetry:
		*c = conversation{}
	case event.AgentStart:
		if c.called && e.Child == "" { // with the results
			c.turn, c.called = c.turn+1, false
		}
	case event.ToolStart:
		if e.Child != "" {
			return // of a child, which counts as one
		}
		c.turn, c.called, c.tools = max(c.turn, 1), true, append(c.tools, name)
	case event.ToolComplete:
		if i := slices.Index(c.tools, name); i >= 0 {
			c.tools = slices.Delete(c.tools, i, i+1)
		}
	case event.ReplyWait:
		c.turn, c.called, c.repliers = max(c.turn, 1), true, append(c.repliers, name)
	case event.ReplyEnd:
		if i := slices.Index(c.repliers, name); i >= 0 {
			c.repliers = slices.Delete(c.repliers, i, i+1)
		}
	case event.AgentSpawn:
		c.turn, c.called, c.children = max(c.turn, 1), true, c.children+1
	case event.AgentResult:
		c.children = max(c.children-1, 0)
	}
}

// text says what the attempt waits for: replies, children, or the tool that is being called in a turn.
// It is empty if it waits for its model.
func (c *conversation) text() (text string) {
	switch {
	case len(c.repliers) > 0:
		return "waits for a reply of " + format.List(c.repliers, 3)
	case len(c.tools) > 0:
		text = fmt.Sprintf("turn %d, tool %s", c.turn, c.tools[0])
		if more := len(c.tools) - 1; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	if c.children == 0 {
		return text
	}
	work := format.Plural(c.children, "child")
	if c.children > 1 {
		work = fmt.Sprintf("%d children", c.children)
	}
	return strings.TrimPrefix(text+", "+work, ", ")
}

// state is the state of a row.
type state uint8

const (
	waiting state = iota
	running
	retrying
	asked // a person has not answered
	done
	failed
	accepted // it failed, and the run can succeed all the same
	skipped
	notNeeded
	cancelled
)

var states = [...]struct{ word, color string }{
	waiting:   {"waiting", "2"},
	running:   {"running", "36"},
	retrying:  {"retry", "33"},
	asked:     {"asked", "33"},
	done:      {format.Completed, "32"},
	failed:    {format.Failed, "31"},
	accepted:  {format.Failed + format.Accepted, "33"},
	skipped:   {format.Skipped, "31"},
	notNeeded: {format.NotNeeded, "2"},
	cancelled: {format.Cancelled, "2"},
}

// outcome returns how the task or step of an event ended. The row of a step may be nil.
func outcome(e event.Event, r *row) state {
	var o record.Outcomes
	switch o.Add(e.Status, e.Root, r != nil && r.begun > 0 && !ofCoordinator(e), e.Accepted); {
	case o.Completed == 1:
		return done
	case o.Accepted == 1:
		return accepted
	case o.Failed == 1:
		return failed
	case o.Cancelled == 1:
		return cancelled
	case o.NotNeeded == 1:
		return notNeeded
	}
	return skipped
}

// reason says why a task ended without a result: because of another task, or of its own error.
func reason(e event.Event) string {
	switch {
	case e.Type != event.Budget && budgetName(e.Code) != "": // the message repeats the budget
		return "the " + budgetName(e.Code) + " is spent"
	case e.Type == event.TaskNotNeeded:
		return terminal.CleanLine(format.WhyNotNeeded(e.Message))
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

// reusedFrom names the other run that a cached answer is from; it is empty if the answer is from this
// run, which was resumed.
func reusedFrom(e event.Event) string {
	if e.Reused == e.Run {
		return ""
	}
	return ", reused from " + journals.ShortRun(e.Reused)
}
