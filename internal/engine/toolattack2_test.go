package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A later turn that cannot be read any more is not asked again after an external call.
func TestAnotherCallDoesNotTakeAnOldResult(t *testing.T) {
	var paid []string
	team := func(to string) *engine.Team {
		pay, err := tool.New("pay", "", func(_ context.Context, in struct{ To string }) (string, error) {
			paid = append(paid, in.To)
			return "paid " + in.To, nil
		}, tool.Options{})
		require.NoError(t, err)
		look, err := tool.New("look", "", func(context.Context, struct{}) (string, error) { return "x", nil }, tool.Options{Effect: tool.None})
		require.NoError(t, err)
		m := scriptedTurns(func(turn int, r llm.Request) llm.Response {
			switch turn {
			case 1:
				return llm.Response{ToolCalls: []llm.ToolCall{callOf("look", `{}`)}}
			case 2:
				return llm.Response{ToolCalls: []llm.ToolCall{callOf("pay", `{"To":"`+to+`"}`)}}
			}
			return llm.Response{Text: r.Messages[len(r.Messages)-1].Text}
		})
		tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "a", Agent: agent.New(m, agent.Options{}), Tools: []*tool.Tool{look, pay}, AllowUntrusted: []string{"pay"}}}})
		require.NoError(t, err)
		return tm
	}
	specs := []task.Spec{{Title: "T", Description: "D", Assignee: "a"}}
	j := &memory{}
	_, err := team("alice").RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r", Journal: j})
	require.NoError(t, err)
	h := j.history(j.len())
	h.End = nil
	var log []record.Entry
	for _, e := range h.Log {
		if e.Exchange != nil && e.Exchange.Part == "/turn/2" {
			x := *e.Exchange
			x.Missing, e.Exchange = "the key is not there", &x
		} else if e.Exchange != nil {
			continue // died before
		}
		log = append(log, e)
	}
	h.Log = log
	res, err := start(t.Context(), team("bob"), specs, &engine.RunOptions{RunID: "r", Journal: after(h)})
	require.NoError(t, err)
	t.Log(paid, res.Err(), res.Tasks[0].Result)
	require.Error(t, res.Err())
	require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code)
}

// A resumed conversation does not continue before the task has a slot.
func TestResumedConversationWaitsForItsSlot(t *testing.T) {
	var holding, crossed atomic.Bool
	var paid atomic.Int32
	team := func(resumed bool, cancel func()) *engine.Team {
		look, err := tool.New("look", "", func(context.Context, struct{}) (string, error) { return "x", nil }, tool.Options{Effect: tool.None})
		require.NoError(t, err)
		pay, err := tool.New("pay", "", func(context.Context, struct{}) (string, error) {
			if holding.Load() {
				crossed.Store(true)
			}
			paid.Add(1)
			return "paid", nil
		}, tool.Options{})
		require.NoError(t, err)
		m := namedModel{func(ctx context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
			switch {
			case len(r.Messages) == 1:
				return llm.Response{ToolCalls: []llm.ToolCall{callOf("look", `{}`)}}, nil
			case !resumed:
				cancel()
				<-ctx.Done()
				return llm.Response{}, ctx.Err()
			case len(r.Messages) == 3:
				time.Sleep(200 * time.Millisecond)
				return llm.Response{ToolCalls: []llm.ToolCall{callOf("pay", `{}`)}}, nil
			}
			return llm.Response{Text: "done"}, nil
		}}
		a := versioned{engine.AgentFunc(func(ctx context.Context, p prompt.Prompt) (agent.Reply, error) {
			if !resumed {
				<-ctx.Done()
				return agent.Reply{}, ctx.Err()
			}
			holding.Store(true)
			select {
			case <-ctx.Done():
			case <-time.After(500 * time.Millisecond):
			}
			holding.Store(false)
			cancel() // the second task is never started
			return agent.Reply{Text: "x"}, nil
		})}
		tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "first", Agent: a}, {Name: "second", Agent: agent.New(m, agent.Options{}), Tools: []*tool.Tool{look, pay}, AllowUntrusted: []string{"pay"}}}})
		require.NoError(t, err)
		return tm
	}
	specs := []task.Spec{{Title: "A", Description: "D", Assignee: "first"}, {Title: "B", Description: "D", Assignee: "second"}}
	j := &memory{}
	ctx, cancel := context.WithCancel(t.Context())
	_, err := team(false, cancel).RunTasks(ctx, specs, &engine.RunOptions{RunID: "r", Journal: j, MaxConcurrency: 2})
	require.NoError(t, err)
	cancel()
	h := j.history(j.len())
	h.End = nil
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	res, err := start(ctx, team(true, cancel), specs, &engine.RunOptions{RunID: "r", Journal: after(h), MaxConcurrency: 1})
	require.NoError(t, err)
	t.Log(paid.Load(), res.Tasks[1].Status, res.Tasks[1].Metrics.Attempts)
	require.False(t, crossed.Load(), "the task paid while another one held the only slot")
}

