package engine

import (
	"cmp"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/memo"
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

// recordEnd records that a call has ended.
func (c *toolCall) recordEnd(a *attempt, answer *toolAnswer, began time.Time, measured measuredFiles) {
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

// metricsBefore returns what the work on a task took in earlier processes.
func metricsBefore(p *memo.Memo, id task.ID) Metrics {
	if p == nil {
		return Metrics{}
	}
	t, begun := p.Counted(id), p.Attempts(id)
	m := Metrics{Usage: p.Usage(id), Attempts: begun.Begun(), Interrupted: begun.Interrupted, Partial: t.IsPartial(), ToolCalls: calledTools(t)}
	for _, x := range t.Calls {
		m.TokensSaved += x.Context.TokensSaved
	}
	if m.Start, m.End = t.Span(); m.End.IsZero() { // it was interrupted at an unknown time
		m.End = m.Start
	}
	return m
}

// calledTools returns the calls of tools that earlier processes made for a task, in the order
// of the calls. The journal has calls that were made at the same time in the order of their ends.
func calledTools(t *memo.Task) []ToolCallMetrics {
	if t.IsPartial() {
		return nil
	}
	var all []ToolCallMetrics
	for _, x := range slices.SortedStableFunc(slices.Values(t.Results), func(x, y *record.AgentCall) int {
		return cmp.Or(x.Attempt-y.Attempt, compareCalls(x, y))
	}) {
		if x.Code != codes.ToolRefused && x.Code != codes.ReplyPending { // then no tool was called, or the call has not ended
			all = append(all, ToolCallMetrics{Tool: strings.TrimPrefix(x.Agent, gate.ToolReader("")), Duration: x.End.Sub(x.Start), Failed: x.Code != ""})
		}
	}
	return all
}

// A turnPlace is the turn of a call of a tool and its place among the calls of that turn.
type turnPlace struct{ turn, place int }

// placesOfCall returns the place of a call of a tool, behind those of the calls that it is within. Whoever a
// conversation is transferred to has the place behind all turns before it.
func placesOfCall(session string) (list []turnPlace) {
	for part := range strings.SplitSeq(session, "/") {
		var at turnPlace
		if part == path.Base(record.HolderPart) {
			list = append(list, turnPlace{turn: math.MaxInt})
		} else if n, _ := fmt.Sscanf(part, record.CallPrefix+"%d_%d", &at.turn, &at.place); n == 2 {
			list = append(list, at)
		}
	}
	return list
}

// compareCalls compares two calls of an attempt by the order in which they count. What children call comes
// before the calls of the turn that they worked in.
func compareCalls(x, y *record.AgentCall) int {
	a, b := placesOfCall(x.Session), placesOfCall(y.Session)
	for k := range min(len(a), len(b)) {
		aLast, bLast := k == len(a)-1, k == len(b)-1
		switch {
		case a[k].turn != b[k].turn:
			return a[k].turn - b[k].turn
		case aLast && !bLast:
			return 1
		case bLast && !aLast:
			return -1
		case a[k].place != b[k].place:
			return a[k].place - b[k].place
		}
	}
	return len(a) - len(b)
}

// shownBytes returns the size of the arguments as the caller may see it, or zero.
func (c *toolCall) shownBytes() int {
	n, d := c.delivery.sealed[0].Payload().Size(), c.delivery.sealed[0].Decision()
	if c.delivery.run.sees(d.From, d.Source, d.Before) {
		return n
	}
	return 0
}
