package progress

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// The progress of a plan with a loop and a list counts and shows what runs: a loop of at most 50
// rounds that ends after one, and a list of two items.
func TestInstancesThatDoNotRunAreNotShown(t *testing.T) {
	t.Parallel()
	plan := &engine.Plan{}
	plan.Tasks = []engine.PlannedTask{
		{ID: "w50", Title: "Write", Assignee: "a", Rounds: 50},
		{ID: "d", Title: "Draft", Assignee: "a", Rounds: 50},
		{ID: "s90", Title: "Search", Assignee: "a", Rounds: 90},
		{ID: "r", Title: "Report", Assignee: "a"},
	}
	plan.Tasks[1].Loop = true
	at := clitest.Noon
	var events []event.Event
	runs := func(id, title string) {
		at = at.Add(time.Second)
		events = append(events, event.Event{Type: event.TaskStart, Task: task.ID(id), Title: title, Agent: "a", Attempt: 1, Time: at})
		events = append(events, event.Event{Type: event.TaskComplete, Task: task.ID(id), Title: title, Agent: "a", Status: task.Completed, Time: at, Work: event.Work{Duration: time.Second}})
	}
	leftOut := func(id, title, root string) {
		events = append(events, event.Event{Type: event.TaskNotNeeded, Task: task.ID(id), Title: title, Agent: "a", Status: task.NotNeeded, Time: at, Problem: event.Problem{Root: task.ID(root), Code: codes.LeftOut}})
	}
	runs("s1", "Search[1]")
	runs("w1", "Write#1")
	for n := 2; n <= 50; n++ {
		leftOut(fmt.Sprint("w", n), fmt.Sprint("Write#", n), []string{"", "w2"}[min(n-2, 1)])
	}
	runs("s2", "Search[2]")
	for n := 3; n <= 90; n++ {
		leftOut(fmt.Sprint("s", n), fmt.Sprintf("Search[%d]", n), "")
	}
	var out bytes.Buffer
	log, table := newTestLog(plan, &out, clitest.Noon), newTracker(plan, clitest.Noon, interrupted)
	for _, e := range events {
		log.take(e)
		table.take(e)
	}
	require.Equal(t, 4, strings.Count(out.String(), "\n"), out.String())
	require.NotContains(t, out.String(), "start     Search", "an item has one line")
	require.Equal(t, []string{
		"completed Write#1    a  1.0s",
		"waiting   Draft      a",
		"completed Search ×2  a  2 completed",
		"waiting   Report     a",
		"3 of 5 tasks completed, 3s",
	}, texts(table.lines(80, 0, at, false)))
}

// TestTableFoldsAList checks that a list of many items has one row, which counts them, and that the
// first failures are named.
func TestTableFoldsAList(t *testing.T) {
	t.Parallel()
	plan := &engine.Plan{}
	plan.Tasks = []engine.PlannedTask{{ID: "m9", Title: "Mail", Assignee: "a", Rounds: 500, ForEach: "/people of List"}, {ID: "r", Title: "Report", Assignee: "b"}}
	table := newTracker(plan, clitest.Noon, interrupted)
	lines := func() []string { return texts(table.lines(80, 0, clitest.Noon, false)) }
	require.Equal(t, []string{"waiting   Mail ×≤500  a", "waiting   Report      b", "0 of 1 task completed, 0s"}, lines())
	mail := func(n int, kind event.Type, status task.Status) {
		table.take(event.Event{Type: kind, Task: task.ID(fmt.Sprint("m", n)), Title: fmt.Sprintf("Mail[%d]", n), Agent: "a", Status: status, Attempt: 1, Time: clitest.Noon, Problem: event.Problem{Message: "no such address"}})
	}
	for n := range 20 {
		mail(n+1, event.TaskStart, "")
	}
	for n := 200; n < 500; n++ {
		table.take(event.Event{Type: event.TaskNotNeeded, Task: task.ID(fmt.Sprint("m", n+1)), Title: fmt.Sprintf("Mail[%d]", n+1), Status: task.NotNeeded, Problem: event.Problem{Code: codes.LeftOut}})
	}
	for n := range 12 {
		mail(n+1, event.TaskComplete, task.Completed)
	}
	for n := 12; n < 17; n++ {
		mail(n+1, event.Error, task.Failed)
	}
	require.Equal(t, []string{
		"running   Mail ×200  a  12 completed, 3 running, 180 waiting, 5 failed",
		"failed    Mail[13]   a  no such address",
		"failed    Mail[14]   a  no such address",
		"failed    Mail[15]   a  no such address",
		"waiting   Report     b",
		"12 of 201 tasks completed, 5 failed, 0s",
	}, lines())
	require.Equal(t, []string{
		"running   Mail ×200  a  12 completed, 3 running, 180 waiting, 5 failed",
		"12 of 201 tasks completed, 5 failed, 0s, 4 rows not shown",
	}, texts(table.lines(80, 3, clitest.Noon, false)))
}

