package scripted_test

import (
	"context"
	"fmt"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/scripted"
)

func Example() {
	script, err := scripted.Parse("script.yaml", []byte(`
replies:
  - text: "You said: {{ match \"name is (\\\\w+)\" .Prompt }}."
`))
	if err != nil {
		panic(err)
	}
	server, err := scripted.Start(script)
	if err != nil {
		panic(err)
	}
	defer server.Close()
	model, err := server.Model("any")
	if err != nil {
		panic(err)
	}
	res, err := model.Call(context.Background(), llm.Request{
		Messages: []llm.Message{{Role: llm.User, Text: "My name is Ann"}},
	}, nil)
	fmt.Println(res.Text, err)
	fmt.Println(len(server.Requests()), "request")
	// Output:
	// You said: Ann. <nil>
	// 1 request
}

// A team makes the calls and sends the results. Here the caller does.
func Example_toolCalls() {
	script, err := scripted.Parse("script.yaml", []byte(`
replies:
  - toolCalls: [{name: weather, arguments: {city: Oslo}}]
  - text: 'In Oslo: {{ toolResult "weather" }}'
`))
	if err != nil {
		panic(err)
	}
	server, err := scripted.Start(script)
	if err != nil {
		panic(err)
	}
	defer server.Close()
	model, err := server.Model("any")
	if err != nil {
		panic(err)
	}
	req := llm.Request{
		Messages: []llm.Message{{Role: llm.User, Text: "How is the weather in Oslo?"}},
		Tools:    []llm.Tool{{Name: "weather", Parameters: []byte(`{"type": "object"}`)}},
	}
	res, err := model.Call(context.Background(), req, nil)
	if err != nil {
		panic(err)
	}
	call := res.ToolCalls[0]
	fmt.Println(call.Name, call.Arguments)
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.Assistant, ToolCalls: res.ToolCalls},
		llm.Message{Role: llm.ToolResult, ToolCallID: call.ID, Text: "9 degrees"})
	res, err = model.Call(context.Background(), req, nil)
	fmt.Println(res.Text, err)
	fmt.Println(server.Requests()[1].Messages[2].Text)
	// Output:
	// weather {"city":"Oslo"}
	// In Oslo: 9 degrees <nil>
	// 9 degrees
}

func ExampleParse() {
	_, err := scripted.Parse("script.yaml", []byte("replies:\n  - txt: hello\n"))
	fmt.Println(err)
	// Output:
	// script.yaml:2:5: reply: unknown key "txt"; known are body, coordinator, cut, delay, ended, goal, messages, part, retryAfter, status, system, task, text, times, toolCalls, turn, usage
	//    1 | replies:
	// >  2 |   - txt: hello
	//            ^
}
