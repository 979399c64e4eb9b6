package runstate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runstate"
	"github.com/runteam/runteam/steer"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// drawEntry draws an entry about a task, or about the whole run, in no order that a program would write.
func drawEntry(t *rapid.T) (e record.Entry, about task.ID) {
	about = rapid.SampledFrom([]task.ID{"a", "b", "coordinator/synthesis"}).Draw(t, "task")
	attempt := rapid.IntRange(1, 3).Draw(t, "attempt")
	session := fmt.Sprintf("r/%s/%d", about, attempt)
	part := rapid.SampledFrom([]string{"", "/turn/2", "/child/call_1_1", "/child/call_1_1/turn/2"}).Draw(t, "part")
	at := noon.Add(time.Duration(rapid.IntRange(0, 60).Draw(t, "second")) * time.Second)
	key := record.Key{byte(rapid.IntRange(1, 2).Draw(t, "key"))}
	code := rapid.SampledFrom([]string{"", "", codes.Timeout, codes.ReplyPending}).Draw(t, "code")
	call := &record.AgentCall{CallID: record.CallID{Session: session + part, Task: about, Title: string(about), Agent: "x", Attempt: attempt, Part: part}, Start: at, End: at.Add(time.Second), Code: code, Spent: record.Spent{Input: 3}}
	tool := &record.CallStart{Session: "r/" + string(about) + "/call_1_1", Task: about, Agent: "tool:t", Attempt: attempt, Time: at}
	switch rapid.SampledFrom([]string{"begin", "end", "event", "command", "asked", "begun", "turn", "rejected", "exchange", "tool", "result", "question", "answer", "sent"}).Draw(t, "kind") {
	case "begin":
		return record.Entry{Begin: &record.RunStart{Run: "r", Time: at, Tasks: []event.Planned{{Task: "a", Title: "a"}}}}, ""
	case "end":
		return record.Entry{End: &record.RunEnd{Time: at, Tasks: []record.TaskEnd{{Task: "a", Status: task.Completed}}}}, ""
	case "sent":
		return record.Entry{Sent: &record.SentMessage{ID: "m", Task: about}}, ""
	case "event":
		kind := rapid.SampledFrom([]event.Type{event.TaskReady, event.TaskStart, event.TaskComplete, event.TaskSkipped, event.Error, event.ReplyWait, event.ReplyEnd}).Draw(t, "event")
		return record.Entry{Event: &event.Event{Type: kind, Task: about, ID: "m", Time: at}}, about
	case "command":
		return record.Entry{Command: &record.Command{Kind: rapid.SampledFrom([]steer.Kind{steer.Cancel, steer.Rerun, steer.Pause}).Draw(t, "command"), Task: about, Time: at}}, about
	case "asked":
		return record.Entry{Asked: &record.CallStart{Session: session + part, Task: about, Agent: "x", Attempt: attempt, Time: at, Ahead: rapid.Bool().Draw(t, "ahead")}}, about
	case "begun":
		return record.Entry{Begun: &record.PrefetchStart{Session: session, Time: at}}, about
	case "turn":
		return record.Entry{Turn: call}, about
	case "rejected":
		return record.Entry{Rejected: call}, about
	case "tool":
		return record.Entry{ToolCall: tool}, about
	case "result":
		call.Session = tool.Session
		return record.Entry{ToolResult: call}, about
	case "question":
		return record.Entry{Question: &record.Question{Session: session, Task: about, Attempt: attempt, Key: key, Call: rapid.SampledFrom([]string{"", tool.Session}).Draw(t, "call")}}, about
	case "answer":
		return record.Entry{Answer: &record.Answer{Session: session, Task: about, Key: key, Text: "yes"}}, about
	}
	return record.Entry{Exchange: call}, about
}

