package progress

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// planOf is a plan with tasks A, B, … for an agent each.
func planOf(n int) *engine.Plan {
	p := &engine.Plan{}
	for i := range n {
		p.Tasks = append(p.Tasks, engine.PlannedTask{ID: task.ID(fmt.Sprint(i)), Title: fmt.Sprintf("Task %d", i), Assignee: fmt.Sprintf("agent %d", i)})
	}
	return p
}

// interrupted is the cause of a run that is being ended.
func interrupted() error { return errors.New("interrupted") }

func texts(lines []terminal.Line) (all []string) {
	for _, l := range lines {
		all = append(all, l.Text)
	}
	return all
}

// TestTableOfBranches checks that the column of states is as wide as the widest.
func TestTableOfBranches(t *testing.T) {
	t.Parallel()
	tb := newTracker(planOf(2), clitest.Noon, func() error { return nil })
	tb.take(event.Event{Type: event.TaskStart, Task: "0", Time: clitest.Noon, Attempt: 1})
	tb.take(event.Event{Type: event.TaskNotNeeded, Task: "1", Status: task.NotNeeded, Problem: event.Problem{Message: `Not needed: "Task 0" was not needed.`}})
	lines := tb.lines(80, 0, clitest.Noon, true)
	require.Equal(t, []string{
		"running    Task 0  agent 0  0s",
		`not needed Task 1  agent 1  "Task 0" was not needed`,
		"0 of 2 tasks completed, 1 not needed, 0s",
	}, texts(lines))
	require.Equal(t, "2", lines[1].Color, "no color of an error")
}

// A running row ends with the last line that its model wrote.
func TestTableShowsWhatModelsWrite(t *testing.T) {
	t.Parallel()
	tb := newTracker(planOf(1), clitest.Noon, func() error { return nil })
	tb.take(event.Event{Type: event.TaskStart, Task: "0", Time: clitest.Noon, Attempt: 1})
	row := func(d event.Delta) string {
		d.Task = "0"
		tb.stream(d)
		return texts(tb.lines(70, 0, clitest.Noon, false))[0]
	}
	require.Equal(t, "running   Task 0  agent 0  0s  Rivers", row(event.Delta{Text: "Rivers"}))
	require.Equal(t, "running   Task 0  agent 0  0s  Rivers run.", row(event.Delta{Text: " run.\n\n"}))
	require.Equal(t, `running   Task 0  agent 0  0s  They\x1b[2J end.`, row(event.Delta{Text: "They\x1b[2J end."}))
	require.Equal(t, "running   Task 0  agent 0  0s", row(event.Delta{Reset: true}))
	require.Equal(t, "running   Task 0  agent 0  0s  …"+strings.Repeat("Ü", 33)+" end", row(event.Delta{Text: strings.Repeat("Ü", 10_000) + " end"}), "of a long line the end")
	tb.take(event.Event{Type: event.AgentStart, Task: "0", Time: clitest.Noon, Attempt: 1})
	require.Equal(t, "running   Task 0  agent 0  0s", texts(tb.lines(70, 0, clitest.Noon, false))[0], "another turn")
}

func TestTableShowsEachState(t *testing.T) {
	t.Parallel()
	tb := newTracker(planOf(7), clitest.Noon, interrupted)
	at := func(s int) time.Time { return clitest.Noon.Add(time.Duration(s) * time.Second) }
	for _, e := range []event.Event{
		{Type: event.RunStart, Time: clitest.Noon, Tasks: 7},
		{Type: event.TaskStart, Task: "0", Time: at(0), Attempt: 1},
		{Type: event.TaskComplete, Task: "0", Time: at(2), Status: task.Completed, Work: event.Work{Duration: 2 * time.Second, Input: 1200, Output: 30}},
		{Type: event.TaskStart, Task: "1", Time: at(2), Attempt: 1},
		{Type: event.Error, Task: "1", Time: at(3), Status: task.Failed, Problem: event.Problem{Message: "model \"m\":\x1b[2J gone"}},
		{Type: event.TaskStart, Task: "2", Time: at(2), Attempt: 1},
		{Type: event.TaskRetry, Task: "2", Time: at(3), Problem: event.Problem{Wait: 4 * time.Second, Message: "server error (500)"}},
		{Type: event.TaskStart, Task: "3", Time: at(2), Attempt: 1},
		{Type: event.TaskRetry, Task: "3", Time: at(3), Problem: event.Problem{Wait: time.Second}},
		{Type: event.AgentStart, Task: "3", Time: at(4), Attempt: 2},
		{Type: event.Warning, Task: "3", Time: at(4), Problem: event.Problem{Wait: 1200 * time.Millisecond, Message: "server error (500)"}},
		{Type: event.TaskSkipped, Task: "4", Time: at(4), Status: task.Skipped, Problem: event.Problem{Message: "interrupted"}},
		{Type: event.Error, Task: "6", Time: at(4), Status: task.Failed, Problem: event.Problem{Root: "1", Because: "Task 1"}},
	} {
		tb.take(e)
	}
	require.Equal(t, []string{
		"completed Task 0  agent 0  2.0s",
		`failed    Task 1  agent 1  model "m":\x1b[2J gone`,
		"retry     Task 2  agent 2  in 2s: server error (500)",
		"running   Task 3  agent 3  1s  attempt 2  retry in 1.2s: server error (500)",
		"skipped   Task 4  agent 4  interrupted",
		"waiting   Task 5  agent 5",
		`skipped   Task 6  agent 6  because "Task 1" failed`,
		"1 of 7 tasks completed, 1 failed, 2 skipped, 5s, 1,200 tokens in, 30 out",
	}, texts(tb.lines(100, 0, at(5), false)))
	require.Equal(t, "failed    Task 1  model …", texts(tb.lines(26, 0, at(5), false))[1])
	require.Equal(t, terminal.Line{Text: "completed Task 0  2.0s", Color: "32", Colored: 9}, tb.lines(30, 0, at(5), true)[0])
}

