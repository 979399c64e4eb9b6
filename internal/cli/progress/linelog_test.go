package progress

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

func newTestLog(plan *engine.Plan, out io.Writer, start time.Time) *lineLog {
	return &lineLog{tracker: newTracker(plan, start, interrupted), w: out, last: start}
}

// A long message is printed once: many calls may fail for the same reason.
func TestPlainPrintsALongMessageOnce(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newTestLog(planOf(2), &out, clitest.Noon)
	long := event.Problem{Message: "down: " + strings.Repeat("cannot be reached ", 5), Wait: time.Second}
	for _, e := range []event.Event{
		{Type: event.Warning, Task: "0", Title: "Task 0", Agent: "a", Time: clitest.Noon, Attempt: 1, Problem: long},
		{Type: event.Warning, Task: "0", Title: "Task 0", Agent: "a", Time: clitest.Noon, Attempt: 1, Problem: long},
		{Type: event.Error, Task: "0", Title: "Task 0", Agent: "a", Time: clitest.Noon, Status: task.Failed, Problem: long},
		{Type: event.Error, Task: "1", Title: "Task 1", Agent: "a", Time: clitest.Noon, Status: task.Failed, Problem: event.Problem{Message: "no"}},
		{Type: event.Error, Task: "2", Title: "Task 2", Agent: "a", Time: clitest.Noon, Status: task.Failed, Problem: event.Problem{Message: "no"}},
	} {
		p.take(e)
	}
	require.Equal(t, 1, strings.Count(out.String(), "down: "))
	require.Contains(t, out.String(), "retry     Task 0 (a): as above; retrying the call in 1.0s\n")
	require.Contains(t, out.String(), "failed    Task 0 (a): as above\n")
	require.Contains(t, out.String(), "failed    Task 2 (a): no\n")
}

func TestPlainPrintsALinePerEvent(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	plan := planOf(3)
	plan.Warnings = []task.Problem{{Message: "was said before the run, at its place"}}
	p := newTestLog(plan, &out, clitest.Noon)
	at := func(ms int) time.Time { return clitest.Noon.Add(time.Duration(ms) * time.Millisecond) }
	for _, e := range []event.Event{
		{Type: event.RunStart, Time: clitest.Noon, Tasks: 3},
		{Type: event.Warning, Time: clitest.Noon, Problem: event.Problem{Message: "was said before the run, at its place"}},
		{Type: event.Warning, Time: clitest.Noon, Problem: event.Problem{Message: "a message was not delivered"}},
		{Type: event.Reveal, Time: clitest.Noon, Problem: event.Problem{Message: "the caller reads up to secret"}},
		{Type: event.TaskStart, Task: "0", Title: "Task 0", Agent: "a", Time: at(100), Attempt: 1},
		{Type: event.AgentStart, Task: "0", Title: "Task 0", Agent: "a", Time: at(100), Attempt: 1},
		{Type: event.TaskRetry, Task: "0", Title: "Task 0", Agent: "a", Time: at(1300), Attempt: 1, Problem: event.Problem{Message: "server error (500)\nand more", Wait: 1500 * time.Millisecond}},
		{Type: event.TaskComplete, Task: "0", Title: "Task 0", Agent: "a", Time: at(62_000), Status: task.Completed, Work: event.Work{Duration: 61_900 * time.Millisecond, Input: 1000, Output: 2}},
		{Type: event.Error, Task: "1", Title: "Task 1", Agent: "b", Time: at(62_000), Status: task.Failed, Problem: event.Problem{Message: "\u202eno"}},
		{Type: event.Error, Task: "3", Title: "Task 3", Agent: "b", Time: at(62_000), Status: task.Failed, Problem: event.Problem{Root: "1", Because: "Task 1", Message: "x"}},
		{Type: event.Warning, Task: "4", Title: "Market", Agent: "librarian", Time: at(62_000), Attempt: 1, Problem: event.Problem{Message: `task "Market" got no reply from "critic"`}},
		{Type: event.Warning, Task: "4", Title: "Market", Agent: "librarian", Time: at(62_000), Attempt: 1, Problem: event.Problem{Message: "server error (500)", Wait: 1200 * time.Millisecond}},
		{Type: event.TaskStart, Task: "5", Title: "Task 5", Agent: "a", Time: at(61_000), Attempt: 1},
		{Type: event.TaskComplete, Run: "r1", Task: "5", Title: "Task 5", Agent: "a", Time: at(62_000), Status: task.Completed, Work: event.Work{Reused: "r1", Duration: time.Hour, Input: 7}},
		{Type: event.TaskComplete, Run: "r1", Task: "6", Title: "Task 6", Agent: "a", Time: at(62_000), Status: task.Completed, Work: event.Work{Reused: "0195c3a1-7777"}},
		{Type: event.TaskSkipped, Task: "2", Title: "Task 2", Agent: "b", Time: at(62_100), Status: task.Skipped, Problem: event.Problem{Message: "interrupted"}},
	} {
		p.take(e)
	}
	require.Equal(t, strings.TrimPrefix(`
   0.0s  warning   a message was not delivered
   0.0s  reveal    the caller reads up to secret
   0.1s  start     Task 0 (a)
   1.3s  retry     Task 0 (a): attempt 1 failed: server error (500)\nand more; next attempt in 1.5s
  1m02s  completed Task 0 (a) in 1m01s, 1,000 tokens in, 2 out
  1m02s  failed    Task 1 (b): \u202eno
  1m02s  skipped   Task 3 (b): because "Task 1" failed
  1m02s  warning   Market (librarian): task "Market" got no reply from "critic"
  1m02s  retry     Market (librarian): server error (500); retrying the call in 1.2s
  1m02s  cached    Task 5 (a)
  1m02s  cached    Task 6 (a), reused from 0195c3a1
  1m02s  skipped   Task 2 (b): interrupted
`, "\n"), out.String())
}

