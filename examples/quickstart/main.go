// Quickstart is the program of the README: two agents, two tasks, one input.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/llm/openai"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

func main() {
	model, err := openai.FromEnv("gpt-4o-mini") // OPENAI_API_KEY, OPENAI_BASE_URL
	if err != nil {
		log.Fatal(err)
	}
	worker := agent.New(model, agent.Options{})
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "analyst", SystemPrompt: "You find facts.", Agent: worker},
		{Name: "writer", SystemPrompt: "You write plainly.", Agent: worker},
	}})
	if err != nil {
		log.Fatal(err)
	}
	res, err := tm.RunTasks(context.Background(), []task.Spec{
		{Title: "Find", Assignee: "analyst", Description: "List what happened, and when.", Uses: []task.Use{{Name: "log"}}},
		{Title: "Tell", Assignee: "writer", Description: "Tell it in two sentences.", DependsOn: task.On("Find")},
	}, &team.RunOptions{Inputs: []team.Input{{Name: "log", Text: "09:12 pump stopped. 09:40 pump replaced."}}})
	if err != nil {
		log.Fatal(err) // also if a task failed: err is then a *team.RunError
	}
	fmt.Println(res.Output) // the writer saw the analyst's result, and never the log
}
