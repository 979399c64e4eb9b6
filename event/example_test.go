package event_test

import (
	"context"
	"fmt"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// A subscriber reads of each event the fields that its type has.
func Example() {
	answers := team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "42"}, nil
	})
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "analyst", Agent: answers}}})
	if err != nil {
		panic(err)
	}
	watch := func(e event.Event) {
		switch e.Type {
		case event.TaskStart:
			fmt.Printf("%d: %s starts %q\n", e.Seq, e.Agent, e.Title)
		case event.TaskComplete:
			fmt.Printf("%d: %q is %s: %d bytes\n", e.Seq, e.Title, e.Status, e.Bytes)
		case event.RunComplete:
			fmt.Printf("%d: the run ends: %s\n", e.Seq, e.Code)
		}
	}
	tasks := []task.Spec{{Title: "Count", Assignee: "analyst", Description: "Count the rows."}}
	_, err = tm.RunTasks(context.Background(), tasks, &team.RunOptions{Subscribers: []func(event.Event){watch}})
	fmt.Println(err)
	// Output:
	// 3: analyst starts "Count"
	// 7: "Count" is completed: 2 bytes
	// 9: the run ends: ok
	// <nil>
}
