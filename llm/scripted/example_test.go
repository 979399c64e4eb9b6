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

func ExampleParse() {
	_, err := scripted.Parse("script.yaml", []byte("replies:\n  - txt: hello\n"))
	fmt.Println(err)
	// Output:
	// script.yaml:2:5: reply: unknown key "txt"; known are body, coordinator, cut, delay, part, retryAfter, status, system, task, text, times, usage
	//    1 | replies:
	// >  2 |   - txt: hello
	//            ^
}
