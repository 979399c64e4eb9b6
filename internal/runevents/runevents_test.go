package runevents_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/internal/runevents"
	"github.com/runteam/runteam/task"
)

// eventsOf returns the events of entries of the run "r", each as "type agent from status code message".
func eventsOf(entries ...record.Entry) (list []string) {
	d := runevents.New("r", func(e event.Event) {
		if e.Type != event.RunStart {
			list = append(list, fmt.Sprintf("%s %s %s %s %s %s", e.Type, e.Agent, e.From, e.Status, e.Code, e.Message))
		}
	})
	d.Add(&record.Entry{Begin: &record.RunStart{Run: "r", Version: record.DerivedEvents}})
	for i := range entries {
		d.Add(&entries[i])
	}
	return list
}

func asked(session string, attempt int, partial bool) record.Entry {
	return record.Entry{Asked: &record.CallStart{Session: session, Task: record.TaskOf(session), Agent: "lead", Attempt: attempt, Partial: partial}}
}

func called(session, tool string, attempt int) record.Entry {
	return record.Entry{ToolCall: &record.CallStart{Session: session, Task: record.TaskOf(session), Agent: tool, Attempt: attempt}}
}

func spawned(session, child string, attempt int) record.Entry {
	return record.Entry{ToolCall: &record.CallStart{Session: session, Task: record.TaskOf(session), Agent: "tool:spawn_agent", Attempt: attempt, To: "helper", Child: child}}
}

func ended(session string, attempt int, x record.AgentCall) record.Entry {
	x.CallID = record.CallID{Session: session, Task: record.TaskOf(session), Agent: "lead", Attempt: attempt}
	return record.Entry{Exchange: &x}
}

func TestCallsOfAnAttemptEndWithIt(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"agent_start lead    ",
		"tool_start lead tool:grep   ",
		"agent_spawn lead    ",
		"agent_start lead    ",
		"tool_start lead tool:bash   ",
		"tool_complete lead tool:bash failed  ",
		"agent_complete lead  failed CANCELED ",
		"agent_result lead helper failed CANCELED ",
		"tool_complete lead tool:grep failed  ",
		"agent_complete lead  failed TIMEOUT too late",
		"agent_start lead    ", // the same call of the next attempt is another one
		"tool_start lead tool:grep   ",
		"tool_complete lead tool:grep failed  ",
		"agent_complete lead  failed CANCELED ",
		"task_skipped   skipped CANCELED ",
	}, eventsOf(
		asked("r/t/1", 1, false), called("r/t/call_1_1", "tool:grep", 1),
		spawned("r/t/call_1_2", "/child/call_1_2", 1), asked("r/t/1/child/call_1_2", 1, false), called("r/t/child/call_1_2/call_1_1", "tool:bash", 1),
		ended("r/t/1", 1, record.AgentCall{Code: "TIMEOUT", Error: "too late"}),
		asked("r/t/2", 2, false), called("r/t/call_1_1", "tool:grep", 2),
		record.Entry{Event: &event.Event{Type: event.TaskSkipped, Task: "t", Status: task.Skipped, Problem: event.Problem{Code: "CANCELED"}}},
	))
}

// The end of a call has the ID of its start, and no other call of the run has it: neither one of a child, nor the same call of a
// tool in the next attempt. A call that is made again after a crash keeps its ID.
func TestStartsAndEndsArePaired(t *testing.T) {
	t.Parallel()
	entries := []record.Entry{
		asked("r/t/1", 1, false), called("r/t/call_1_1", "tool:grep", 1), called("r/t/call_1_2", "tool:grep", 1),
		spawned("r/t/call_1_3", "/child/call_1_3", 1), asked("r/t/1/child/call_1_3", 1, false), called("r/t/child/call_1_3/call_1_1", "tool:bash", 1),
		asked("r/t/1/turn/2", 1, false), ended("r/t/1/turn/2", 1, record.AgentCall{}), ended("r/t/1", 1, record.AgentCall{Code: "TIMEOUT"}),
		asked("r/t/2", 2, false), called("r/t/call_1_1", "tool:grep", 2), ended("r/t/2", 2, record.AgentCall{}),
	}
	starts := map[event.Type]event.Type{event.AgentComplete: event.AgentStart, event.ToolComplete: event.ToolStart}
	for range 2 { // two processes
		began := map[string]event.Type{}
		ends := 0
		d := runevents.New("r", func(e event.Event) {
			switch e.Type {
			case event.AgentStart, event.ToolStart:
				require.NotContains(t, began, e.ID)
				began[e.ID] = e.Type
			case event.AgentComplete, event.ToolComplete:
				require.Equal(t, starts[e.Type], began[e.ID])
				ends++
			default:
				require.Empty(t, e.ID, e.Type)
			}
		})
		d.Add(&record.Entry{Begin: &record.RunStart{Run: "r", Version: record.DerivedEvents}})
		for i := range entries {
			d.Add(&entries[i])
		}
		require.Len(t, began, 8)
		require.Equal(t, 8, ends)
	}
}

