package engine_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A loop is an agent that calls the tool add in each turn, and then answers with what it
// was given. It counts what it was asked and what the tool was called for.
type loop struct {
	turns   int
	atOnce  bool // it makes all its calls in the first turn
	options tool.Options
	more    []engine.Member // of its team

	mu    sync.Mutex // guards the rest
	asked map[int]int
	added map[string]int // by the ID of the call
}

func (l *loop) team(t testing.TB) *engine.Team {
	t.Helper()
	l.asked, l.added = map[int]int{}, map[string]int{}
	add := newTool(t, "add", l.options, func(ctx context.Context, in struct{ N int }) (string, error) {
		c, _ := tool.CallFrom(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.added[c.ID]++
		return fmt.Sprintf("the sum is %d", in.N+1), nil
	})
	return newTeam(t, append([]engine.Member{clerk(byTurn(func(turn int, r llm.Request) llm.Response {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.asked[turn]++
		switch {
		case turn == 1 && l.atOnce:
			var calls []llm.ToolCall
			for n := 1; n < l.turns; n++ {
				calls = append(calls, call("add", fmt.Sprintf(`{"N": %d}`, n)))
			}
			return llm.Response{ToolCalls: calls}
		case turn < l.turns && !l.atOnce:
			return llm.Response{ToolCalls: []llm.ToolCall{call("add", fmt.Sprintf(`{"N": %d}`, turn))}}
		}
		var sums []string
		for _, m := range r.Messages {
			if m.Role == llm.ToolResult {
				sums = append(sums, strings.Split(m.Text, "\n")[1])
			}
		}
		return llm.Response{Text: strings.Join(sums, ", ")}
	}), add)}, l.more...)...)
}

// durableCalls are the parts of a conversation that a history has.
type durableCalls struct{ started, ended, answered map[string]bool }

func durableIn(h *record.History) durableCalls {
	d := durableCalls{map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, e := range h.Log {
		switch {
		case e.ToolCall != nil:
			d.started[e.ToolCall.Session] = true
		case e.ToolResult != nil:
			d.ended[e.ToolResult.Session] = true
		case e.Turn != nil:
			d.answered["/turn/1"] = true
		case e.Exchange != nil:
			d.answered[e.Exchange.Part] = true
		}
	}
	return d
}

// Whatever a process had made durable when it died, the conversation continues with it: no
// answered turn is asked again, no completed call is made again, and no external call is
// made twice.
//
// Requirement: G58.
func TestToolLoopResumesAfterEveryCommit(t *testing.T) {
	t.Parallel()
	s := errand()
	s.MaxRetries = 2
	for name, o := range map[string]tool.Options{"external": {}, "repeatable": {Repeatable: true}, "none": noEffect} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first := &loop{turns: 8, options: o}
			whole, want := journaled(t, first.team(t), s)
			require.NoError(t, want.Err())
			require.Len(t, first.added, 7)
			uncertain := 0
			for n := range whole.len() + 1 {
				past := whole.history(n)
				before := durableIn(past)
				again := &loop{turns: 8, options: o}
				res := resumed(t, again.team(t), past, s)
				for turn := range again.asked {
					require.False(t, before.answered[fmt.Sprintf("/turn/%d", turn)], "turn %d was asked again after %d commits", turn, n)
				}
				for id, calls := range again.added {
					require.Equal(t, 1, calls)
					require.False(t, before.ended[id], "call %s was made again", id)
					require.False(t, before.started[id] && name == "external", "call %s was made twice", id)
				}
				if len(before.started) > len(before.ended) && name == "external" {
					uncertain++
					require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code, "after %d commits", n)
					continue
				}
				require.NoError(t, res.Err(), "after %d commits", n)
				require.Equal(t, answers(want), answers(res))
			}
			require.Equal(t, name == "external", uncertain > 0)
		})
	}
}

// Once a call with an external effect has begun, an error that a second attempt might not
// have fails the task.
func TestTaskDoesNotStartOverAfterAnExternalCall(t *testing.T) {
	t.Parallel()
	s := errand()
	s.MaxRetries, s.RetryDelay = 2, task.NoDelay
	for _, tt := range []struct {
		options tool.Options
		calls   int32
		code    string
	}{
		{tool.Options{}, 1, "EFFECTS_UNCERTAIN"},
		{tool.Options{Repeatable: true}, 3, "AGENT_ERROR"},
		{noEffect, 3, "AGENT_ERROR"},
	} {
		pay := newCountedTool(t, "pay", tt.options)
		m := namedModel{func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
			if turnOf(r) > 1 {
				return llm.Response{}, errors.New("the line is down")
			}
			return llm.Response{ToolCalls: []llm.ToolCall{call("pay", "{}")}}, nil
		}}
		res := run(t, toolTeam(t, m, pay.Tool), nil, s)
		require.Equal(t, tt.code, res.Tasks[0].Error.Code)
		require.Equal(t, tt.calls, pay.calls.Load(), tt.code)
	}
}

// The time limit of a task is no reason to make an external call again.
func TestTimeoutAfterAnExternalCallIsNotRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pay := newCountedTool(t, "pay", tool.Options{})
		m := namedModel{func(ctx context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
			if turnOf(r) > 1 {
				<-ctx.Done()
				return llm.Response{}, context.Cause(ctx)
			}
			return llm.Response{ToolCalls: []llm.ToolCall{call("pay", "{}")}}, nil
		}}
		s := errand()
		s.MaxRetries, s.Timeout = 2, time.Minute
		began := time.Now()
		res := run(t, toolTeam(t, m, pay.Tool), nil, s)
		require.Equal(t, time.Minute, time.Since(began))
		require.EqualValues(t, 1, pay.calls.Load())
		require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code)
	})
}

