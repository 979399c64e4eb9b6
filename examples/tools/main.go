// Command tools runs an agent that calls tools: a Go function, and tools for files.
//
// It needs no key and no network: the model is a scripted endpoint in the same process. To ask
// a real one, put openai.FromEnv("gpt-4o-mini") in its place.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm/scripted"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

//go:embed script.yaml
var script []byte

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "tools:", err)
		os.Exit(1)
	}
}

type query struct {
	City string `json:"city" jsonschema:"name of the city"`
}

// forecast stands for a service.
func forecast(_ context.Context, q query) (string, error) {
	degrees := map[string]int{"Lisbon": 24, "Oslo": 9}
	d, ok := degrees[q.City]
	if !ok {
		return "", fmt.Errorf("no station in %q; the stations are Lisbon and Oslo", q.City)
	}
	return fmt.Sprintf("%s: %d °C. Questions to desk@example.org.", q.City, d), nil
}

// run plans a trip and writes the answer.
func run(ctx context.Context, out io.Writer) error {
	replies, err := scripted.Parse("script.yaml", script)
	if err != nil {
		return err
	}
	endpoint, err := scripted.Start(replies)
	if err != nil {
		return err
	}
	defer endpoint.Close()
	model, err := endpoint.Model("scripted")
	if err != nil {
		return err
	}
	weather, err := tool.New("weather", "Returns the weather in a city.", forecast, tool.Options{Effect: tool.None})
	if err != nil {
		return err
	}
	files, err := builtin.Files("readwrite", tool.Options{Accepts: label.Internal})
	if err != nil {
		return err
	}
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "planner", Agent: agent.New(model, agent.Options{}), Tools: append(files, weather)},
	}})
	if err != nil {
		return err
	}
	tasks := []task.Spec{{Title: "Choose a city", Assignee: "planner", Description: "Which is warmer, Lisbon or Oslo? Keep notes."}}
	res, err := tm.RunTasks(ctx, tasks, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, res.Output)
	return nil
}