// seen is all that a State says of a task.
func seen(s *runstate.State, id task.ID) string {
	t := s.Find(id)
	if t == nil {
		return "unknown"
	}
	start, end := t.Span()
	var questions strings.Builder
	for _, q := range s.QuestionsOf(t) {
		questions.WriteString(fmt.Sprint(q.ID(), q.Open(), q.Ended, len(q.Earlier)))
	}
	return fmt.Sprint(s.Status(t), s.EndOf(t), s.Attempts(t), s.Running(t), len(s.Interrupted(t)), len(t.Answered()), t.Usage(), t.LastNumber(), t.Canceled, t.Place, start, end, questions.String(), s.Replies(t), t.WaitFor("m"), s.Connection(t), t.Active)
}

// An entry changes what is known of its own task and of the run, and of no other task, in whatever order entries come.
func TestAnEntryChangesItsOwnTask(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := runstate.New()
		s.Live = rapid.Bool().Draw(t, "live")
		for range rapid.IntRange(1, 30).Draw(t, "entries") {
			e, about := drawEntry(t)
			before := map[task.ID]string{}
			for _, id := range []task.ID{"a", "b", "coordinator/synthesis"} {
				before[id] = seen(s, id)
			}
			s.Apply(&e)
			for id, was := range before {
				if e.Begin == nil && e.End == nil && id != about {
					require.Equal(t, was, seen(s, id), "an entry about %q changed %q", about, id)
				}
			}
		}
	})
}

func asked(session string, attempt int) record.Entry {
	return record.Entry{Asked: &record.CallStart{Session: session, Task: "a", Agent: "x", Attempt: attempt, Time: noon}}
}

func of(session, part string, attempt int) *record.AgentCall {
	return &record.AgentCall{CallID: record.CallID{Session: session, Task: "a", Agent: "x", Attempt: attempt, Part: part}, Start: noon, End: noon}
}

// Attempts are counted by their numbers, whichever of their calls were cut off.
func TestAttempts(t *testing.T) {
	t.Parallel()
	begin := record.Entry{Begin: &record.RunStart{Run: "r", Time: noon, Tasks: []event.Planned{{Task: "a", Title: "A"}}}}
	turn := record.Entry{Turn: of("r/a/1", "", 1)}
	question := record.Entry{Question: &record.Question{Task: "a", Attempt: 1, Call: "r/a/call_1_1", Key: record.Key{1}}}
	ahead := asked("r/a/1", 1)
	ahead.Asked.Ahead = true
	for name, tt := range map[string]struct {
		entries []record.Entry
		live    bool
		want    runstate.Attempts
	}{
		"none":                                   {[]record.Entry{begin}, false, runstate.Attempts{}},
		"a call is cut off":                      {[]record.Entry{begin, asked("r/a/1", 1)}, false, runstate.Attempts{Interrupted: 1}},
		"a call is in progress":                  {[]record.Entry{begin, asked("r/a/1", 1)}, true, runstate.Attempts{Running: 1}},
		"a prefetched call did not begin":        {[]record.Entry{begin, ahead}, false, runstate.Attempts{}},
		"a prefetched call is cut off":           {[]record.Entry{begin, ahead, {Begun: &record.PrefetchStart{Session: "r/a/1"}}}, false, runstate.Attempts{Interrupted: 1}},
		"cut off between a turn and a call":      {[]record.Entry{begin, asked("r/a/1", 1), turn}, false, runstate.Attempts{Interrupted: 1}},
		"a later turn is cut off":                {[]record.Entry{begin, turn, asked("r/a/1/turn/2", 1)}, false, runstate.Attempts{Interrupted: 1}},
		"a child is cut off":                     {[]record.Entry{begin, turn, asked("r/a/1/child/call_1_1", 1)}, false, runstate.Attempts{Interrupted: 1}},
		"a later turn of an attempt that failed": {[]record.Entry{begin, turn, asked("r/a/1/turn/2", 1), {Exchange: of("r/a/1", "", 1)}}, false, runstate.Attempts{Ended: 1}},
		"interrupted, then completed":            {[]record.Entry{begin, asked("r/a/1", 1), begin, asked("r/a/2", 2), {Exchange: of("r/a/2", "", 2)}}, false, runstate.Attempts{Ended: 1, Interrupted: 1}},
		"interrupted, then in progress":          {[]record.Entry{begin, asked("r/a/1", 1), begin, asked("r/a/2", 2)}, true, runstate.Attempts{Interrupted: 1, Running: 1}},
		"it waits for an approval":               {[]record.Entry{begin, turn, question}, false, runstate.Attempts{}},
		"it waited, and went on later": {
			[]record.Entry{begin, turn, question, begin, {ToolCall: &record.CallStart{Session: "r/a/call_1_1", Task: "a", Attempt: 2}}, {Exchange: of("r/a/2", "", 2)}},
			false, runstate.Attempts{Ended: 1},
		},
	} {
		s := runstate.New()
		s.Live = tt.live
		for i := range tt.entries {
			s.Apply(&tt.entries[i])
		}
		require.Equal(t, tt.want, s.Attempts(s.Find("a")), name)
	}
}