// A call of a tool in place of a translation is an error.
func TestTranslationCannotCallTools(t *testing.T) {
	look, err := tool.New("look", "", func(context.Context, struct{}) (string, error) { return "x", nil }, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	var offered, shown = 0, ""
	m := namedModel{func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		if len(r.Messages) == 1 && contains(r.Messages[0].Text, "Retell") {
			if offered = len(r.Tools); offered > 0 {
				return llm.Response{ToolCalls: []llm.ToolCall{callOf("look", `{}`)}}, nil
			}
			return llm.Response{Text: "short"}, nil
		}
		shown = r.Messages[0].Text
		return llm.Response{Text: "done"}, nil
	}}
	p := &handoff.Policy{Rules: []handoff.PairRule{{From: "first", To: "second", Translate: &handoff.Translation{MaxTokens: 50, ByModel: true}}}}
	tm, err := engine.New(engine.Config{Policy: p, Agents: []engine.Member{{Name: "first", Agent: &counter{}}, {Name: "second", Agent: agent.New(m, agent.Options{}), Tools: []*tool.Tool{look}}}})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "A", Description: "D", Assignee: "first"}, {Title: "B", Description: "D", Assignee: "second", DependsOn: task.On("A")}}, nil)
	require.NoError(t, err)
	t.Logf("%v\n%s", res.Err(), shown)
	require.Zero(t, offered)
}

func contains(s, part string) bool { return len(s) >= len(part) && (s == part || index(s, part) >= 0) }
func index(s, part string) int {
	for i := 0; i+len(part) <= len(s); i++ {
		if s[i:i+len(part)] == part {
			return i
		}
	}
	return -1
}

// Redaction: what a tool gets, returns and fails with.
// Strict replays call no tool.
// Strict replays call no tool.
func TestReplayCallsNoTool(t *testing.T) {
	var n int
	pay, err := tool.New("pay", "", func(context.Context, struct{}) (string, error) { n++; return "paid", nil }, tool.Options{})
	require.NoError(t, err)
	m := scriptedTurns(func(turn int, r llm.Request) llm.Response {
		if turn == 1 {
			return llm.Response{ToolCalls: []llm.ToolCall{callOf("pay", `{}`)}}
		}
		return llm.Response{Text: "done"}
	})
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "a", Agent: agent.New(m, agent.Options{}), Tools: []*tool.Tool{pay}}}})
	require.NoError(t, err)
	specs := []task.Spec{{Title: "T", Description: "D", Assignee: "a"}}
	j := &memory{}
	_, err = tm.RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r", Journal: j})
	require.NoError(t, err)
	for _, o := range []engine.RunOptions{{RunID: "r", Replay: &engine.Replay{}}, {RunID: "s", Replay: &engine.Replay{Ask: true}}} {
		o.Journal = after(j.history(j.len()))
		res, err := start(t.Context(), tm, specs, &o)
		require.NoError(t, err)
		t.Log(res.Err(), res.Tasks[0].Result)
	}
	require.Equal(t, 1, n)
}

