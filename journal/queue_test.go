package journal_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// One process submits a run, and a worker takes it. With a journal in PostgreSQL, they can be on different hosts.
func ExampleJournal_Claim() {
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
	ctx := context.Background()

	s := journal.Submission{Team: "meter", Version: "1", By: "ann", Request: "june", Inputs: []journal.Input{{Name: "reading", Text: "4,711 kWh"}}}
	run, added, err := j.Submit(ctx, s)
	fmt.Println(added, err)
	again, added, err := j.Submit(ctx, s)
	fmt.Println(again == run, added, err)

	c, err := j.Claim(ctx, journal.Worker{Teams: []journal.WorkerTeam{{Name: "meter", Version: "1"}}})
	fmt.Println(c.Run == run, c.By, err)
	reads := team.AgentFunc(func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "It says 4,711 kWh."}, nil
	})
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "reader", Agent: reads}}})
	if err != nil {
		panic(err)
	}
	tasks := []task.Spec{{Title: "Read", Assignee: "reader", Description: "Read the meter.", Uses: []task.Use{{Name: "reading"}}}}
	var inputs []team.Input
	for _, in := range c.Inputs {
		inputs = append(inputs, team.Input{Name: in.Name, Text: in.Text, Classification: in.Label})
	}
	res, err := tm.Resume(ctx, c.Run, &team.RunOptions{Tasks: tasks, Inputs: inputs, Journal: c})
	fmt.Println(res.Status, res.Output, err)
	// Output:
	// true <nil>
	// true false <nil>
	// true ann <nil>
	// ok It says 4,711 kWh. <nil>
}