// What a turn took counts if its attempt waited and a later one went on, and once if its own attempt ended.
func TestTokensOfTurns(t *testing.T) {
	t.Parallel()
	turn := of("r/a/1", "", 1)
	turn.Input = 7
	own, later := of("r/a/1", "", 1), of("r/a/2", "", 2)
	own.Input, later.Input = 10, 5
	question := record.Entry{Question: &record.Question{Task: "a", Attempt: 1, Call: "r/a/call_1_1", Key: record.Key{1}}}
	goesOn := record.Entry{ToolCall: &record.CallStart{Session: "r/a/call_1_1", Task: "a", Attempt: 2}}
	for _, tt := range []struct {
		entries []record.Entry
		want    int
	}{
		{[]record.Entry{{Turn: turn}}, 7},
		{[]record.Entry{{Turn: turn}, {Exchange: own}}, 10},
		{[]record.Entry{{Turn: turn}, question, goesOn, {Exchange: later}}, 12},
	} {
		s := runstate.New()
		for i := range tt.entries {
			s.Apply(&tt.entries[i])
		}
		require.Equal(t, tt.want, s.Find("a").Usage().InputTokens)
	}
}

// A call of a tool that began again has no result until it ends again, and both calls were made.
func TestCallOfAToolBeginsAgain(t *testing.T) {
	t.Parallel()
	const call = "r/a/call_1_1"
	begins := record.Entry{ToolCall: &record.CallStart{Session: call, Task: "a", Attempt: 1}}
	first, second := of(call, "", 1), of(call, "", 2)
	s := runstate.New()
	for i, e := range []record.Entry{begins, {ToolResult: first}, begins, {ToolResult: second}} {
		s.Apply(&e)
		require.Same(t, []*record.AgentCall{nil, first, nil, second}[i], s.Find("a").Result(call))
	}
	require.Equal(t, []*record.AgentCall{first, second}, s.Find("a").Results)
}

// A task that the last process has not come to is pending, unless it completed before.
func TestStatusOfALaterProcess(t *testing.T) {
	t.Parallel()
	begin := record.Entry{Begin: &record.RunStart{Run: "r", Time: noon, Tasks: []event.Planned{{Task: "a"}, {Task: "b"}, {Task: "c"}}}}
	is := func(id task.ID, kind event.Type) record.Entry {
		return record.Entry{Event: &event.Event{Type: kind, Task: id}}
	}
	s := runstate.New()
	for _, e := range []record.Entry{begin, is("a", event.TaskComplete), is("b", event.TaskStart), is("c", event.Error)} {
		s.Apply(&e)
	}
	status := func() (list []task.Status) {
		for _, t := range s.Tasks() {
			list = append(list, s.Status(t))
		}
		return list
	}
	require.Equal(t, []task.Status{task.Completed, task.InProgress, task.Failed}, status())
	s.Apply(&begin)
	require.Equal(t, []task.Status{task.Completed, task.Pending, task.Pending}, status())
	require.Empty(t, s.EndOf(s.Find("c")))
	end := record.Entry{End: &record.RunEnd{Status: "error", Tasks: []record.TaskEnd{{Task: "a", Status: task.Completed}, {Task: "c", Status: task.Skipped, Reason: "why"}}}}
	s.Apply(&end)
	require.Equal(t, []task.Status{task.Completed, task.NotNeeded, task.Skipped}, status())
	require.Equal(t, "why", s.EndOf(s.Find("c")).Reason)
	require.False(t, s.Has(s.Find("b")), "the last process does not have it")
}

