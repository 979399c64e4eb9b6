package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
)

// A model of any OpenAI-compatible endpoint; here a test server.
func Example() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"choices": [{"message": {"content": "Four."}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 9, "completion_tokens": 2}}`)
	}))
	defer server.Close()
	model, err := openai.New(openai.Config{Model: "llama3.2", BaseURL: server.URL + "/v1"})
	if err != nil {
		panic(err)
	}
	defer model.Close()
	res, err := model.Call(context.Background(), llm.Request{
		System:   "You answer in one word.",
		Messages: []llm.Message{{Role: llm.User, Text: "What is two and two?"}},
		Settings: llm.Settings{MaxTokens: 100},
	}, nil)
	fmt.Println(res.Text, res.Usage.InputTokens, res.Usage.OutputTokens, err)
	// Output: Four. 9 2 <nil>
}

// An error says what went wrong, and its kind tells what to do.
func ExampleModel_Call_error() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "20")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer server.Close()
	model, err := openai.New(openai.Config{Model: "m", BaseURL: server.URL + "/v1"})
	if err != nil {
		panic(err)
	}
	defer model.Close()
	_, err = model.Call(context.Background(), llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "Hello"}}}, nil)
	if failed, ok := err.(*llm.Error); ok {
		fmt.Println(failed.Kind, failed.Status, failed.RetryAfter, failed.Retryable())
	}
	// Output: rate limited 429 20s true
}
