package engine_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// A described is a model that says who answered. Its replies repeat the last text.
type described struct {
	mu       sync.Mutex // guards calls
	calls    int
	texts    []string
	info     llm.CallInfo // the request ID gets the number of the call
	warnings []string
}

func (*described) Name() string { return "described" }

func (*described) Endpoint() string { return "http://127.0.0.1:1/v1" }

func (d *described) Call(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	return llm.Response{
		Text: d.texts[min(d.calls, len(d.texts))-1], CallInfo: llm.CallInfo{FinishReason: d.info.FinishReason, Model: d.info.Model, Endpoint: d.info.Endpoint, RequestID: fmt.Sprintf("%s-%d", d.info.RequestID, d.calls)}, Warnings: d.warnings,
	}, nil
}

// TestCallInfoIsRecorded checks that the result, the events and the journal say which
// model call gave an answer, and that replay, resume and reuse say so again.
func TestCallInfoIsRecorded(t *testing.T) {
	t.Parallel()
	info := llm.CallInfo{Model: "m-2026-01", Endpoint: "http://127.0.0.1:1/v1", RequestID: "req", FinishReason: "end_turn"}
	numbered := func(n int) llm.CallInfo {
		c := info
		c.RequestID = fmt.Sprintf("req-%d", n)
		return c
	}
	m := &described{texts: []string{unfit, right}, info: info}
	a, journal := &audience{}, &memory{}
	o := a.options()
	o.RunID, o.Journal = "r", journal
	res := run(t, countingTeam(t, m), o, counting()...)
	require.NoError(t, res.Err())
	require.Equal(t, numbered(2), of(t, res, "count").Call, "the corrected answer is the second call's")
	require.Zero(t, of(t, res, "read").Call, "no model was called")
	require.Contains(t, document(t, res), `"call":{"model":"m-2026-01","endpoint":"http://127.0.0.1:1/v1","requestId":"req-2","finishReason":"end_turn"}`)

	var ids []string
	for _, e := range a.events {
		if e.Call != nil {
			ids = append(ids, fmt.Sprint(e.Type, " ", e.Title, " ", e.Call.RequestID))
		}
	}
	require.Equal(t, []string{"agent_complete count req-2", "agent_complete count req-2", "task_complete count req-2"}, ids)
	var kept []string
	for _, x := range journal.exchanges() {
		if x.Call != (llm.CallInfo{}) {
			kept = append(kept, x.Part+" "+x.Call.RequestID)
		}
	}
	require.Equal(t, []string{"/turn/2 req-2", " req-2"}, kept)

	past := journal.history(journal.len())
	uncalled := &described{texts: []string{"another answer"}}
	replay := run(t, countingTeam(t, uncalled), &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(past)}, counting()...)
	same(t, document(t, res), document(t, replay))
	resumed := run(t, countingTeam(t, uncalled), &engine.RunOptions{RunID: "r", Journal: after(past)}, counting()...)
	require.Equal(t, numbered(2), of(t, resumed, "count").Call)
	reused := run(t, countingTeam(t, uncalled), &engine.RunOptions{Journal: &memory{others: journal.exchanges()}, Reuse: true}, counting()...)
	require.Equal(t, numbered(2), of(t, reused, "count").Call)
	require.Zero(t, uncalled.calls)
}

// TestCallInfoAboveTheCallerIsHidden checks that words which an endpoint chose
// after reading a secret do not reach a caller below it.
//
// Requirement: G42.
func TestCallInfoAboveTheCallerIsHidden(t *testing.T) {
	t.Parallel()
	const canary = "canary-4417"
	m := &described{texts: []string{"done"}, info: llm.CallInfo{Model: canary, RequestID: canary, Endpoint: "http://127.0.0.1:1/v1", FinishReason: "stop"}, warnings: []string{canary}}
	secret := spec("a")
	secret.Classification = label.Secret
	a, journal := &audience{}, &memory{}
	o := a.options()
	o.Journal = journal
	tm := newTeam(t, engine.Member{Name: "a", Agent: agent.New(m, agent.Options{}), Accepts: label.Secret})
	res, err := tm.RunTasks(t.Context(), []task.Spec{secret, by("a", spec("b"))}, o)
	require.NoError(t, err)
	require.Zero(t, of(t, res, "a").Call)
	require.Equal(t, canary, of(t, res, "b").Call.Model, "nothing secret was in that prompt")
	for _, e := range a.events {
		if e.Title == "a" {
			require.NotContains(t, fmt.Sprintf("%+v", orNothing(e.Call)), canary)
		}
	}
	for _, x := range journal.exchanges() {
		if x.Title == "a" {
			require.NotContains(t, fmt.Sprintf("%+v", x), canary)
		}
	}
	require.Equal(t, []string{`agent "a": ` + canary}, res.Warnings, "that of task b")

	m.info.FinishReason = canary
	fail := run(t, newTeam(t, engine.Member{Name: "a", Agent: agent.New(m, agent.Options{}), Accepts: label.Secret}, member("b", says("fine"))), nil, secret, spec("b"))
	require.Zero(t, of(t, fail, "a").Call)
	require.NotContains(t, document(t, fail), canary)
}

