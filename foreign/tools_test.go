package foreign

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/ollama/ollama/api"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// A registry is the tool look_up, with the names that it was called for.
type registry struct {
	mu    sync.Mutex
	names []string
}

func (r *registry) tool(t *testing.T) *tool.Tool {
	t.Helper()
	f, err := tool.New("look_up", "Says where a person lives.", func(_ context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.names = append(r.names, in.Name)
		return in.Name + " lives in Oslo.", nil
	}, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	return f
}

// called returns the names in alphabetical order, since calls without effects are parallel.
func (r *registry) called() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(slices.Values(r.names))
}

func modelAt(t *testing.T, baseURL string) *openai.Model {
	t.Helper()
	m, err := openai.New(openai.Config{Model: "gpt-4o", BaseURL: baseURL})
	require.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

// work runs one task by one agent with tools, and returns its result.
func work(t *testing.T, m llm.Model, say string, tools []*tool.Tool, allowed ...string) string {
	t.Helper()
	tm, err := team.New(team.Config{Agents: []team.Member{{Name: "worker", Agent: agent.New(m, agent.Options{}), Tools: tools, AllowUntrusted: allowed}}})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Work", Assignee: "worker", Description: say}}, nil)
	require.NoError(t, err)
	return res.Output
}

// aimock answers a later turn only if the last message is the result of the right call.
func TestToolsWithAimock(t *testing.T) {
	t.Parallel()
	m := modelAt(t, "http://"+aimock(t, "testdata/aimock.json")+"/v1")
	for _, tt := range []struct {
		say, want string
		called    []string
	}{
		{"look up one", "Oslo", []string{"Ann"}},
		{"look up two", "Both in Oslo", []string{"Ann", "Bob"}},
		{"look up twice", "Both in Oslo", []string{"Ann", "Bob"}},
		{"unknown tool", "I cannot", nil},
		{"wrong arguments", "I cannot", nil},
	} {
		t.Run(tt.say, func(t *testing.T) {
			t.Parallel()
			var r registry
			require.Equal(t, tt.want, work(t, m, tt.say, []*tool.Tool{r.tool(t)}))
			require.Equal(t, tt.called, r.called())
		})
	}
}

// callsOf returns the tool calls of a reply, streamed or not.
func callsOf(t *testing.T, m llm.Model, say string, stream bool) (text string, calls []llm.ToolCall) {
	t.Helper()
	var r registry
	f := r.tool(t)
	var emit func(llm.Delta) error
	if stream {
		emit = func(d llm.Delta) error { text += d.Text; return nil }
	}
	res, err := m.Call(t.Context(), llm.Request{
		Messages: []llm.Message{{Role: llm.User, Text: say}}, Tools: []llm.Tool{{Name: f.Name, Description: f.Description, Parameters: f.Parameters}},
	}, emit)
	require.NoError(t, err)
	require.Equal(t, "tool_calls", res.FinishReason)
	for i := range res.ToolCalls {
		require.NotEmpty(t, res.ToolCalls[i].ID)
		res.ToolCalls[i].ID = "" // random
	}
	if stream {
		require.Equal(t, res.Text, text)
	}
	return res.Text, res.ToolCalls
}

func TestStreamedToolCalls(t *testing.T) {
	t.Parallel()
	o := lookUps()
	for name, at := range map[string]string{"aimock": "http://" + aimock(t, "testdata/aimock.json") + "/v1", "Ollama": o.start(t)} {
		m := modelAt(t, at)
		for _, stream := range []bool{false, true} {
			text, calls := callsOf(t, m, "look up two", stream)
			require.Equal(t, "Both at once.", text, name)
			require.Len(t, calls, 2, name)
			for i, want := range []string{"Ann", "Bob"} {
				require.Equal(t, "look_up", calls[i].Name)
				require.JSONEq(t, `{"name": "`+want+`"}`, calls[i].Arguments, name)
			}
		}
	}
}

// lookUps is an Ollama whose model looks up two persons at once, or one after the other.
func lookUps() *ollama {
	call := func(name string) api.ToolCall {
		return api.ToolCall{ID: "call_" + strings.ToLower(name), Function: api.ToolCallFunction{Name: "look_up", Arguments: map[string]any{"name": name}}}
	}
	results := func(req *api.ChatRequest) (n int) {
		for _, m := range req.Messages {
			if m.Role == "tool" {
				n++
			}
		}
		return n
	}
	return &ollama{answers: map[string]func(*api.ChatRequest, *api.ChatResponse){
		"look up two": func(req *api.ChatRequest, res *api.ChatResponse) {
			if results(req) == 2 {
				res.Message.Content = "Both in Oslo"
				return
			}
			res.Message.Content, res.Message.ToolCalls = "Both at once.", []api.ToolCall{call("Ann"), call("Bob")}
			res.Message.ToolCalls[1].Function.Index = 1
		},
		"look up twice": func(req *api.ChatRequest, res *api.ChatResponse) {
			switch results(req) {
			case 0:
				res.Message.ToolCalls = []api.ToolCall{call("Ann")}
			case 1:
				res.Message.ToolCalls = []api.ToolCall{call("Bob")}
			default:
				res.Message.Content = "Both in Oslo"
			}
		},
	}}
}

// A seenMessage is a message as Ollama reads it from a request.
type seenMessage struct{ role, text, call, of string }

// seenBy returns the messages of a request. Of a result it has the payload.
func seenBy(t *testing.T, req *api.ChatRequest) (list []seenMessage) {
	t.Helper()
	for _, m := range req.Messages {
		s := seenMessage{role: m.Role, text: m.Content, of: m.ToolName}
		if m.Role == "tool" {
			s.text = strings.Split(m.Content, "\n")[1] // between the lines of the fence
		}
		for _, c := range m.ToolCalls {
			arguments, err := json.Marshal(c.Function.Arguments)
			require.NoError(t, err)
			s.call += c.ID + " " + c.Function.Name + " " + string(arguments) + ";"
		}
		list = append(list, s)
	}
	return list
}

// Ollama finds the tool of a result by the ID of its call, so both must be right.
func TestToolsWithOllama(t *testing.T) {
	t.Parallel()
	user := func(say string) seenMessage { return seenMessage{role: "user", text: "# Task: Work\n\n" + say} }
	ann, bob := seenMessage{role: "tool", text: "Ann lives in Oslo.", of: "look_up"}, seenMessage{role: "tool", text: "Bob lives in Oslo.", of: "look_up"}
	for _, tt := range []struct {
		say  string
		want []seenMessage // of the last request
	}{
		{"look up two", []seenMessage{
			user("look up two"),
			{role: "assistant", text: "Both at once.", call: `call_ann look_up {"name":"Ann"};call_bob look_up {"name":"Bob"};`}, ann, bob,
		}},
		{"look up twice", []seenMessage{
			user("look up twice"),
			{role: "assistant", call: `call_ann look_up {"name":"Ann"};`}, ann, {role: "assistant", call: `call_bob look_up {"name":"Bob"};`}, bob,
		}},
	} {
		t.Run(tt.say, func(t *testing.T) {
			t.Parallel()
			var r registry
			o := lookUps()
			require.Equal(t, "Both in Oslo", work(t, modelAt(t, o.start(t)), tt.say, []*tool.Tool{r.tool(t)}))
			require.Equal(t, []string{"Ann", "Bob"}, r.called())
			last := o.seen[len(o.seen)-1]
			require.Equal(t, tt.want, seenBy(t, &last))
			require.Len(t, last.Tools, 1)
			require.Equal(t, "look_up", last.Tools[0].Function.Name)
			require.Equal(t, []string{"name"}, last.Tools[0].Function.Parameters.Required)
		})
	}
}

// A model that writes arguments that are no JSON object can see its mistake: Ollama accepts
// the conversation.
func TestMalformedArgumentsWithOllama(t *testing.T) {
	t.Parallel()
	for _, arguments := range []string{`{"name": "Ann`, `["Ann"]`, `"Ann"`, "null"} {
		var r registry
		o := lookUps()
		behind, calls := modelAt(t, o.start(t)), 0
		m := llm.ModelFunc(func(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
			if calls++; calls == 1 {
				return llm.Response{ToolCalls: []llm.ToolCall{{ID: "1", Name: "look_up", Arguments: arguments}}}, nil
			}
			return behind.Call(ctx, req, emit)
		})
		require.Equal(t, "Both in Oslo", work(t, m, "look up twice", []*tool.Tool{r.tool(t)}), arguments)
		require.Equal(t, []string{"Bob"}, r.called())
		seen := seenBy(t, &o.seen[0])
		require.Contains(t, seen[2].text, "Invalid arguments")
	}
}
