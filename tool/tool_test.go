package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/tool"
)

type arguments struct {
	Name string   `json:"name" jsonschema:"whose"`
	Tags []string `json:"tags,omitempty"`
}

func TestParametersComeFromTheType(t *testing.T) {
	t.Parallel()
	f, err := tool.New("find", "Finds.", func(context.Context, arguments) (string, error) { return "", nil }, tool.Options{})
	require.NoError(t, err)
	var schema struct {
		Type       string                    `json:"type"`
		Required   []string                  `json:"required"`
		Properties map[string]map[string]any `json:"properties"`
	}
	require.NoError(t, json.Unmarshal(f.Parameters, &schema))
	require.Equal(t, "object", schema.Type)
	require.Equal(t, []string{"name"}, schema.Required)
	require.Equal(t, "whose", schema.Properties["name"]["description"])
}

// Providers refuse an object without properties.
func TestToolsWithoutArgumentsHaveProperties(t *testing.T) {
	t.Parallel()
	f, err := tool.New("list", "Lists.", func(context.Context, struct{}) (string, error) { return "", nil }, tool.Options{})
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"object","properties":{},"additionalProperties":false}`, string(f.Parameters))
	f, err = tool.New("set", "Sets.", func(context.Context, map[string]int) (string, error) { return "", nil }, tool.Options{})
	require.NoError(t, err)
	require.JSONEq(t, `{"type":"object","properties":{},"additionalProperties":{"type":"integer"}}`, string(f.Parameters))
}

func TestResults(t *testing.T) {
	t.Parallel()
	type row struct{ N int }
	run := func(out any) (tool.Result, error) {
		f, err := tool.New("x", "", func(context.Context, struct{}) (any, error) { return out, nil }, tool.Options{})
		require.NoError(t, err)
		return f.Run(t.Context(), tool.Call{Arguments: json.RawMessage(`{}`)})
	}
	for _, tt := range []struct {
		give any
		want tool.Result
	}{
		{"text", tool.Result{Text: "text"}},
		{row{3}, tool.Result{JSON: json.RawMessage(`{"N":3}`)}},
		{json.RawMessage(`[1]`), tool.Result{JSON: json.RawMessage(`[1]`)}},
		{tool.Result{Text: "a", IsError: true}, tool.Result{Text: "a", IsError: true}},
	} {
		got, err := run(tt.give)
		require.NoError(t, err)
		require.Equal(t, tt.want, got)
	}
	_, err := run(func() {})
	require.ErrorContains(t, err, "result: json")
}

func TestToolsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	run := func(context.Context, tool.Call) (tool.Result, error) { return tool.Result{}, nil }
	object, public := json.RawMessage(`{"type": "object"}`), label.Public
	for _, tt := range []struct {
		give *tool.Tool
		want string
	}{
		{nil, "the tool is nil"},
		{&tool.Tool{Name: "a b", Parameters: object, Run: run}, "use 1 to 64"},
		{&tool.Tool{Name: "a", Parameters: object}, "Run is nil"},
		{&tool.Tool{Name: "a", Parameters: json.RawMessage(`{`), Run: run}, "parameters"},
		{&tool.Tool{Name: "a", Parameters: json.RawMessage(`{"type": "string"}`), Run: run}, "must have type object"},
		{&tool.Tool{Name: "a", Parameters: object, Run: run, Options: tool.Options{Effect: "some"}}, `unknown effect "some"`},
		{&tool.Tool{Name: "a", Parameters: object, Run: run, Options: tool.Options{Accepts: 9}}, "unknown level"},
		{&tool.Tool{Name: "a", Parameters: object, Run: run, Options: tool.Options{Stateful: true, Produces: &public}}, "could lower the label of arguments"},
		{&tool.Tool{Name: "a", Parameters: object, Run: run, Options: tool.Options{Timeout: -1}}, "must not be negative"},
	} {
		require.ErrorContains(t, tt.give.Check(), tt.want)
	}
	_, err := tool.New[arguments, string]("a", "", nil, tool.Options{})
	require.ErrorContains(t, err, "the function is nil")
	_, err = tool.New("a", "", func(context.Context, chan int) (string, error) { return "", nil }, tool.Options{})
	require.ErrorContains(t, err, `tool "a"`)
}

// A closer notes that it was closed.
type closer struct {
	name   string
	closed *[]string
}

func (c closer) Close() error {
	*c.closed = append(*c.closed, c.name)
	return nil
}

func TestSharedOpensOnceAndClosesInReverse(t *testing.T) {
	t.Parallel()
	var s tool.Shared
	var closed []string
	opened := 0
	for range 2 {
		for _, name := range []string{"a", "b"} {
			v, err := s.Get(name, func() (io.Closer, error) { opened++; return closer{name, &closed}, nil })
			require.NoError(t, err)
			require.Equal(t, name, v.(closer).name)
		}
	}
	require.Equal(t, 2, opened)
	_, err := s.Get("broken", func() (io.Closer, error) { return nil, errors.New("no") })
	require.EqualError(t, err, "no")
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	require.Equal(t, []string{"b", "a"}, closed)
	_, err = s.Get("c", func() (io.Closer, error) { return closer{}, nil })
	require.ErrorIs(t, err, tool.ErrClosed)
}

// A panicker panics when it is closed.
type panicker struct{}

func (panicker) Close() error { panic("boom") }

func TestSharedClosesTheRestAfterAPanic(t *testing.T) {
	t.Parallel()
	var s tool.Shared
	var closed []string
	_, err := s.Get("a", func() (io.Closer, error) { return closer{"a", &closed}, nil })
	require.NoError(t, err)
	_, err = s.Get("b", func() (io.Closer, error) { return panicker{}, nil })
	require.NoError(t, err)
	require.ErrorContains(t, s.Close(), "Close panicked: boom")
	require.Equal(t, []string{"a"}, closed)
}

// Close does not wait for an open that hangs, and what that opens later is closed.
func TestSharedDoesNotWaitForAnOpenThatHangs(t *testing.T) {
	t.Parallel()
	var s tool.Shared
	var closed []string
	hangs, over, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		_, err := s.Get("a", func() (io.Closer, error) { close(hangs); <-over; return closer{"a", &closed}, nil })
		require.ErrorIs(t, err, tool.ErrClosed)
	}()
	<-hangs
	require.NoError(t, s.Close())
	close(over)
	<-ended
	require.Equal(t, []string{"a"}, closed)
}
