package scripted_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
)

// A model that is called with a nil context returns an error, however it is wrapped,
// and calls nothing.
func TestNilContextIsAnErrorOfEveryModel(t *testing.T) {
	t.Parallel()
	called := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		t.Error("the function was called")
		return llm.Response{}, &llm.Error{Kind: callfault.ServerError}
	})
	var none context.Context
	for name, m := range map[string]llm.Model{
		"function": called, "retry": llm.Retry(called, llm.RetryOptions{}), "recorder": new(scripted.Recorder).Model(called),
		"all": llm.Retry(new(scripted.Recorder).Model(called), llm.RetryOptions{}),
	} {
		_, err := m.Call(none, llm.Request{}, nil)
		require.ErrorContains(t, err, "the context is nil", name)
	}
}
