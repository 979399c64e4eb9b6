package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A namedModel is a model with a name, so that its answers have a version.
type namedModel struct {
	llm.ModelFunc
}

func (namedModel) Name() string { return "scripted" }

// A loop is an agent that calls the tool add in each turn, and then answers with what it
// was given. It counts what it was asked and what the tool was called for.
type loop struct {
	turns  int
	effect tool.Effect
	repeat bool

	mu    sync.Mutex // guards the rest
	asked map[int]int
	added map[string]int // by the ID of the call
}

func (l *loop) team(t testing.TB) *engine.Team {
	t.Helper()
	l.asked, l.added = map[int]int{}, map[string]int{}
	add, err := tool.New("add", "Adds one.", func(ctx context.Context, in struct {
		N int `json:"n"`
	}) (string, error) {
		c, _ := tool.CallFrom(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.added[c.ID]++
		return fmt.Sprintf("the sum is %d", in.N+1), nil
	}, tool.Options{Effect: l.effect, Repeatable: l.repeat})
	require.NoError(t, err)
	model := namedModel{func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		turn := 1 + len(r.Messages)/2
		l.mu.Lock()
		defer l.mu.Unlock()
		l.asked[turn]++
		if turn < l.turns {
			return llm.Response{ToolCalls: []llm.ToolCall{{ID: "1", Name: "add", Arguments: fmt.Sprintf(`{"n": %d}`, turn)}}}, nil
		}
		var sums []string
		for _, m := range r.Messages {
			if m.Role == llm.ToolResult {
				sums = append(sums, strings.Split(m.Text, "\n")[1])
			}
		}
		return llm.Response{Text: strings.Join(sums, ", ")}, nil
	}}
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "adder", Agent: agent.New(model, agent.Options{MaxTurns: 20}), Tools: []*tool.Tool{add}, AllowUntrusted: []string{"add"}}}})
	require.NoError(t, err)
	return tm
}

// Whatever a process had made durable when it died, the conversation continues with it: no
// answered turn is asked again, no completed call is made again, and no external call is
// made twice.
//
// Requirement: G58.
func TestToolLoopResumesAfterEveryCommit(t *testing.T) {
	t.Parallel()
	specs := []task.Spec{{Title: "Add", Description: "Add.", Assignee: "adder", MaxRetries: 2}}
	for _, tt := range []struct {
		name   string
		effect tool.Effect
		repeat bool
	}{{"external", tool.External, false}, {"repeatable", tool.External, true}, {"none", tool.None, false}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			whole := &memory{}
			first := &loop{turns: 12, effect: tt.effect, repeat: tt.repeat}
			want, err := first.team(t).RunTasks(context.Background(), specs, &engine.RunOptions{RunID: "r", Journal: whole})
			require.NoError(t, err)
			require.NoError(t, want.Err())
			require.Len(t, first.added, 11)
			uncertain := 0
			for n := range whole.len() + 1 {
				past := whole.history(n)
				started, ended, answered := map[string]bool{}, map[string]bool{}, map[string]bool{}
				for _, e := range past.Log {
					switch {
					case e.ToolCall != nil:
						started[e.ToolCall.Session] = true
					case e.ToolResult != nil:
						ended[e.ToolResult.Session] = true
					case e.Turn != nil:
						answered["/turn/1"] = true
					case e.Exchange != nil:
						answered[e.Exchange.Part] = true
					}
				}
				again := &loop{turns: 12, effect: tt.effect, repeat: tt.repeat}
				res, err := start(context.Background(), again.team(t), specs, &engine.RunOptions{RunID: "r", Journal: after(past)})
				require.NoError(t, err)
				for turn := range again.asked {
					require.False(t, answered[fmt.Sprintf("/turn/%d", turn)], "turn %d was asked again after %d commits", turn, n)
				}
				for id, calls := range again.added {
					require.Equal(t, 1, calls)
					require.False(t, ended[id], "call %s was made again", id)
					require.False(t, started[id] && tt.name == "external", "call %s was made twice", id)
				}
				if len(started) > len(ended) && tt.name == "external" {
					uncertain++
					require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code, "after %d commits", n)
					continue
				}
				require.NoError(t, res.Err(), "after %d commits", n)
				require.Equal(t, answers(want), answers(res))
			}
			require.Equal(t, tt.name == "external", uncertain > 0)
		})
	}
}

// Once a call with an external effect has begun, an error that a second attempt might not
// have fails the task.
func TestTaskDoesNotStartOverAfterAnExternalCall(t *testing.T) {
	t.Parallel()
	for _, repeat := range []bool{false, true} {
		calls := 0
		model := namedModel{func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
			if len(r.Messages) > 1 {
				return llm.Response{}, fmt.Errorf("the line is down")
			}
			return llm.Response{ToolCalls: []llm.ToolCall{{ID: "1", Name: "pay", Arguments: "{}"}}}, nil
		}}
		pay, err := tool.New("pay", "", func(context.Context, struct{}) (string, error) { calls++; return "paid", nil }, tool.Options{Repeatable: repeat})
		require.NoError(t, err)
		tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "clerk", Agent: agent.New(model, agent.Options{Retry: llm.RetryOptions{Extra: -1}}), Tools: []*tool.Tool{pay}}}})
		require.NoError(t, err)
		res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "Pay", Description: "Pay.", Assignee: "clerk", MaxRetries: 2, RetryDelay: 1}}, nil)
		require.NoError(t, err)
		if repeat {
			require.Equal(t, 3, calls)
			continue
		}
		require.Equal(t, 1, calls)
		require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code)
	}
}

var _ record.Entry
