package team_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/team"
	"github.com/runteam/runteam/tool"
)

// rates is an internal tool with bounded arguments and free ones.
type rates struct {
	mu  sync.Mutex
	got []string // the arguments of each call
}

func (x *rates) tool(required string) *tool.Tool {
	return &tool.Tool{
		Name: "rates", Description: "Rates of a currency in a year.",
		Parameters: json.RawMessage(`{"type": "object", "additionalProperties": false, "required": [` + required + `], "properties": {
			"currency": {"enum": ["EUR", "USD", "JPY"]}, "year": {"type": "integer", "minimum": 2000, "maximum": 2100}, "note": {"type": "string"}}}`),
		Run: func(_ context.Context, c tool.Call) (tool.Result, error) {
			x.mu.Lock()
			defer x.mu.Unlock()
			x.got = append(x.got, string(c.Arguments))
			return tool.Result{Text: "1.08"}, nil
		},
		Options: tool.Options{Effect: tool.None},
	}
}

// lowers returns an entry that lowers arguments of the tool rates.
func lowers(paths ...task.Path) *handoff.Policy {
	return &handoff.Policy{Declassify: []handoff.Declassifier{{Entry: handoff.Entry{Name: "rates-only", From: "clerk", To: "tool:rates", Reason: "bounded"}, Paths: paths, LowerTo: label.Internal}}}
}

// confidential returns a team whose clerk reads a confidential input and has a tool.
func confidential(t testing.TB, model llm.Model, f *tool.Tool, p *handoff.Policy) *team.Team {
	t.Helper()
	tm, err := team.New(team.Config{Policy: p, Agents: []team.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{}), Accepts: label.Confidential, Tools: []*tool.Tool{f}}}})
	require.NoError(t, err)
	return tm
}

var (
	priced = []task.Spec{{Title: "Price", Description: "Convert the price.", Assignee: "clerk", Uses: []task.Use{{Name: "claim"}}}}
	claim  = []team.Input{{Name: "claim", Text: "canary price 100 EUR", Classification: label.Confidential}}
)

func TestDeclassifiedArgumentsReachALessClearedTool(t *testing.T) {
	t.Parallel()
	const call = `{"currency": "EUR", "year": 2024, "note": "canary price"}`
	for _, tt := range []struct {
		name     string
		policy   *handoff.Policy
		required string
		got      []string // by the tool
		answer   string   // to the agent
		plan     string   // why the run is refused
	}{
		{"no entry", nil, "", nil, "", `its context is at least confidential, and tool "rates" of agent "clerk" accepts at most internal`},
		{"only the paths", lowers("/currency", "/year"), `"currency"`, []string{`{"currency":"EUR","year":2024}`}, "1.08", ""},
		{"one of them", lowers("/year"), "", []string{`{"year":2024}`}, "1.08", ""},
		{"a required argument outside of the paths", lowers("/year"), `"currency"`, nil, "Invalid arguments, once they are redacted", ""},
		{"a path that is not bounded", lowers("/year", "/note"), "", nil, "", `an argument of tool "rates": /note is not bounded`},
		{"a path of no argument", lowers("/yaer"), "", nil, "", `no argument of tool "rates" matches "/yaer": did you mean "/year"?`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x, model := &rates{}, &chat{replies: []llm.Response{calls("rates", call), says("done")}}
			tm := confidential(t, model, x.tool(tt.required), tt.policy)
			o := &team.RunOptions{Inputs: claim, UserAccepts: new(label.Confidential)}
			if tt.plan != "" {
				_, err := tm.Plan(priced, o)
				require.ErrorContains(t, err, tt.plan)
				if problems, _ := errors.AsType[task.Problems](err); tt.policy != nil {
					last := len(tt.policy.Declassify[0].Paths) - 1
					require.Equal(t, "/policy/declassify/0/paths/"+string(rune('0'+last)), problems[0].Pointer)
				}
				return
			}
			res, err := tm.RunTasks(t.Context(), priced, o)
			require.NoError(t, err)
			require.Equal(t, tt.got, x.got)
			require.Equal(t, label.Confidential, res.Tasks[0].Label)
			require.Contains(t, model.requests[1].Messages[2].Text, tt.answer)
		})
	}
}

// Each call can carry something else, so their number is limited, in parallel calls too.
func TestCallsWithDeclassifiedArgumentsAreLimited(t *testing.T) {
	t.Parallel()
	many := calls("rates", `{"year": 2024}`)
	for range 19 {
		many.ToolCalls = append(many.ToolCalls, many.ToolCalls[0])
	}
	x, model := &rates{}, &chat{replies: []llm.Response{many, calls("rates", `{"year": 2023}`), says("done")}}
	tm := confidential(t, model, x.tool(""), lowers("/year"))
	_, err := tm.RunTasks(t.Context(), priced, &team.RunOptions{Inputs: claim, UserAccepts: new(label.Confidential)})
	require.NoError(t, err)
	require.Len(t, x.got, 16)
	messages := model.requests[2].Messages
	require.Contains(t, messages[17].Text, "1.08")
	require.Contains(t, messages[18].Text, "Call refused: at most 16 calls of a task may have arguments that a declassifier lowers.")
	require.Contains(t, messages[len(messages)-1].Text, "Call refused: at most 16 calls")
}

// The parameters of a server that is not connected are not known when a run is checked.
func TestUnboundedArgumentsOfAServerAreNotLowered(t *testing.T) {
	t.Parallel()
	x := &rates{}
	f := x.tool("")
	f.Description, f.Parameters, f.Foreign = "", json.RawMessage(`{"type":"object"}`), true
	model := &chat{replies: []llm.Response{calls("rates", `{"year": 2024}`), says("done")}}
	tm := confidential(t, model, f, lowers("/year"))
	o := &team.RunOptions{Inputs: claim, UserAccepts: new(label.Confidential)}
	p, err := tm.Plan(priced, o)
	require.NoError(t, err)
	require.Contains(t, task.Problems(p.Warnings).Error(), `the parameters of tool "rates" are not known yet`)
	_, err = tm.RunTasks(t.Context(), priced, o)
	require.NoError(t, err)
	require.Empty(t, x.got)
	require.Contains(t, model.requests[1].Messages[2].Text, "Call refused: the argument /year is not bounded")
}
