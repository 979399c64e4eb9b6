package scripted

import (
	"slices"
	"time"
)

// sendHandoff is the tool with which an agent sends a message to another one.
const sendHandoff = "send_handoff"

// maxPause is the longest pause that a recording keeps between two events of a run.
const maxPause = 100 * time.Millisecond

// paced returns the calls with delays that keep the order in which they began and ended, if agents sent each other
// messages: what a prompt contains then depends on that order. Each pause in which no call began or ended is as long
// as it was, up to [maxPause]. Calls without messages are returned as they are.
func paced(calls []*recorded) []*recorded {
	if !slices.ContainsFunc(calls, (*recorded).hasMessages) {
		return calls
	}
	at := timeline(calls)
	out := make([]*recorded, len(calls))
	for i, c := range calls {
		own, reply := *c, *c.reply
		reply.Delay = (at[c.ended] - at[c.began]).Round(time.Millisecond)
		own.reply = &reply
		out[i] = &own
	}
	return out
}

// hasMessages reports whether the prompt of a call has messages, or the call sends one.
func (c *recorded) hasMessages() bool {
	return len(c.reply.Messages) > 0 || slices.ContainsFunc(c.reply.ToolCalls, func(t ToolCall) bool { return t.Name == sendHandoff })
}

// timeline returns when each event of the calls happened, with shortened pauses.
func timeline(calls []*recorded) map[time.Time]time.Duration {
	var events []time.Time
	for _, c := range calls {
		events = append(events, c.began, c.ended)
	}
	slices.SortFunc(events, time.Time.Compare)
	at := make(map[time.Time]time.Duration, len(events))
	var now time.Duration
	for i, e := range events {
		if i > 0 {
			now += min(e.Sub(events[i-1]), maxPause)
		}
		at[e] = now
	}
	return at
}
