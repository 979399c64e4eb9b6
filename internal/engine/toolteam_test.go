package engine_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

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

// byTurn is a model whose reply depends on the number of the turn, from 1.
func byTurn(reply func(turn int, r llm.Request) llm.Response) namedModel {
	return namedModel{func(_ context.Context, r llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		return reply(turnOf(r), r), nil
	}}
}

// turnOf returns the number of the turn that a request asks for.
func turnOf(r llm.Request) int {
	turn := 1
	for _, m := range r.Messages {
		if m.Role == llm.Assistant {
			turn++
		}
	}
	return turn
}

// callsFirst is a model that makes calls in its first turn, and then answers "done".
func callsFirst(calls ...llm.ToolCall) namedModel {
	return byTurn(func(turn int, _ llm.Request) llm.Response {
		if turn == 1 {
			return llm.Response{ToolCalls: calls}
		}
		return llm.Response{Text: "done"}
	})
}

// A listening model keeps the last request of the model that it wraps.
type listening struct {
	namedModel
	last llm.Request
}

func (l *listening) Call(ctx context.Context, r llm.Request, f func(llm.Delta) error) (llm.Response, error) {
	l.last = r
	return l.namedModel.Call(ctx, r, f)
}

// answered returns the text of the last message that the model was sent.
func (l *listening) answered() string { return l.last.Messages[len(l.last.Messages)-1].Text }

// call is a call of a tool by a model.
func call(name, arguments string) llm.ToolCall {
	return llm.ToolCall{ID: "1", Name: name, Arguments: arguments}
}

// noEffect are the options of a tool that computes only.
var noEffect = tool.Options{Effect: tool.None}

// newTool makes a tool of a function.
func newTool[In any](t testing.TB, name string, o tool.Options, f func(context.Context, In) (string, error)) *tool.Tool {
	t.Helper()
	made, err := tool.New(name, "", f, o)
	require.NoError(t, err)
	return made
}

// A countedTool counts its calls.
type countedTool struct {
	*tool.Tool
	calls atomic.Int32
}

// newCountedTool returns a tool with any arguments that returns "ok".
func newCountedTool(t testing.TB, name string, o tool.Options) *countedTool {
	t.Helper()
	c := &countedTool{}
	c.Tool = newTool(t, name, o, func(context.Context, map[string]any) (string, error) {
		c.calls.Add(1)
		return "ok", nil
	})
	return c
}

// clerk is an agent that may call tools, also from untrusted context.
func clerk(m llm.Model, tools ...*tool.Tool) engine.Member {
	c := engine.Member{Name: "clerk", Agent: agent.New(m, agent.Options{Retry: llm.RetryOptions{Extra: -1}}), Tools: tools}
	for _, f := range tools {
		c.AllowUntrusted = append(c.AllowUntrusted, f.Name)
	}
	return c
}

// toolTeam is a team of the clerk alone.
func toolTeam(t testing.TB, m llm.Model, tools ...*tool.Tool) *engine.Team {
	t.Helper()
	return newTeam(t, clerk(m, tools...))
}

// errand is a task of the clerk.
func errand() task.Spec { return by("clerk", spec("errand")) }

// runBefore runs the errand, whose context ends after half of the time, and fails if the run
// takes longer.
func runBefore(t testing.TB, limit time.Duration, tm *engine.Team) *engine.Result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit/2)
	defer cancel()
	done := make(chan *engine.Result, 1)
	go func() {
		res, _ := tm.RunTasks(ctx, []task.Spec{errand()}, nil)
		done <- res
	}()
	select {
	case res := <-done:
		return res
	case <-time.After(limit):
		t.Fatal("the run hangs, although its context has ended")
		return nil
	}
}

// journaled runs tasks as the run r, and returns the journal.
func journaled(t testing.TB, tm *engine.Team, specs ...task.Spec) (*memory, *engine.Result) {
	t.Helper()
	j := &memory{}
	return j, run(t, tm, &engine.RunOptions{RunID: "r", Journal: j}, specs...)
}

// interrupted is what a journal has of a run that died before its end, without the entries
// for which drop is true.
func interrupted(j *memory, drop func(*record.Entry) bool) *record.History {
	h := j.history(j.len())
	h.End = nil
	var kept []record.Entry
	for _, e := range h.Log {
		if drop == nil || !drop(&e) {
			kept = append(kept, e)
		}
	}
	h.Log = kept
	return h
}

// answerEntry reports whether an entry is the end of a model call.
func answerEntry(e *record.Entry) bool { return e.Exchange != nil }

// resumed resumes the run r.
func resumed(t testing.TB, tm *engine.Team, h *record.History, specs ...task.Spec) *engine.Result {
	t.Helper()
	return run(t, tm, &engine.RunOptions{RunID: "r", Journal: after(h)}, specs...)
}