func TestStepThatIsCutOffEndsWithTheRun(t *testing.T) {
	t.Parallel()
	step := asked("r/coordinator/plan/1", 1, false)
	require.Equal(t, []string{
		"agent_start lead    ",
		"agent_complete lead  failed CANCELED ",
		"run_complete    cancelled ",
	}, eventsOf(step, record.Entry{End: &record.RunEnd{Status: "cancelled"}}))
	require.Equal(t, []string{
		"agent_start lead    ",
		"run_complete    suspended ",
	}, eventsOf(step, record.Entry{End: &record.RunEnd{Status: "suspended"}}), "a person may answer later")
}

// All events of a step have its title, also the decisions before its prompt.
func TestEventsOfAStepHaveItsTitle(t *testing.T) {
	t.Parallel()
	var titles []string
	d := runevents.New("r", func(e event.Event) { titles = append(titles, e.Title) })
	h := event.Handoff{Time: time.Now()}
	h.To, h.Task, h.Session = "coordinator", "coordinator/plan", "r/coordinator/plan/1"
	d.Add(&record.Entry{Record: &record.Prompt{Handoffs: []event.Handoff{h}}})
	step := asked("r/coordinator/plan/1", 1, false)
	d.Add(&step)
	require.Equal(t, []string{"plan", "plan"}, titles)
}

// The caller learns that a call ended which the caller saw begin, although its answer is hidden, and of no later one.
func TestHiddenAnswerEndsItsCall(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"agent_start lead    ",
		"agent_start lead    ",
		"agent_complete lead  completed  ",
		"agent_complete lead  completed  ",
	}, eventsOf(
		asked("r/t/1", 1, false), asked("r/t/1/turn/2", 1, false), ended("r/t/1/turn/2", 1, record.AgentCall{Spent: record.Spent{Partial: true}}),
		asked("r/t/1/turn/3", 1, false), called("r/t/call_3_1", "tool:grep", 1),
		ended("r/t/1/turn/3", 1, record.AgentCall{}), ended("r/t/1", 1, record.AgentCall{}),
	))
}

func TestEventsHaveMessagesWithoutPersonalData(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{
		"agent_start lead    ",
		"agent_complete lead  failed AGENT no [REDACTED:email]",
		"steered  ann  pause [REDACTED:email] asks",
		"steered  ann  resume asked",
	}, eventsOf(
		asked("r/t/1", 1, false), ended("r/t/1", 1, record.AgentCall{Code: "AGENT", Error: "no a@example.com", EventError: "no [REDACTED:email]"}),
		record.Entry{Command: &record.Command{Kind: "pause", By: "ann", Reason: "b@example.com asks", EventReason: "[REDACTED:email] asks"}},
		record.Entry{Command: &record.Command{Kind: "resume", By: "ann", Reason: "asked"}},
	))
}

// A process that resumes a run calls tools for conversations whose agents an earlier process asked. The run took its time
// from its first process on.
func TestResumedRunContinuesItsConversations(t *testing.T) {
	t.Parallel()
	for _, version := range []int{record.DerivedEvents - 1, record.DerivedEvents} {
		var last []event.Event
		d := runevents.New("r", func(e event.Event) { last = append(last, e) })
		first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		begin := record.Entry{Begin: &record.RunStart{Time: first, Version: version}}
		turn, failed := asked("r/t/1", 1, false), record.Entry{Event: &event.Event{Type: event.Error, Task: "t"}}
		again := record.Entry{Begin: &record.RunStart{Time: first.Add(time.Hour), Version: record.DerivedEvents}}
		call := called("r/t/call_1_1", "tool:grep", 2)
		end := record.Entry{End: &record.RunEnd{Time: first.Add(2 * time.Hour)}}
		for _, e := range []*record.Entry{&begin, &turn, &failed, &again, &call, &end} {
			d.Add(e)
		}
		start, complete := last[len(last)-3], last[len(last)-1]
		require.Equal(t, event.ToolStart, start.Type)
		require.Equal(t, "lead", start.Agent)
		require.Equal(t, 2*time.Hour, complete.Duration)
	}
}

// A process that resumes a run has what the history says, which has no events: the names of instances and the titles of
// planned tasks.
func TestResumedRunKnowsNames(t *testing.T) {
	t.Parallel()
	var last event.Event
	d := runevents.New("r", func(e event.Event) { last = e })
	call := asked("r/t/1", 1, false)
	for _, e := range []record.Entry{
		{Begin: &record.RunStart{Version: record.DerivedEvents}},
		{Change: &record.TaskChange{Type: event.PlanReady, Plan: []event.Planned{{Task: "t", Title: "Mail#1"}}}},
		{Change: &record.TaskChange{Type: event.TaskReady, Task: "t", Name: "Mail (ann)"}},
		{Begin: &record.RunStart{Version: record.DerivedEvents}},
		call,
	} {
		d.Add(&e)
	}
	require.Equal(t, []string{"Mail#1", "Mail (ann)"}, []string{last.Title, last.Name})
}