// TestTableShowsRateLimits checks the last line while calls wait.
func TestTableShowsRateLimits(t *testing.T) {
	t.Parallel()
	tb := newTracker(planOf(1), clitest.Noon, interrupted)
	tb.take(event.Event{Type: event.TaskStart, Task: "0", Time: clitest.Noon, Attempt: 1})
	for _, wait := range []time.Duration{8 * time.Second, 3 * time.Second} {
		tb.take(event.Event{Type: event.Limited, Task: "0", Time: clitest.Noon, Problem: event.Problem{Wait: wait, Message: "http://a/v1: its rate limit is reached; calls wait"}})
	}
	require.Equal(t, []string{"running   Task 0  agent 0  2s", "0 of 1 task completed, 2s, rate limited for 6s"}, texts(tb.lines(80, 0, clitest.Noon.Add(2*time.Second), false)))
	require.Equal(t, "0 of 1 task completed, 8s", texts(tb.lines(80, 0, clitest.Noon.Add(8*time.Second), false))[1])
}

func TestTableMarksReusedResults(t *testing.T) {
	t.Parallel()
	tb := newTracker(planOf(2), clitest.Noon, interrupted)
	tb.take(event.Event{Type: event.TaskComplete, Run: "r1", Task: "0", Time: clitest.Noon, Status: task.Completed, Work: event.Work{Reused: "r1", Duration: time.Hour}})
	tb.take(event.Event{Type: event.TaskComplete, Run: "r1", Task: "1", Time: clitest.Noon, Status: task.Completed, Work: event.Work{Reused: "0195c3a1-7777"}})
	require.Equal(t, []string{"completed Task 0  agent 0  cached", "completed Task 1  agent 1  cached, reused from 0195c3a1"}, texts(tb.lines(100, 0, clitest.Noon, false))[:2])
}

// A row shows the tools that are being called, as the spec names them; lines stay as they are.
func TestTableShowsCallsOfTools(t *testing.T) {
	t.Parallel()
	tb := newTracker(planOf(1), clitest.Noon, interrupted)
	var out strings.Builder
	log := newTestLog(planOf(1), &out, clitest.Noon)
	at := func(kind event.Type, from string) event.Event {
		return event.Event{Type: kind, Task: "0", Title: "Task 0", Agent: "agent 0", Time: clitest.Noon, Attempt: 1, From: from}
	}
	for _, step := range []struct {
		event event.Event
		want  string
	}{
		{at(event.TaskStart, ""), ""},
		{at(event.AgentStart, ""), ""},
		{at(event.ToolStart, "tool:search__web_search"), "  turn 1, tool search/web_search"},
		{at(event.ToolComplete, "tool:search__web_search"), ""},
		{at(event.AgentStart, ""), ""},
		{at(event.ToolStart, "tool:bash"), "  turn 2, tool bash"},
		{at(event.ToolStart, "tool:grep"), "  turn 2, tool bash and 1 more"},
		{at(event.ToolComplete, "tool:bash"), "  turn 2, tool grep"},
		{at(event.ToolComplete, "tool:grep"), ""},
	} {
		tb.take(step.event)
		log.take(step.event)
		require.Equal(t, "running   Task 0  agent 0  0s"+step.want, texts(tb.lines(100, 0, clitest.Noon, false))[0])
	}
	tb.take(at(event.ToolStart, "tool:bash"))
	tb.take(at(event.TaskRetry, "")) // the call was abandoned
	tb.take(at(event.AgentStart, ""))
	require.Equal(t, "running   Task 0  agent 0  0s", texts(tb.lines(100, 0, clitest.Noon, false))[0])
	require.Equal(t, "   0.0s  start     Task 0 (agent 0)\n", out.String())
}

