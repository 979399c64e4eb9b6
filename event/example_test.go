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

// A subscriber switches on the type of the data.
func Example() {
	answers := team.AgentFunc(func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: "42"}, nil
	})
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "analyst", Agent: answers}}})
	if err != nil {
		panic(err)
	}
	show := func(e event.Event) {
		switch data := e.Data.(type) {
		case event.TaskStart:
			fmt.Printf("%d: %s starts %q\n", e.Seq, e.Agent, e.Title)
		case event.Handoff:
			fmt.Printf("%d: %s from %s is %v\n", e.Seq, data.Kind, data.From, data.Verdict)
		case event.TaskComplete:
			fmt.Printf("%d: %q has a result of %d bytes\n", e.Seq, e.Title, data.Bytes)
		case event.RunComplete:
			fmt.Printf("%d: the run ends: %s\n", e.Seq, data.Status)
		}
	}
	tasks := []task.Spec{{Title: "Count", Assignee: "analyst", Description: "Count the rows."}}
	_, err = tm.RunTasks(context.Background(), tasks, &team.RunOptions{Subscribers: []func(event.Event){show}})
	fmt.Println(err)
	// Output:
	// 3: analyst starts "Count"
	// 5: dependency from analyst is passed
	// 7: "Count" has a result of 2 bytes
	// 9: the run ends: ok
	// <nil>
}
