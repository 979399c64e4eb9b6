package progress

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/clitest"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/task"
)

// The progress of a plan with a loop and a list counts and shows what runs: a loop of at most 50
// rounds that ends after one, and a list of two items.
func TestInstancesThatDoNotRunAreNotShown(t *testing.T) {
	t.Parallel()
	plan := &engine.Plan{}
	plan.Tasks = []engine.PlannedTask{
		{ID: "w50", Title: "Write", Assignee: "a", Rounds: 50},
		{ID: "d", Title: "Draft", Assignee: "a", Rounds: 50, Loop: true},
		{ID: "s90", Title: "Search", Assignee: "a", Rounds: 90},
		{ID: "r", Title: "Report", Assignee: "a"},
	}
	at := clitest.Noon
	var events []event.Event
	runs := func(id, title string) {
		at = at.Add(time.Second)
		events = append(events, event.Event{Type: event.TaskStart, Task: task.ID(id), Title: title, Agent: "a", Attempt: 1, Time: at})
		events = append(events, event.Event{Type: event.TaskComplete, Task: task.ID(id), Title: title, Agent: "a", Status: task.Completed, Time: at, Work: event.Work{Duration: time.Second}})
	}
	leftOut := func(id, title, root string) {
		e := event.Event{Type: event.TaskNotNeeded, Task: task.ID(id), Title: title, Agent: "a", Status: task.NotNeeded, Time: at}
		if e.Message = engine.WhyLeftOut; root != "" {
			e.Root, e.Message = task.ID(root), "x"
		}
		events = append(events, e)
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
	require.Equal(t, 6, strings.Count(out.String(), "\n"), out.String())
	require.Equal(t, []string{
		"completed Write#1    a  1.0s",
		"waiting   Draft      a",
		"completed Search[1]  a  1.0s",
		"completed Search[2]  a  1.0s",
		"waiting   Report     a",
		"3 of 5 tasks completed, 3s",
	}, texts(table.lines(80, 0, at, false)))
}
