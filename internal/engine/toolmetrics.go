package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/bytesize"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/task"
)

// ToolCallMetrics measures a call of a tool that has ended. It has what the events of the call
// tell the caller, and neither arguments nor result.
type ToolCallMetrics struct {
	Tool     string // the name of the tool
	Duration time.Duration
	Failed   bool // the result is an error
}

// countCalls adds the calls of a turn that were made, in the order of the calls.
func (c *conversation) countCalls(answers []toolAnswer) {
	for i := range answers {
		if made := answers[i].made; made != nil {
			c.toolCalls = append(c.toolCalls, *made)
		}
	}
}

// recordEnd emits that a call has ended, and stores it in the journal.
func (c *toolCall) recordEnd(a *attempt, answer *toolAnswer, began time.Time, measured measuredFiles) {
	if a.run.bus.live() {
		ev := c.toolEvent(event.ToolComplete)
		if ev.Status, ev.Duration = task.Completed, answer.made.Duration; answer.failed {
			ev.Status = task.Failed
		}
		a.run.bus.emit(ev)
	}
	if a.run.ledger == nil {
		return
	}
	code := ""
	if answer.failed {
		code = codes.Tool
	}
	x := c.entry(a, answer.envelope, began, code)
	x.End = began.Add(answer.made.Duration) // a result and its replay say the same
	x.Files, x.Folder = measured.key, measured.folder
	a.run.ledger.note(record.Entry{ToolResult: x})
}

// calledTools returns the calls of tools that earlier processes made for a task, in the order
// of the calls. The journal has calls that were made at the same time in the order of their ends.
func (b *priorTask) calledTools() []ToolCallMetrics {
	slices.SortStableFunc(b.toolResults, func(x, y *record.AgentCall) int {
		xTurn, xPlace := placeOfCall(x.Session)
		yTurn, yPlace := placeOfCall(y.Session)
		return cmp.Or(x.Attempt-y.Attempt, xTurn-yTurn, xPlace-yPlace)
	})
	var all []ToolCallMetrics
	for _, x := range b.toolResults {
		if x.Code != codes.ToolRefused { // then no tool was called
			all = append(all, ToolCallMetrics{Tool: strings.TrimPrefix(x.Agent, gate.ToolReader("")), Duration: x.End.Sub(x.Start), Failed: x.Code != ""})
		}
	}
	return all
}

// placeOfCall returns the turn of a call of a tool and its place among the calls of that turn.
func placeOfCall(session string) (turn, place int) {
	_, _ = fmt.Sscanf(session[strings.LastIndexByte(session, '/')+1:], "call_%d_%d", &turn, &place)
	return turn, place
}

// shownBytes returns the size of the arguments as the caller may see it.
func (c *toolCall) shownBytes() int {
	n, d := c.sealed[0].Payload().Size(), c.sealed[0].Decision()
	if c.run.sees(d.From, d.Source, d.Before) {
		return n
	}
	return bytesize.Class(n)
}

// toolEvent returns an event about the call, which the agent of the task makes.
func (c *toolCall) toolEvent(kind event.Type) event.Event {
	ev := c.eventOf(kind)
	ev.Agent, ev.From = c.task.Assignee, c.caps.Agent
	return ev
}