// TestTableShowsTheRound checks that a loop has one row for each of its tasks, and says which round
// runs; a list in it counts the items of that round.
func TestTableShowsTheRound(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{{Title: "Draft", Repeat: &task.Repeat{MaxRounds: 3, Until: task.Equals("Check", "/good", true), Output: "Check", Tasks: []task.Spec{
		{Title: "Check", Description: "Check.", Assignee: "a", OutputSchema: []byte(`{"type": "object", "properties": {"good": {"type": "boolean"}, "all": {"type": "array", "items": {"type": "string"}}}, "required": ["good", "all"]}`)},
		{Title: "Read", Description: "Read.", Assignee: "a", ForEach: &task.ForEach{Task: "Check", Path: "/all", MaxItems: 4}},
	}}}}
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "a", Agent: engine.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) { return agent.Reply{}, nil })}}})
	require.NoError(t, err)
	plan, err := tm.Plan(specs, nil)
	require.NoError(t, err)
	table := newTracker(plan, clitest.Noon, interrupted)
	lines := func() []string { return texts(table.lines(80, 0, clitest.Noon, false)) }
	require.Equal(t, []string{"waiting   Check ×≤3  a", "waiting   Read ×≤12  a", "waiting   Draft      a", "0 of 1 task completed, 0s"}, lines())
	ends := func(title string, status task.Status) {
		id := task.NewID(title)
		table.take(event.Event{Type: event.TaskStart, Task: id, Title: title, Agent: "a", Attempt: 1, Time: clitest.Noon})
		kind := event.TaskComplete
		if status == task.Failed {
			kind = event.Error
		}
		table.take(event.Event{Type: kind, Task: id, Title: title, Agent: "a", Status: status, Time: clitest.Noon, Work: event.Work{Duration: time.Second}, Problem: event.Problem{Message: "torn"}})
	}
	ends("Check#1", task.Completed)
	ends("Read#1[1]", task.Failed)
	ends("Read#1[2]", task.Completed)
	ends("Check#2", task.Completed)
	ends("Read#2[1]", task.Completed)
	require.Equal(t, []string{
		"completed Check#2    a  1.0s",
		"completed Read#2 ×1  a  1 completed",
		"failed    Read#1[1]  a  torn",
		"running   Draft      a  round 2 of at most 3",
		"4 of 6 tasks completed, 1 failed, 0s",
	}, lines())
}

// TestPlannedInstancesAreFolded checks that a plan of a coordinator is shown as it is written.
func TestPlannedInstancesAreFolded(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log, table := newTestLog(nil, &out, clitest.Noon), newTracker(nil, clitest.Noon, interrupted)
	planned := event.Event{Type: event.PlanReady, Time: clitest.Noon, Plan: []event.Planned{{Task: "l", Title: "List", Agent: "a"}}}
	for n := 1; n <= 30; n++ {
		planned.Plan = append(planned.Plan, event.Planned{Task: task.ID(fmt.Sprint("r", n)), Title: fmt.Sprintf("Read[%d]", n), Written: "Read", Agent: "b", DependsOn: []task.ID{"l", "l"}})
	}
	planned.Plan = append(planned.Plan, event.Planned{Task: "s", Title: "Part [2]", Agent: "a", DependsOn: []task.ID{"r1", "r2"}})
	step := event.Event{Type: event.AgentStart, Title: "plan", Agent: "coordinator", Attempt: 1, Time: clitest.Noon}
	for _, e := range []event.Event{step, planned} {
		log.take(e)
		table.take(e)
	}
	require.Contains(t, out.String(), strings.Join([]string{
		"planned   3 tasks that run at most 32 times",
		"                   List (a)",
		"                   Read ×≤30 (b) after List",
		"                   Part [2] (a) after Read",
	}, "\n")+"\n")
	require.Equal(t, []string{"running   plan       coordinator  0s", "waiting   List       a", "waiting   Read ×≤30  b", "waiting   Part [2]   a", "0 of 2 tasks completed, 0s"}, texts(table.lines(80, 0, clitest.Noon, false)))
}
