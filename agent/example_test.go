package agent_test

import (
	"context"
	"fmt"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
)

// An agent calls a model. A team gives it prompts.
func ExampleNew() {
	model := llm.ModelFunc(func(_ context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: fmt.Sprintf("written with temperature %v", *req.Temperature)}, nil
	})
	cold := 0.0
	writer := agent.New(model, agent.Options{Settings: llm.Settings{Temperature: &cold, MaxTokens: 500}})
	fmt.Println(runOne(writer))
	// Output: written with temperature 0
}

// An agent written in Go returns what it computes. Model calls that it makes through
// Metered count against the budgets of the run.
func ExampleFunc() {
	model := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: "four"}, nil
	})
	calculator := agent.Func(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
		res, err := agent.Metered(ctx, model).Call(ctx, llm.Request{Messages: []llm.Message{{Role: llm.User, Text: p.Text()}}}, nil)
		return agent.Reply{Text: "It is " + res.Text + "."}, err
	})
	fmt.Println(runOne(calculator))
	// Output: It is four.
}

// runOne runs one task and returns its result.
func runOne(a agent.Agent) string {
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "worker", Agent: a}}})
	if err != nil {
		panic(err)
	}
	res, err := tm.RunTasks(context.Background(), []task.Spec{{Title: "Work", Description: "Two and two?", Assignee: "worker"}}, nil)
	if err != nil {
		panic(err)
	}
	return res.Tasks[0].Result
}
