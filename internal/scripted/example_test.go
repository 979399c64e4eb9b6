package scripted_test

import (
	"context"
	"fmt"
	"os"

	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
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

func ExampleRecorder() {
	var recorder scripted.Recorder
	real := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: "{{x}} is 4.\nI am sure.", Usage: llm.Usage{InputTokens: 9, OutputTokens: 8}}, nil
	})
	m := llm.Retry(recorder.Model(real), llm.RetryOptions{}) // retries outside: failed attempts are noted too
	_, err := m.Call(context.Background(), llm.Request{
		Messages: []llm.Message{{Role: llm.User, Text: "# Task: Add\n\nTwo and two."}},
	}, nil)
	if err != nil {
		panic(err)
	}
	_, err = recorder.WriteTo(os.Stdout)
	fmt.Println(err)
	// Output:
	// # Recorded by runteam: what models and people answered, unabridged. As sensitive as the run.
	// replies:
	//   - task: "Add"
	//     usage: {input: 9, output: 8}
	//     text: |-
	//       {{"{{"}}x}} is 4.
	//       I am sure.
	// <nil>
}