// A task whose answer has expired since its external call continues its conversation, or
// fails if that must start over, because the workspace is gone.
func TestExternalCallIsNotRepeatedAfterItsAnswerExpired(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		calls []llm.ToolCall
		code  string
	}{
		"alone":                {[]llm.ToolCall{call("pay", `{}`)}, ""},
		"beside the workspace": {[]llm.ToolCall{call("pay", `{}`), call("note", `{}`)}, "EFFECTS_UNCERTAIN"},
		"beside a tool that leaves the workspace alone": {[]llm.ToolCall{call("pay", `{}`), call("rest", `{}`)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				pay, rest := newCountedTool(t, "pay", tool.Options{}), newCountedTool(t, "rest", tool.Options{Effect: tool.Workspace})
				note := workspaceTool(t, "note", tool.Options{Effect: tool.Workspace}, func(_ tool.Call, root *os.Root) (string, error) {
					return "ok", root.WriteFile("note", nil, 0o600)
				})
				tm := newTeam(t, clerk(callsFirst(tt.calls...), pay.Tool, rest.Tool, note), engine.Member{Name: "other", Agent: &counter{}})
				s := errand()
				s.TTL = time.Hour
				j, res := journaled(t, tm, s, spec("other"))
				require.NoError(t, res.Err())
				time.Sleep(2 * time.Hour)
				again := resumed(t, tm, interrupted(j, nil), s, spec("other"))
				require.EqualValues(t, 1, pay.calls.Load())
				if tt.code == "" {
					require.NoError(t, again.Err())
					return
				}
				require.Equal(t, tt.code, again.Tasks[0].Error.Code)
			})
		})
	}
}

// A call that the agent makes with other arguments than before the run was interrupted does
// not take the result of the first one, and is not made after it.
func TestAnotherCallDoesNotTakeAnOldResult(t *testing.T) {
	t.Parallel()
	var paid []string
	team := func(to string) *engine.Team {
		pay := newTool(t, "pay", tool.Options{}, func(_ context.Context, in struct{ To string }) (string, error) {
			paid = append(paid, in.To)
			return "paid " + in.To, nil
		})
		return toolTeam(t, byTurn(func(turn int, r llm.Request) llm.Response {
			switch turn {
			case 1:
				return llm.Response{ToolCalls: []llm.ToolCall{call("look", `{}`)}}
			case 2:
				return llm.Response{ToolCalls: []llm.ToolCall{call("pay", `{"To":"`+to+`"}`)}}
			}
			return llm.Response{Text: r.Messages[len(r.Messages)-1].Text}
		}), newCountedTool(t, "look", noEffect).Tool, pay)
	}
	j, res := journaled(t, team("alice"), errand())
	require.NoError(t, res.Err())
	h := interrupted(j, func(e *record.Entry) bool { return answerEntry(e) && e.Exchange.Part != "/turn/2" })
	for i := range h.Log {
		if x := h.Log[i].Exchange; x != nil {
			unreadable := *x
			unreadable.Missing, h.Log[i].Exchange = "the key is not there", &unreadable
		}
	}
	again := resumed(t, team("bob"), h, errand())
	require.Equal(t, "EFFECTS_UNCERTAIN", again.Tasks[0].Error.Code)
	require.Equal(t, []string{"alice"}, paid)
}

// A resumed conversation does not continue before the task has a slot.
func TestResumedConversationWaitsForItsSlot(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var holding, crossed atomic.Bool
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		team := func(again bool) *engine.Team {
			pay := newTool(t, "pay", tool.Options{}, func(context.Context, struct{}) (string, error) {
				crossed.Store(crossed.Load() || holding.Load())
				return "paid", nil
			})
			m := namedModel{func(ctx context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
				switch turn := turnOf(r); {
				case turn == 1:
					return llm.Response{ToolCalls: []llm.ToolCall{call("look", `{}`)}}, nil
				case !again: // the process dies in the second turn
					cancel()
					<-ctx.Done()
					return llm.Response{}, ctx.Err()
				case turn == 2:
					time.Sleep(time.Second) // the other task has begun by then
					return llm.Response{ToolCalls: []llm.ToolCall{call("pay", `{}`)}}, nil
				}
				return llm.Response{Text: "done"}, nil
			}}
			first := versioned{engine.AgentFunc(func(ctx context.Context, _ prompt.Prompt) (agent.Reply, error) {
				if !again {
					<-ctx.Done()
					return agent.Reply{}, ctx.Err()
				}
				holding.Store(true)
				defer holding.Store(false)
				time.Sleep(time.Minute)
				return agent.Reply{Text: "x"}, nil
			})}
			return newTeam(t, engine.Member{Name: "first", Agent: first}, clerk(m, newCountedTool(t, "look", noEffect).Tool, pay))
		}
		specs := []task.Spec{spec("first"), errand()}
		j := &memory{}
		_, err := team(false).RunTasks(ctx, specs, &engine.RunOptions{RunID: "r", Journal: j, MaxConcurrency: 2})
		require.NoError(t, err)
		h := interrupted(j, nil)
		require.True(t, durableIn(h).answered["/turn/1"], "the conversation has begun")
		res := run(t, team(true), &engine.RunOptions{RunID: "r", Journal: after(h), MaxConcurrency: 1}, specs...)
		require.NoError(t, res.Err())
		require.False(t, crossed.Load(), "the task paid while another one held the only slot")
	})
}