// A task took what its processes worked on it, without the time between them.
func TestWorked(t *testing.T) {
	t.Parallel()
	at := func(s int) time.Time { return noon.Add(time.Duration(s) * time.Second) }
	begin := func(s int) record.Entry { return record.Entry{Begin: &record.RunStart{Run: "r", Time: at(s)}} }
	ended := func(attempt, from, to int) record.Entry {
		x := of(fmt.Sprintf("r/a/%d", attempt), "", attempt)
		x.Start, x.End = at(from), at(to)
		return record.Entry{Exchange: x}
	}
	cutOff := asked("r/a/1", 1)
	cutOff.Asked.Time = at(1)
	for name, tt := range map[string]struct {
		entries []record.Entry
		seconds int
	}{
		"one process":                          {[]record.Entry{begin(0), ended(1, 1, 3), ended(2, 5, 9)}, 8},
		"a process that was cut off":           {[]record.Entry{begin(0), cutOff, begin(100), ended(2, 101, 103)}, 2},
		"two processes":                        {[]record.Entry{begin(0), ended(1, 1, 3), begin(100), ended(2, 101, 103)}, 4},
		"a question from before was answered":  {[]record.Entry{begin(0), begin(100), ended(1, 1, 103)}, 3},
		"nothing ended":                        {[]record.Entry{begin(0), cutOff}, 0},
		"a call that was cut off, then others": {[]record.Entry{begin(0), cutOff, ended(2, 4, 5)}, 4},
	} {
		s := runstate.New()
		for i := range tt.entries {
			s.Apply(&tt.entries[i])
		}
		require.Equal(t, time.Duration(tt.seconds)*time.Second, s.Worked(s.Find("a")), name)
	}
}

// A step of the coordinator that failed has the code of its last call, and a task the agent that the newest spec names.
func TestEndsAndNames(t *testing.T) {
	t.Parallel()
	failed := of("r/coordinator/decompose/1", "", 1)
	failed.Task, failed.Code, failed.Error = "coordinator/decompose", codes.Timeout, "too late"
	begin := func(agent string) record.Entry {
		return record.Entry{Begin: &record.RunStart{Run: "r", Tasks: []event.Planned{{Task: "a", Title: "A", Agent: agent}}}}
	}
	s := runstate.New()
	for _, e := range []record.Entry{begin("x"), {Exchange: failed}, begin("y")} {
		s.Apply(&e)
	}
	step := s.Find("coordinator/decompose")
	require.Equal(t, task.Failed, s.Status(step))
	require.Equal(t, record.TaskEnd{Code: codes.Timeout, Reason: "too late"}, s.EndOf(step))
	require.Equal(t, "y", s.Find("a").Agent)
}

// A task that no process works on any more is interrupted, and one that the run no longer has is removed: it is listed
// behind the others if there was an attempt at it.
func TestWhatPeopleSeeOfTasks(t *testing.T) {
	t.Parallel()
	begin := func(ids ...task.ID) record.Entry {
		b := &record.RunStart{Run: "r", Time: noon}
		for _, id := range ids {
			b.Tasks = append(b.Tasks, event.Planned{Task: id})
		}
		return record.Entry{Begin: b}
	}
	started := func(id task.ID) record.Entry {
		return record.Entry{Event: &event.Event{Type: event.TaskStart, Task: id}}
	}
	cutOff := asked("r/a/1", 1)
	cutOff.Asked.Bytes = 10
	s := runstate.New()
	for _, e := range []record.Entry{begin("a", "b", "c", "d"), cutOff, {Exchange: of("r/a/2", "", 2)}, begin("c", "d"), started("c"), started("d")} {
		s.Apply(&e)
	}
	seen := func() (list []string) {
		for _, t := range s.Listed([]task.ID{"d"}) {
			list = append(list, fmt.Sprint(t.ID, " ", s.Shown(t)))
		}
		return list
	}
	require.Equal(t, []string{"d interrupted", "c interrupted", "a removed"}, seen())
	require.Empty(t, s.EndOf(s.Find("a")))
	require.Equal(t, task.Pending, s.Shown(s.Find("b")), "it was not attempted")
	require.Equal(t, 3, s.Usage(s.Find("a")).InputTokens, "of ten bytes that were sent without a reply")
	s.Live = true
	require.Equal(t, []string{"d in_progress", "c in_progress", "a removed"}, seen())
}

