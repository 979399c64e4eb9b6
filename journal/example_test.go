package journal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A run that was interrupted is resumed: what had completed does not run again.
func Example() {
	dir, err := os.MkdirTemp("", "journal")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	j, err := journal.Open(filepath.Join(dir, "runs.db"), journal.Options{})
	if err != nil {
		panic(err)
	}
	defer j.Close()

	ctx, interrupt := context.WithCancel(context.Background())
	reads := team.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		fmt.Println("called:", p.Receipt().Agent)
		return agent.Reply{Text: "4,711 kWh"}, nil
	})
	compares := team.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		fmt.Println("called:", p.Receipt().Agent)
		interrupt() // as if the process were stopped here, the first time
		return agent.Reply{Text: "less than last year"}, ctx.Err()
	})
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "reader", Agent: reads, Backend: team.Backend{Version: "1"}}, {Name: "analyst", Agent: compares, Backend: team.Backend{Version: "1"}}}})
	if err != nil {
		panic(err)
	}
	tasks := []task.Spec{
		{Title: "Read", Assignee: "reader", Description: "Read the meter."},
		{Title: "Compare", Assignee: "analyst", Description: "Compare it.", DependsOn: task.On("Read")},
	}

	res, err := tm.RunTasks(ctx, tasks, &team.RunOptions{RunID: "meter", Journal: j})
	fmt.Println(res.Status, errors.Is(err, context.Canceled))
	res, err = tm.Resume(context.Background(), "meter", &team.RunOptions{Tasks: tasks, Journal: j})
	fmt.Println(res.Status, res.Output, err)
	runs, err := j.Runs(context.Background())
	fmt.Println(runs[0].ID, runs[0].Status, err)
	// Output:
	// called: reader
	// called: analyst
	// cancelled true
	// called: analyst
	// ok less than last year <nil>
	// meter ok <nil>
}