// TestPlainLimitsLinesAboutRateLimits checks that short pauses, which follow one
// another, do not fill the screen.
func TestPlainLimitsLinesAboutRateLimits(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newTestLog(planOf(1), &out, clitest.Noon)
	for _, e := range []struct{ at, wait int }{{1, 2}, {3, 4}, {7, 8}, {15, 16}, {31, 2}, {40, 2}, {45, 2}, {46, 60}, {75, 2}} {
		p.take(event.Event{
			Type:    event.Limited,
			Task:    "0",
			Title:   "Task 0",
			Time:    clitest.Noon.Add(time.Duration(e.at) * time.Second),
			Problem: event.Problem{Wait: time.Duration(e.wait) * time.Second, Message: "http://a/v1: its rate limit is reached; calls wait"},
		})
	}
	require.Equal(t, strings.TrimPrefix(`
   1.0s  limited   http://a/v1: its rate limit is reached; calls wait for 2.0s
  15.0s  limited   http://a/v1: its rate limit is reached; calls wait for 16.0s
  45.0s  limited   http://a/v1: its rate limit is reached; calls wait for 2.0s
  46.0s  limited   http://a/v1: its rate limit is reached; calls wait for 1m00s
`, "\n"), out.String())
}

func TestPlainPrintsHeartbeats(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newTestLog(planOf(2), &out, time.Now())
		stop := every(time.Second, func() { p.beat(time.Now()) })
		p.take(event.Event{Type: event.TaskStart, Title: "Slow", Agent: "a", Time: time.Now(), Attempt: 1})
		p.take(event.Event{Type: event.AgentStart, Title: "Slow", Agent: "a", Time: time.Now(), Attempt: 1})
		time.Sleep(95 * time.Second)
		stop()
		require.Equal(t, strings.TrimPrefix(`
   0.0s  start     Slow (a)
  30.0s  working   0 of 2 tasks completed; running: Slow
  1m00s  working   0 of 2 tasks completed; running: Slow
  1m30s  working   0 of 2 tasks completed; running: Slow
`, "\n"), out.String())
	})
}