// In a later process, a task can wait for a person that did not before. If the process ends meanwhile, the task is blocked,
// whatever became of it in the process before; so is one whose round did not run there.
func TestTaskThatWaitsForAPersonInALaterProcess(t *testing.T) {
	t.Parallel()
	begin := record.Entry{Begin: &record.RunStart{Run: "r", Tasks: []event.Planned{{Task: "a", Title: "a"}, {Task: "b", Title: "b"}}}}
	s := runstate.New()
	for _, e := range []record.Entry{
		begin,
		{Event: &event.Event{Type: event.TaskComplete, Task: "a"}},
		{Event: &event.Event{Type: event.TaskNotNeeded, Task: "b", Problem: event.Problem{Code: codes.LeftOut}}},
	} {
		s.Apply(&e)
	}
	require.Equal(t, []*runstate.Task{s.Find("a")}, s.Planned(), "while the run works")
	s.Apply(&record.Entry{End: &record.RunEnd{Status: "suspended"}})
	require.Equal(t, task.Completed, s.Status(s.Find("a")))
	require.Equal(t, []*runstate.Task{s.Find("a")}, s.Planned())
	s.Apply(&begin)
	require.Equal(t, task.Completed, s.Status(s.Find("a")), "it is completed until it begins again")
	s.Apply(&record.Entry{End: &record.RunEnd{Status: "suspended"}})
	require.Equal(t, []*runstate.Task{s.Find("a"), s.Find("b")}, s.Planned())
	for _, of := range s.Planned() {
		require.Equal(t, task.Blocked, s.Status(of))
		require.Empty(t, s.EndOf(of))
	}
}

// A loop has the result of the last of its rounds that completed, which may be a loop itself.
func TestALoopHasTheResultOfItsLastRound(t *testing.T) {
	t.Parallel()
	s := runstate.New()
	planned := func(title, rounds string) event.Planned {
		return event.Planned{Task: task.NewID(title), Title: title, Rounds: rounds}
	}
	s.Apply(&record.Entry{Begin: &record.RunStart{Tasks: []event.Planned{
		planned("Draft#1.1", ""), planned("Draft#1.2", ""), planned("Inner#1", "Draft"), planned("Draft#2.1", ""), planned("Draft#2.2", ""), planned("Inner#2", "Draft"), planned("Outer", "Inner"),
	}}})
	loop := s.Find(task.NewID("Outer"))
	require.Nil(t, s.Accepted(loop))
	for _, title := range []string{"Draft#1.1", "Draft#1.2", "Draft#2.1", "Inner#1", "Inner#2", "Outer"} {
		require.Nil(t, s.Accepted(loop), "before %s", title)
		if strings.HasPrefix(title, "Draft") { // a loop calls no agent
			s.Apply(&record.Entry{Exchange: &record.AgentCall{CallID: record.CallID{Session: title, Task: task.NewID(title)}}})
		}
		s.Apply(&record.Entry{Change: &record.TaskChange{Type: event.TaskComplete, Task: task.NewID(title)}})
	}
	require.Equal(t, "Draft#2.1", s.Accepted(loop).Session)
	require.Equal(t, "Draft#1.2", s.Accepted(s.Find(task.NewID("Inner#1"))).Session)
}
