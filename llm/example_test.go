package llm_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/runteam/runteam/llm"
)

// say returns a model that always gives the same answer.
func say(text string) llm.Model {
	return llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: text, Usage: llm.Usage{InputTokens: 1_000, OutputTokens: 200}}, nil
	})
}

// A function is a model, which is enough for tests.
func ExampleModelFunc() {
	model := say("Four.")
	res, err := model.Call(context.Background(), llm.Request{
		Messages: []llm.Message{{Role: llm.User, Text: "What is two and two?"}},
	}, nil)
	fmt.Println(res.Text, err)
	// Output: Four. <nil>
}

// Retry makes a call again after failures that pass.
func ExampleRetry() {
	attempts := 0
	flaky := llm.ModelFunc(func(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
		if attempts++; attempts < 3 {
			return llm.Response{}, &llm.Error{Kind: "server error", Status: 503}
		}
		return say("Four.").Call(ctx, req, emit)
	})
	res, err := llm.Retry(flaky, llm.RetryOptions{Delay: time.Millisecond}).Call(context.Background(), llm.Request{}, nil)
	fmt.Println(res.Text, err, attempts)
	// Output: Four. <nil> 3
}

// Fallback calls the next model when an endpoint fails.
func ExampleFallback() {
	down := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{}, &llm.Error{Kind: "unreachable", Endpoint: "http://a.example/v1"}
	})
	res, err := llm.Fallback(down, say("Four.")).Call(context.Background(), llm.Request{}, nil)
	fmt.Println(res.Text, err)
	fmt.Println(res.Warnings[0])
	// Output:
	// Four. <nil>
	// http://a.example/v1: cannot be reached; answered by a fallback model
}

// The kind of an error tells what to do.
func ExampleError() {
	err := fmt.Errorf("task %q: %w", "Write", &llm.Error{Kind: "prompt too long", Status: 413, Model: "m"})
	if failed, ok := errors.AsType[*llm.Error](err); ok {
		fmt.Println(failed.Kind, failed.Retryable())
	}
	// Output: prompt too long false
}

// A price turns usage into money.
func ExamplePrice() {
	price := llm.Price{Input: 0.15, Output: 0.60} // US dollars per million tokens
	fmt.Println(price.Cost(llm.Usage{InputTokens: 1_000, OutputTokens: 200}))
	// Output: $0.00027
}
