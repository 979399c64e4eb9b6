package scripted_test

import (
	"context"
	"fmt"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
	"github.com/runteam/runteam/llm/scripted"
)

func Example() {
	srv, err := scripted.Start(&scripted.Script{Replies: []scripted.Reply{
		{Text: "You said: {{ match `name is (\\w+)` .Prompt }}."},
	}}, scripted.Options{})
	if err != nil {
		panic(err)
	}
	defer srv.Close()
	m, err := openai.New(openai.Config{Model: "any", BaseURL: srv.URL()})
	if err != nil {
		panic(err)
	}
	defer m.Close()
	res, err := llm.Retry(m, llm.RetryOptions{}).Call(context.Background(), llm.Request{
		Messages: []llm.Message{{Role: llm.User, Text: "My name is Ann"}},
	}, nil)
	fmt.Println(res.Text, err)
	// Output: You said: Ann. <nil>
}
