package foreign

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/event"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// A form is a reply in a form that a provider sends: a row of the table of llm/openai.
type form struct {
	Name    string
	Text    string
	Members string
	Calls   []struct{ ID, Name, Arguments, Members, Function string }
	Whole   json.RawMessage
	Chunks  []json.RawMessage
}

// A formServer answers the first request of a conversation in a form, and the next with the results that
// it has. It keeps what it was sent.
type formServer struct {
	form     form
	mu       sync.Mutex
	requests []formRequest
}

// A formRequest is a request as a strict server reads it.
type formRequest struct {
	Stream   bool
	Messages []map[string]json.RawMessage
}

func (s *formServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req formRequest
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	s.requests = append(s.requests, req)
	n := len(s.requests)
	s.mu.Unlock()
	whole, chunks := s.form.Whole, s.form.Chunks
	if n > 1 {
		whole = json.RawMessage(`{"choices":[{"message":{"role":"assistant","content":"Done."},"finish_reason":"stop"}]}`)
		chunks = []json.RawMessage{json.RawMessage(`{"choices":[{"delta":{"role":"assistant","content":"Done."},"finish_reason":"stop"}]}`)}
	}
	if !req.Stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(whole)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, c := range chunks {
		fmt.Fprintf(w, "data: %s\n\n", c)
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

// A calculator has the tools of the forms, and the calls that were made.
type calculator struct {
	mu    sync.Mutex
	calls []string
}

func (c *calculator) tools(t *testing.T) (list []*tool.Tool) {
	t.Helper()
	for name, of := range map[string]func(a, b int) int{"add": func(a, b int) int { return a + b }, "mul": func(a, b int) int { return a * b }} {
		f, err := tool.New(name, "Calculates.", func(_ context.Context, in struct {
			A    int    `json:"a"`
			B    int    `json:"b"`
			Note string `json:"note,omitempty"`
		}) (int, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.calls = append(c.calls, fmt.Sprintf("%s %d %d", name, in.A, in.B))
			return of(in.A, in.B), nil
		}, tool.Options{Effect: tool.None})
		require.NoError(t, err)
		list = append(list, f)
	}
	return list
}

// A team with tools works with each form, streamed and not: every call is made once, its result has the ID of
// the call, and what the provider added goes back with the message, the calls and their functions.
func TestForms(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../llm/openai/testdata/forms.json")
	require.NoError(t, err)
	var forms []form
	require.NoError(t, json.Unmarshal(text, &forms))
	require.GreaterOrEqual(t, len(forms), 25)
	for _, f := range forms {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stream=%t", f.Name, stream), func(t *testing.T) {
				t.Parallel()
				s := &formServer{form: f}
				server := httptest.NewServer(s)
				t.Cleanup(server.Close)
				var c calculator
				tm, err := team.New(team.Config{Agents: []team.Member{{Name: "worker", Agent: agent.New(modelAt(t, server.URL+"/v1"), agent.Options{}), Tools: c.tools(t)}}})
				require.NoError(t, err)
				o := &team.RunOptions{}
				if stream {
					o.Stream = func(event.Delta) {}
				}
				res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Calculate", Assignee: "worker", Description: "Calculate."}}, o)
				require.NoError(t, err)
				for _, req := range s.requests {
					require.Equal(t, stream, req.Stream)
				}
				if len(f.Calls) == 0 {
					require.Equal(t, f.Text, res.Output)
					require.Len(t, s.requests, 1)
					return
				}
				require.Equal(t, "Done.", res.Output)
				require.Len(t, s.requests, 2)
				var want []string
				for _, call := range f.Calls {
					var in struct{ A, B int }
					require.NoError(t, json.Unmarshal([]byte(call.Arguments), &in))
					want = append(want, fmt.Sprintf("%s %d %d", call.Name, in.A, in.B))
				}
				require.ElementsMatch(t, want, c.calls)
				f.requireSentBack(t, s.requests[1].Messages)
			})
		}
	}
}

// requireSentBack requires that the messages end with those of the form and the results of its calls.
func (f *form) requireSentBack(t *testing.T, messages []map[string]json.RawMessage) {
	t.Helper()
	at := slices.IndexFunc(messages, func(m map[string]json.RawMessage) bool { return m["tool_calls"] != nil })
	said := messages[at]
	var calls []struct {
		ID       string
		Function map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(said["tool_calls"], &calls))
	require.Len(t, calls, len(f.Calls))
	require.Len(t, messages[at+1:], len(f.Calls), "a result for each call")
	require.NotContains(t, string(said["content"]), `""`)
	used := map[string]bool{}
	for i, want := range f.Calls {
		if want.ID != "" && !used[want.ID] {
			require.Equal(t, want.ID, calls[i].ID)
		}
		require.Regexp(t, regexp.MustCompile(`^[A-Za-z0-9_\-:.]{1,64}$`), calls[i].ID)
		require.False(t, used[calls[i].ID], "unique")
		used[calls[i].ID] = true
		require.JSONEq(t, `"`+calls[i].ID+`"`, string(messages[at+1+i]["tool_call_id"]))
		for _, members := range []string{want.Members, want.Function} {
			require.Contains(t, string(said["tool_calls"]), strings.TrimSuffix(strings.TrimPrefix(members, "{"), "}"))
		}
	}
	var members map[string]json.RawMessage
	if f.Members != "" {
		require.NoError(t, json.Unmarshal([]byte(f.Members), &members))
	}
	for name, value := range members {
		if name == "content" { // the parts that are reasoning, before the text
			require.True(t, strings.HasPrefix(string(said[name]), strings.TrimSuffix(string(value), "]")))
			continue
		}
		require.Equal(t, string(value), string(said[name]), name)
	}
}
