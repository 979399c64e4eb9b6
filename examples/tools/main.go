// Command tools runs an agent that calls tools: a Go function, and tools for files.
//
// It needs no key and no network: a function plays the model. To ask a real one, put
// openai.FromEnv("gpt-4o-mini") in its place.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
	"github.com/runteam/runteam/tool/builtin"
)

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
	weather, err := tool.New("weather", "Returns the weather in a city.", forecast, tool.Options{Effect: tool.None})
	if err != nil {
		return err
	}
	files, err := builtin.Files("readwrite", tool.Options{Accepts: label.Internal})
	if err != nil {
		return err
	}
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "planner", Agent: agent.New(model(out), agent.Options{}), Tools: append(files, weather)},
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

// model returns a model that asks for the weather, takes a note of it, and answers. It
// prints the results of its tool calls.
func model(out io.Writer) llm.Model {
	turns := [][]llm.ToolCall{
		{{Name: "weather", Arguments: `{"city": "Lisbon"}`}, {Name: "weather", Arguments: `{"city": "Bergen"}`}},
		{{Name: "weather", Arguments: `{"city": "Oslo"}`}, {Name: "file_write", Arguments: `{"path": "notes.txt", "content": "Lisbon 24, Oslo 9\n"}`}},
		{{Name: "file_read", Arguments: `{"path": "notes.txt"}`}},
	}
	turn := 0
	return llm.ModelFunc(func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		for _, m := range r.Messages[max(0, len(r.Messages)-2):] {
			if m.Role == llm.ToolResult {
				lines := strings.Split(m.Text, "\n")
				fmt.Fprintln(out, " ", strings.Join(lines[1:len(lines)-1], " "))
			}
		}
		if turn == len(turns) {
			return llm.Response{Text: "Lisbon is warmer, by 15 degrees."}, nil
		}
		turn++
		return llm.Response{ToolCalls: turns[turn-1]}, nil
	})
}
