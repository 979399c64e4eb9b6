package runstate_test

import (
	"testing"
	"time"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/stretchr/testify/require"
)

// A task is idle where it has begun and no agent works on it. A call that is prefetched is no activity before it begins.
func TestConnection(t *testing.T) {
	t.Parallel()
	at := func(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }
	begin := record.Entry{Begin: &record.RunStart{Run: "r", Time: noon, Tasks: []event.Planned{{Task: "a", Title: "A"}}}}
	starts := record.Entry{Change: &record.TaskChange{Type: event.TaskStart, Task: "a"}}
	call := func(session string, second int) record.Entry {
		return record.Entry{Asked: &record.CallStart{Session: session, Task: "a", Agent: "x", Attempt: 1, Time: at(second)}}
	}
	ends := func(session string, second int) *record.AgentCall {
		x := of(session, "", 1)
		x.End = at(second)
		return x
	}
	ahead := call("r/a/1", 1)
	ahead.Asked.Ahead = true
	asks := record.Entry{Question: &record.Question{Session: "r/a/1", Task: "a", Attempt: 1, Time: at(4), Call: "r/a/call_1_1", Key: record.Key{1}}}
	tool := record.Entry{ToolCall: &record.CallStart{Session: "r/a/call_1_1", Task: "a", Agent: "tool:t", Attempt: 1, Time: at(5)}}
	for name, tt := range map[string]struct {
		entries []record.Entry
		want    runstate.Connection
		active  time.Time
	}{
		"it waits for others":            {nil, runstate.Disconnected, time.Time{}},
		"it is about to be called":       {[]record.Entry{starts}, runstate.Idle, time.Time{}},
		"its agent is called":            {[]record.Entry{starts, call("r/a/1", 2)}, runstate.Connected, at(2)},
		"its call is prefetched":         {[]record.Entry{ahead}, runstate.Disconnected, time.Time{}},
		"its prefetched call begins":     {[]record.Entry{ahead, starts, {Begun: &record.PrefetchStart{Session: "r/a/1", Time: at(3)}}}, runstate.Connected, at(3)},
		"a call that nobody sees begins": {[]record.Entry{starts, call("r/a/1", 2), {Begun: &record.PrefetchStart{Session: "r/a/1/turn/2", Time: at(3)}}}, runstate.Connected, at(2)},
		"its agent may call a tool":      {[]record.Entry{starts, {Turn: ends("r/a/1", 3)}}, runstate.Connected, at(3)},
		"a person is asked about a call": {[]record.Entry{starts, {Turn: ends("r/a/1", 3)}, asks}, runstate.Idle, at(4)},
		"its tool works":                 {[]record.Entry{starts, {Turn: ends("r/a/1", 3)}, tool}, runstate.Connected, at(5)},
		"its tool has answered":          {[]record.Entry{starts, {Turn: ends("r/a/1", 3)}, tool, {ToolResult: ends("r/a/call_1_1", 6)}}, runstate.Connected, at(6)},
		"it waits for the reply of b":    {[]record.Entry{starts, {Turn: ends("r/a/1", 3)}, {Change: &record.TaskChange{Type: event.ReplyWait, Task: "a", ID: "m", From: "b"}}}, runstate.Idle, at(3)},
		"its attempt has ended":          {[]record.Entry{starts, {Exchange: ends("r/a/1", 7)}}, runstate.Idle, at(7)},
		"it has completed":               {[]record.Entry{starts, {Exchange: ends("r/a/1", 7)}, {Change: &record.TaskChange{Type: event.TaskComplete, Task: "a"}}}, runstate.Disconnected, at(7)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := runstate.New()
			s.Live = true
			s.Apply(&begin)
			for i := range tt.entries {
				s.Apply(&tt.entries[i])
			}
			require.Equal(t, tt.want, s.Connection(s.Find("a")))
			require.Equal(t, tt.active, s.Find("a").Active)
			s.Live = false
			require.Equal(t, runstate.Disconnected, s.Connection(s.Find("a")), "without its process")
		})
	}
}
