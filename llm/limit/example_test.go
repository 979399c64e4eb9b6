package limit_test

import (
	"context"
	"fmt"

	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/limit"
)

// All models of a Group share the limits of their endpoint.
func ExampleGroup() {
	var limits limit.Group
	limits.Set("http://a/v1", limit.Limits{RequestsPerMinute: 60, MaxConcurrency: 4})
	model := limits.Model(located(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: "Four."}, nil
	}), 0)
	res, err := model.Call(context.Background(), llm.Request{}, nil) // waits until the limits allow the call
	fmt.Println(res.Text, err)
	// Output: Four. <nil>
}