// goalEvents are those of a goal whose synthesis is done by parts.
func goalEvents() []event.Event {
	at := func(s int) time.Time { return clitest.Noon.Add(time.Duration(s) * time.Second) }
	step := func(kind event.Type, title string, n, s int) event.Event {
		return event.Event{Type: kind, Task: task.ID("coordinator/" + title), Title: title, Agent: "coordinator", Attempt: n, Time: at(s), Status: task.Completed, Work: event.Work{Duration: time.Second, Input: 10, Output: 1}}
	}
	failed := step(event.AgentComplete, "digest", 2, 9)
	failed.Status, failed.Message = task.Failed, "cut\x1b[2J"
	return []event.Event{
		{Type: event.RunStart, Time: clitest.Noon},
		step(event.AgentStart, "plan", 1, 0), step(event.AgentComplete, "plan", 1, 1),
		step(event.AgentStart, "repair", 1, 1),
		{Type: event.Warning, Task: "coordinator/repair", Title: "repair", Agent: "coordinator", Attempt: 1, Time: at(1), Problem: event.Problem{Message: "server error (500)", Wait: time.Second}},
		step(event.AgentComplete, "repair", 1, 2),
		{Type: event.PlanReady, Time: at(2), Tasks: 2, Plan: []event.Planned{{Task: "0", Title: "Find\u202e", Agent: "finder"}, {Task: "1", Title: "Write", Agent: "writer", DependsOn: []task.ID{"0"}}}},
		{Type: event.TaskReady, Time: at(2), Task: "0", Title: "Find\u202e", Agent: "finder"},
		{Type: event.TaskStart, Time: at(2), Task: "0", Title: "Find\u202e", Agent: "finder", Attempt: 1},
		{Type: event.Message, Time: at(2), Task: "0", Title: "Find\u202e", Agent: "finder", Attempt: 1, From: "user"},
		{Type: event.MessageSent, Time: at(3), Task: "0", Title: "Find\u202e", Agent: "finder", Attempt: 1, To: "writer"},
		{Type: event.TaskComplete, Time: at(4), Task: "0", Title: "Find\u202e", Agent: "finder", Status: task.Completed, Work: event.Work{Duration: 2 * time.Second}},
		{Type: event.TaskStart, Time: at(4), Task: "1", Title: "Write", Agent: "writer", Attempt: 1},
		{Type: event.Budget, Time: at(5), Task: "1", Title: "Write", Agent: "writer", Attempt: 1, Problem: event.Problem{Code: codes.Budget, Message: "token budget exceeded"}},
		{Type: event.Error, Time: at(5), Task: "1", Title: "Write", Agent: "writer", Attempt: 1, Status: task.Failed, Problem: event.Problem{Message: "token budget exceeded"}},
		{Type: event.AllComplete, Time: at(5)},
		step(event.AgentStart, "digest", 1, 5), step(event.AgentStart, "digest", 2, 5), step(event.AgentComplete, "digest", 1, 6), failed,
		{Type: event.RunComplete, Time: at(9)},
	}
}

func TestPlainOfAGoal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newTestLog(nil, &out, clitest.Noon)
	for i, e := range goalEvents() {
		p.take(e)
		if i == 1 {
			p.beat(clitest.Noon.Add(time.Minute))
		}
	}
	require.Equal(t, strings.TrimPrefix(`
   0.0s  start     plan (coordinator)
  1m00s  working   planning; running: plan
   1.0s  completed plan (coordinator) in 1.0s, 10 tokens in, 1 out
   1.0s  start     repair (coordinator)
   1.0s  retry     repair (coordinator): server error (500); retrying the call in 1.0s
   2.0s  completed repair (coordinator) in 1.0s, 10 tokens in, 1 out
   2.0s  planned   2 tasks
                   Find\u202e (finder)
                   Write (writer) after Find\u202e
   2.0s  start     Find\u202e (finder)
   2.0s  message   Find\u202e (finder): from user
   3.0s  sent      Find\u202e (finder): to writer
   4.0s  completed Find\u202e (finder) in 2.0s
   5.0s  start     Write (writer)
   5.0s  budget    Write (writer): token budget exceeded
   5.0s  failed    Write (writer): token budget exceeded
   5.0s  start     digest 1 (coordinator)
   5.0s  start     digest 2 (coordinator)
   6.0s  completed digest 1 (coordinator) in 1.0s, 10 tokens in, 1 out
   9.0s  failed    digest 2 (coordinator): cut\x1b[2J
`, "\n"), out.String())
	require.Empty(t, p.running())
}