// TestTableShowsWhatATaskWaitsFor checks replies and children: whoever looks at a run that does not move sees why.
func TestTableShowsWhatATaskWaitsFor(t *testing.T) {
	t.Parallel()
	tb := newTracker(planOf(1), clitest.Noon, interrupted)
	var out strings.Builder
	log := newTestLog(planOf(1), &out, clitest.Noon)
	at := func(kind event.Type, of event.Event) event.Event {
		of.Type, of.Task, of.Title, of.Agent, of.Time, of.Attempt = kind, "0", "Task 0", "agent 0", clitest.Noon, 1
		return of
	}
	child, code := event.Event{From: "helper", To: "helper", Child: "c"}, event.Event{From: "helper", Child: "c", Problem: event.Problem{Code: "TIMEOUT"}}
	for _, step := range []struct {
		event event.Event
		want  string
	}{
		{at(event.TaskStart, event.Event{}), ""},
		{at(event.AgentStart, event.Event{}), ""},
		{at(event.ReplyWait, event.Event{From: "editor", Problem: event.Problem{Wait: time.Minute}}), "  waits for a reply of editor"},
		{at(event.ReplyWait, event.Event{From: "lawyer"}), "  waits for a reply of editor, lawyer"},
		{at(event.ReplyEnd, event.Event{From: "editor", Work: event.Work{Duration: time.Second}}), "  waits for a reply of lawyer"},
		{at(event.ReplyEnd, event.Event{From: "lawyer", Problem: event.Problem{Code: "NO_REPLY"}}), ""},
		{at(event.AgentSpawn, child), "  1 child"},
		{at(event.AgentSpawn, child), "  2 children"},
		{at(event.AgentStart, event.Event{Child: "c"}), "  2 children"},
		{at(event.ToolStart, event.Event{Child: "c", From: "tool:bash"}), "  2 children"},
		{at(event.ToolComplete, event.Event{Child: "c", From: "tool:bash"}), "  2 children"},
		{at(event.AgentResult, child), "  1 child"},
		{at(event.AgentResult, code), ""},
		{at(event.AgentStart, event.Event{}), ""},
		{at(event.ToolStart, event.Event{From: "tool:bash"}), "  turn 2, tool bash"},
	} {
		tb.take(step.event)
		log.take(step.event)
		require.Equal(t, "running   Task 0  agent 0  0s"+step.want, texts(tb.lines(100, 0, clitest.Noon, false))[0])
	}
	for _, line := range []string{
		"waits     Task 0 (agent 0): for a reply of editor, at most 1m00s", "waited    Task 0 (agent 0): editor replied after 1.0s",
		"waited    Task 0 (agent 0): no reply of lawyer after 0.0s: NO_REPLY", "child     Task 0 (agent 0): helper completed a goal in 0.0s",
		"child     Task 0 (agent 0): helper did not complete a goal in 0.0s: TIMEOUT",
	} {
		require.Contains(t, out.String(), line)
	}
}

// All attempts at a task get the same messages, which count once.
func TestTableCountsTheMessagesOfAnAttempt(t *testing.T) {
	t.Parallel()
	tb := newTracker(planOf(1), clitest.Noon, interrupted)
	message := event.Event{Type: event.Message, Task: "0", Time: clitest.Noon, From: "user"}
	for _, e := range []event.Event{
		{Type: event.TaskStart, Task: "0", Time: clitest.Noon, Attempt: 1}, message, message,
		{Type: event.TaskRetry, Task: "0", Time: clitest.Noon}, {Type: event.AgentStart, Task: "0", Time: clitest.Noon, Attempt: 2}, message, message,
	} {
		tb.take(e)
	}
	require.Equal(t, "running   Task 0  agent 0  0s  attempt 2  2 messages", texts(tb.lines(80, 0, clitest.Noon, false))[0])
	tb.take(event.Event{Type: event.MessageSent, Task: "0", Time: clitest.Noon, To: "agent 1"})
	require.Equal(t, "running   Task 0  agent 0  0s  attempt 2  2 messages  1 handoff sent", texts(tb.lines(80, 0, clitest.Noon, false))[0])
}