// A replay of a run that ended in the middle of a conversation makes no external call.
func TestReplayOfAnInterruptedRunMakesNoExternalCall(t *testing.T) {
	var n int
	pay, err := tool.New("pay", "", func(context.Context, struct{}) (string, error) { n++; return "paid", nil }, tool.Options{})
	require.NoError(t, err)
	m := scriptedTurns(func(turn int, r llm.Request) llm.Response {
		if turn == 1 {
			return llm.Response{ToolCalls: []llm.ToolCall{callOf("pay", `{}`)}}
		}
		return llm.Response{Text: "done"}
	})
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "a", Agent: agent.New(m, agent.Options{}), Tools: []*tool.Tool{pay}}}})
	require.NoError(t, err)
	specs := []task.Spec{{Title: "T", Description: "D", Assignee: "a"}}
	j := &memory{}
	_, err = tm.RunTasks(t.Context(), specs, &engine.RunOptions{RunID: "r", Journal: j})
	require.NoError(t, err)
	h := j.history(j.len())
	h.End = nil
	var log []record.Entry
	for _, e := range h.Log {
		if e.Exchange == nil {
			log = append(log, e)
		}
	}
	h.Log = log
	res, err := start(t.Context(), tm, specs, &engine.RunOptions{RunID: "s", Replay: &engine.Replay{Ask: true}, Journal: after(h)})
	require.NoError(t, err)
	t.Log(n, res.Err())
}

// What one tool may deliver to the agent unredacted reaches another tool through the history.
// Many calls at the same time open one workspace.
func TestParallelCallsShareAWorkspace(t *testing.T) {
	x, err := tool.New("x", "", func(ctx context.Context, in struct{ N int }) (string, error) {
		c, _ := tool.CallFrom(ctx)
		root, err := c.Workspace()
		if err != nil {
			return "", err
		}
		return "ok", root.WriteFile(fmt.Sprint("f", in.N), nil, 0o600)
	}, tool.Options{Effect: tool.None})
	require.NoError(t, err)
	m := scriptedTurns(func(turn int, r llm.Request) llm.Response {
		if turn < 4 {
			var calls []llm.ToolCall
			for i := range 30 {
				calls = append(calls, callOf("x", fmt.Sprintf(`{"N":%d}`, i)))
			}
			return llm.Response{ToolCalls: calls}
		}
		return llm.Response{Text: "done"}
	})
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "a", Agent: agent.New(m, agent.Options{}), Tools: []*tool.Tool{x}}}})
	require.NoError(t, err)
	var l ledger
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "T", Description: "D", Assignee: "a"}, {Title: "U", Description: "D", Assignee: "a"}}, &engine.RunOptions{RunID: "r", Journal: &memory{}, Recorder: l.Record})
	require.NoError(t, err)
	require.NoError(t, res.Err())
}

// A turn whose words are too long to be part of the next prompt makes no call.
func TestTurnThatCannotBeRepeatedMakesNoCalls(t *testing.T) {
	paid := 0
	pay, err := tool.New("pay", "", func(context.Context, struct{}) (string, error) { paid++; return "paid", nil }, tool.Options{})
	require.NoError(t, err)
	m := scriptedTurns(func(turn int, r llm.Request) llm.Response {
		if turn == 1 {
			return llm.Response{ToolCalls: []llm.ToolCall{callOf("pay", `{}`), callOf("nothing", `{"x":"`+strings.Repeat("x ", 600<<10)+`"}`)}}
		}
		return llm.Response{Text: "done"}
	})
	tm, err := engine.New(engine.Config{Agents: []engine.Member{{Name: "a", Agent: agent.New(m, agent.Options{}), Tools: []*tool.Tool{pay}}}})
	require.NoError(t, err)
	res, err := tm.RunTasks(t.Context(), []task.Spec{{Title: "T", Description: "D", Assignee: "a"}}, nil)
	require.NoError(t, err)
	require.False(t, res.Err() != nil && paid > 0, "paid %d, and then %v", paid, res.Err())
}