func TestPlainListsOnlyTheStartOfALongPlan(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := newTestLog(nil, &out, clitest.Noon)
	plan := make([]event.Planned, 100)
	for i := range plan {
		plan[i] = event.Planned{Task: task.ID(fmt.Sprint(i)), Title: fmt.Sprintf("Task %d", i), Agent: "a"}
	}
	p.take(event.Event{Type: event.PlanReady, Time: clitest.Noon, Plan: plan})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 1+maxPlanned+1)
	require.Equal(t, "0.0s  planned   100 tasks", lines[0])
	require.Equal(t, "… and 80 more", strings.TrimSpace(lines[maxPlanned+1]))
}

// Commands to the run have a line each, the table says that the run is paused, and a task that runs
// again counts once.
func TestProgressOfASteeredRun(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	goesOn := func() error { return nil }
	log, table := &lineLog{tracker: newTracker(planOf(2), clitest.Noon, goesOn), w: &out, last: clitest.Noon}, newTracker(planOf(2), clitest.Noon, goesOn)
	footer := func() string {
		lines := texts(table.lines(80, 0, clitest.Noon, false))
		return lines[len(lines)-1]
	}
	take := func(e event.Event) {
		e.Time = clitest.Noon
		log.take(e)
		table.take(e)
	}
	command := func(kind, task, why string) {
		e := event.Event{Type: event.Steered, From: "ann", Problem: event.Problem{Code: kind, Message: why}}
		if task != "" {
			e.Task, e.Title, e.Agent = "0", task, "a"
		}
		take(e)
	}
	task0 := event.Event{Type: event.TaskStart, Task: "0", Title: "Task 0", Agent: "a", Attempt: 1}
	take(task0)
	command("pause", "", "lunch\x1b[2J")
	require.Equal(t, "0 of 2 tasks completed, paused, 0s", footer())
	command("resume", "", "")
	require.Equal(t, "0 of 2 tasks completed, 0s", footer())
	command("interrupt", "Task 0", "")
	take(event.Event{Type: event.Steered, Agent: "writer", From: "bob", Problem: event.Problem{Code: "message"}})
	task0.Type, task0.Status, task0.Message = event.Error, task.Failed, "torn"
	take(task0)
	require.Equal(t, "0 of 2 tasks completed, 1 failed, 0s", footer())
	command("rerun", "Task 0", "")
	take(event.Event{Type: event.TaskReady, Task: "0", Title: "Task 0", Agent: "a"})
	require.Equal(t, "0 of 2 tasks completed, 0s", footer())
	task0.Type, task0.Status, task0.Message = event.TaskSkipped, task.Skipped, "Skipped: cancelled by the user."
	task0.Code = codes.Canceled
	take(task0)
	command("cancel", "", "done")
	take(event.Event{Type: event.TaskSkipped, Task: "1", Title: "Task 1", Agent: "b", Status: task.Skipped, Problem: event.Problem{Message: "Skipped: run aborted."}})
	require.Equal(t, strings.TrimPrefix(`
   0.0s  steered   paused by ann: lunch\x1b[2J
   0.0s  steered   continued by ann
   0.0s  start     Task 0 (a)
   0.0s  steered   ann interrupted Task 0
   0.0s  steered   bob sent a message to writer
   0.0s  failed    Task 0 (a): torn
   0.0s  steered   ann had Task 0 run again
   0.0s  cancelled Task 0 (a): cancelled by the user
   0.0s  steered   cancelled by ann: done
   0.0s  skipped   Task 1 (b): cancelled by ann: done
`, "\n"), out.String())
}