func TestTableFitsEveryTerminal(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "tasks")
		tb := newTracker(planOf(n), clitest.Noon, interrupted)
		running, failures := 0, 0
		for i := range n {
			id := task.ID(fmt.Sprint(i))
			switch rapid.IntRange(0, 3).Draw(t, "state") {
			case 1:
				tb.take(event.Event{Type: event.TaskStart, Task: id, Time: clitest.Noon, Attempt: 1})
				running++
			case 2:
				tb.take(event.Event{Type: event.TaskComplete, Task: id, Time: clitest.Noon, Status: task.Completed})
			case 3:
				tb.take(event.Event{Type: event.Error, Task: id, Time: clitest.Noon, Status: task.Failed, Problem: event.Problem{Message: strings.Repeat("世 long ", 20)}})
				failures++
			}
		}
		width, height := rapid.IntRange(1, 200).Draw(t, "width"), rapid.IntRange(1, 50).Draw(t, "height")
		lines := tb.lines(width, height, clitest.Noon.Add(time.Hour), true)
		require.LessOrEqual(t, len(lines), max(1, height-1), "the cursor needs a line of its own")
		shown := 0
		for _, l := range lines {
			require.Less(t, terminal.Width(l.Text), max(2, width), "a full line would break")
			if strings.HasPrefix(l.Text, "running") {
				shown++
			}
		}
		if width > 20 {
			require.Equal(t, min(running, max(0, height-2)), shown, "what runs is shown first")
		}
		require.Len(t, tb.lines(width, 0, clitest.Noon, false), n+1, "at the end every task is there")
	})
}

func TestTableCountsHiddenRows(t *testing.T) {
	t.Parallel()
	lines := texts(newTracker(planOf(10), clitest.Noon, interrupted).lines(80, 6, clitest.Noon, false))
	require.Len(t, lines, 5)
	require.Equal(t, "0 of 10 tasks completed, 0s, 6 rows not shown", lines[4])
}

func TestTableOfAGoalGrowsDownwards(t *testing.T) {
	t.Parallel()
	tb := newTracker(nil, clitest.Noon, interrupted)
	at := func(s int) time.Time { return clitest.Noon.Add(time.Duration(s) * time.Second) }
	require.Equal(t, []string{"planning, 0s"}, texts(tb.lines(80, 0, clitest.Noon, false)))
	var before []string
	for i, e := range goalEvents() {
		tb.take(e)
		lines := texts(tb.lines(80, 0, e.Time, false))
		require.GreaterOrEqual(t, len(lines), len(before))
		for k, line := range before[:max(0, len(before)-1)] {
			title := func(s string) string { return strings.Fields(s[9:])[0] }
			require.Equal(t, title(line), title(lines[k]), "a row stays where it is")
		}
		before = lines
		switch i {
		case 1:
			require.Equal(t, []string{"running   plan  coordinator  0s", "planning, 0s"}, lines)
		case 4:
			require.Equal(t, "running   repair  coordinator  0s  retry in 1.0s: server error (500)", lines[1])
		case 9:
			require.Equal(t, `running   Find\u202e  finder       0s  1 message`, lines[2])
		}
	}
	require.Equal(t, []string{
		"completed plan        coordinator  1.0s",
		"completed repair      coordinator  1.0s",
		`completed Find\u202e  finder       2.0s  1 message  1 handoff sent`,
		"failed    Write       writer       token budget exceeded",
		"completed digest 1    coordinator  1.0s",
		`failed    digest 2    coordinator  cut\x1b[2J`,
		"1 of 2 tasks completed, 1 failed, no answer, token budget spent, 9s, 40 tokens in, 4 out",
	}, texts(tb.lines(90, 0, at(9), false)))

	tb = newTracker(nil, clitest.Noon, interrupted)
	for _, e := range goalEvents()[:3] {
		tb.take(e)
	}
	tb.take(event.Event{Type: event.RunComplete, Time: at(2)})
	require.Equal(t, "no plan, 2s, 10 tokens in, 1 out", texts(tb.lines(80, 0, at(2), false))[1])
}

func TestTableMarksPartialNumbers(t *testing.T) {
	t.Parallel()
	tb := newTracker(planOf(1), clitest.Noon, interrupted)
	tb.take(event.Event{Type: event.TaskComplete, Task: "0", Time: clitest.Noon, Status: task.Completed, Work: event.Work{Input: 256, Output: 256, Partial: true}})
	require.Equal(t, "1 of 1 task completed, 0s, 256 tokens in, 256 out, partial", texts(tb.lines(100, 0, clitest.Noon, false))[1])
}
