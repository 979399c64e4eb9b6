package mcp_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/journal"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/mcp"
	"github.com/runteam/runteam/person"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// An approval is for the definition that the server sent, also where the agent and the person do not get that part.
//
// Requirement: G56.
func TestAnApprovalIsForWhatTheServerSent(t *testing.T) {
	t.Parallel()
	const (
		description = "Pays with token-1."
		schema      = `{"type":"object","properties":{"amount":{"type":"number","nullable":true},"to":{"type":"string"}},"required":["to","amount"]}`
	)
	for name, tt := range map[string]struct {
		description, schema, secret string // of the server when the run is resumed
		asked                       int    // then
	}{
		"nothing":                 {description, schema, "token-1", 0},
		"the order of a set":      {description, strings.Replace(schema, `"to","amount"`, `"amount","to"`, 1), "token-1", 0},
		"a part that is left out": {description, strings.Replace(schema, `"nullable":true`, `"nullable":true,"example":9`, 1), "token-1", 1},
		"a secret":                {"Pays with token-2.", schema, "token-2", 1},
	} {
		for _, always := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				j := journal.InMemory()
				defer j.Close()
				ctx, cancel := context.WithCancel(t.Context())
				b := &bank{stop: cancel, always: always}
				tasks := []task.Spec{{Title: "Pay", Description: "Pay them.", Assignee: "clerk"}}
				res, err := b.team(t, description, schema, "token-1").RunTasks(ctx, tasks, &team.RunOptions{RunID: "r1", Journal: j})
				if always { // the run ends when it was used for the first call
					require.Error(t, err)
					require.Equal(t, []int{1, 1}, []int{b.asked, b.paid})
				} else { // it is in the journal, and is not used yet
					require.NoError(t, err)
					require.Equal(t, []any{team.StatusSuspended, 0}, []any{res.Status, b.paid})
					open, err := j.Questions(t.Context())
					require.NoError(t, err)
					_, err = j.Answer(t.Context(), "r1", open[0].ID, journal.Answer{By: "ann", Text: `{"decision":"yes"}`})
					require.NoError(t, err)
				}
				b.asked, b.paid, b.stop = 0, 0, nil
				_, err = b.team(t, tt.description, tt.schema, tt.secret).Resume(t.Context(), "r1", &team.RunOptions{Tasks: tasks, Journal: j})
				require.NoError(t, err)
				require.Equal(t, []int{tt.asked, 1}, []int{b.asked, b.paid})
			})
		}
	}
}

// A bank is a server with one tool, an agent that pays once or twice, and a person who approves that.
type bank struct {
	always      bool   // there are two payments, and the first answer approves both
	stop        func() // ends the run when a second payment is due, or has the person answer later; nil in the second process
	asked, paid int
}

func (b *bank) team(t testing.TB, description, schema, secret string) *team.Team {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "bank", Version: "1"}, nil)
	server.AddTool(&sdk.Tool{Name: "pay", Description: description, InputSchema: json.RawMessage(schema)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		b.paid++
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "paid"}}}, nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(web.Close)
	tools, err := (&mcp.Server{Name: "bank", URL: web.URL, Secrets: map[string]string{"KEY": secret}, Options: tool.Options{Approve: "ann"}}).Tools(t.Context())
	require.NoError(t, err)
	require.NotContains(t, tools[0].Description, secret)
	require.NotContains(t, string(tools[0].Parameters), "example")
	tm, err := team.New(team.Config{Agents: []team.Member{
		{Name: "clerk", Agent: agent.New(b, agent.Options{}), Tools: tools, AllowUntrusted: []string{"bank__pay"}},
		{Name: "ann", Agent: person.New(func(context.Context, prompt.Prompt) (agent.Reply, error) {
			b.asked++
			switch {
			case b.always && b.stop != nil:
				return agent.Reply{Text: `{"decision":"always"}`}, nil
			case b.stop != nil:
				return agent.Reply{}, person.ErrLater
			}
			return agent.Reply{Text: `{"decision":"yes"}`}, nil
		})},
	}})
	require.NoError(t, err)
	return tm
}

func (b *bank) Name() string { return "scripted" }

func (b *bank) Call(ctx context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
	call := llm.Response{ToolCalls: []llm.ToolCall{{Name: "bank__pay", Arguments: `{"to":"Ann","amount":1}`}}, CallInfo: llm.CallInfo{FinishReason: "tool_calls"}}
	switch {
	case len(r.Messages) < 3:
		return call, nil
	case len(r.Messages) > 3 || !b.always:
		return llm.Response{Text: "done"}, nil
	case b.stop != nil:
		b.stop()
		return llm.Response{}, ctx.Err()
	}
	return call, nil
}