func orNothing(c *llm.CallInfo) llm.CallInfo {
	if c == nil {
		return llm.CallInfo{}
	}
	return *c
}

// TestCallInfoIsClean checks that what an endpoint reports is one short line without
// secrets, and that request IDs and model names as providers write them stay.
func TestCallInfoIsClean(t *testing.T) {
	t.Parallel()
	call := func(info llm.CallInfo) llm.CallInfo {
		m := &described{texts: []string{"done"}, info: info}
		return of(t, run(t, newTeam(t, engine.Member{Name: "a", Agent: agent.New(m, agent.Options{})}), nil, spec("a")), "a").Call
	}
	got := call(llm.CallInfo{Model: "m\x1b[31m\n" + strings.Repeat("x", 9000), RequestID: "id " + fakeToken, FinishReason: "stop"})
	require.True(t, strings.HasPrefix(got.Model, `m\u001b[31m xxx`), got.Model)
	require.LessOrEqual(t, len(got.Model), 300)
	require.NotContains(t, got.RequestID, fakeToken)
	for _, id := range []string{"req_011CSHoEeqs5C35K2UUqR7Fy", "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "8693453219043", "gen-1767225600-PtNbCcZ8sZJcVvPEeXbR", "d1c0a3a4-7b1e-4a53-9d2b-6a2f1f0c1c9e", "20250722193246a54e9cda0d974443"} {
		require.Equal(t, id+"-1", call(llm.CallInfo{RequestID: id}).RequestID)
	}
	for _, name := range []string{"gpt-4o-2024-08-06", "claude-sonnet-4-5-20250929", "meta-llama/Llama-3.3-70B-Instruct", "models/gemini-2.5-flash", "accounts/fireworks/models/deepseek-v3"} {
		require.Equal(t, name, call(llm.CallInfo{Model: name}).Model)
	}
}

// TestWarningsOfModelCalls checks that a warning of a model is one of the run, once for
// each agent and text.
func TestWarningsOfModelCalls(t *testing.T) {
	t.Parallel()
	m := &described{texts: []string{"done"}, warnings: []string{"the endpoint does not take\ntemperature; it was left out", "another"}}
	member := engine.Member{Name: "a", Agent: agent.New(m, agent.Options{}), Backend: plan.Backend{Version: "1"}}
	specs := []task.Spec{spec("a"), by("a", spec("b", "a"))}
	a, journal := &audience{}, &memory{}
	o := a.options()
	o.RunID, o.Journal = "r", journal
	res := run(t, newTeam(t, member), o, specs...)
	want := []string{`agent "a": the endpoint does not take temperature; it was left out`, `agent "a": another`}
	require.Equal(t, want, res.Warnings)
	var said []string
	for _, e := range a.only(event.Warning) {
		said = append(said, e.Message)
	}
	require.Equal(t, want, said)
	past := journal.history(journal.len())
	require.Equal(t, want, past.End.Warnings)
	same(t, document(t, res), document(t, run(t, newTeam(t, member), &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(past)}, specs...)))
	require.Equal(t, 2, m.calls)

	text, _ := logged(t, slog.LevelDebug, nil, specs, member)
	require.Contains(t, text, "it was left out")

	for i := range 40 {
		m.warnings = append(m.warnings, fmt.Sprint("warning ", i))
	}
	require.Len(t, run(t, newTeam(t, member), nil, specs...).Warnings, 20+1)
}

// TestDebugLogNamesTheCall checks that the log has the request ID of each call.
func TestDebugLogNamesTheCall(t *testing.T) {
	t.Parallel()
	m := &described{texts: []string{"done"}, info: llm.CallInfo{Model: "m-2", Endpoint: "http://127.0.0.1:1/v1", RequestID: "req", FinishReason: "stop"}}
	_, records := logged(t, slog.LevelDebug, nil, []task.Spec{spec("a")}, engine.Member{Name: "a", Agent: agent.New(m, agent.Options{})})
	for _, r := range records {
		if r["msg"] == "agent finished" {
			require.Equal(t, []any{"m-2", "http://127.0.0.1:1/v1", "req-1", "stop"}, []any{r["answered_by"], r["endpoint"], r["request_id"], r["finish_reason"]})
			return
		}
	}
	t.Fatal("no call was logged")
}
