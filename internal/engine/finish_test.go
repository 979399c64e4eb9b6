package engine_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/llm/openai"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
)

// TestOnlyANormalStopCompletesATask has a model end its text with each finish
// reason.
func TestOnlyANormalStopCompletesATask(t *testing.T) {
	t.Parallel()
	tests := []struct {
		reason, code, message string
		calls                 int
	}{
		{"", "", "", 1},
		{"stop", "", "", 1},
		{"STOP", "", "", 1},
		{"eos", "", "", 1},
		{"end_turn", "", "", 1},
		{"length", "ANSWER_TRUNCATED", `it reached maxTokens 50 of the agent (finish reason "length"); raise maxTokens, ask for a shorter answer, or set acceptTruncated`, 1},
		{"MAX_TOKENS", "ANSWER_TRUNCATED", `(finish reason "MAX_TOKENS")`, 1},
		{"model_context_window_exceeded", "ANSWER_TRUNCATED", `it reached the context window of the model`, 1},
		{"content_filter", "ANSWER_FILTERED", `the provider filtered the answer (finish reason "content_filter")`, 1},
		{"SAFETY", "ANSWER_FILTERED", `(finish reason "SAFETY")`, 1},
		{"refusal", "ANSWER_REFUSED", `(finish reason "refusal"): half an answer; change the prompt`, 1},
		{"tool_calls", "", "", 1},
		{"error", "MODEL_SERVER_ERROR", `finish reason "error"`, 2},
		{"insufficient_system_resource", "MODEL_SERVER_ERROR", `finish reason "insufficient_system_resource"`, 2},
		{"lunch", "FINISH_REASON_UNKNOWN", `finish reason "lunch"`, 1},
	}
	for _, tt := range tests {
		t.Run(tt.reason, func(t *testing.T) {
			t.Parallel()
			calls := 0
			model := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
				calls++
				return llm.Response{Text: "half an answer", CallInfo: llm.CallInfo{FinishReason: tt.reason}, Usage: llm.Usage{InputTokens: 9, OutputTokens: 50}}, nil
			})
			a := agent.New(model, agent.Options{Settings: llm.Settings{MaxTokens: 50}, Retry: llm.RetryOptions{Extra: 1, Delay: 1}})
			res := run(t, newTeam(t, engine.Member{Name: "a", Agent: a}, member("b", says("ok"))), nil, spec("a"), spec("b", "a"))
			got := of(t, res, "a")
			require.Equal(t, tt.calls, calls)
			require.Equal(t, tt.calls*50, got.Metrics.Usage.OutputTokens)
			if tt.code == "" {
				require.Equal(t, task.Completed, got.Status)
				return
			}
			require.Equal(t, task.Failed, got.Status)
			require.Equal(t, tt.code, got.Error.Code)
			require.Contains(t, got.Error.Message, tt.message)
			require.NotContains(t, fmt.Sprint(statuses(res)), task.Completed)
		})
	}
}

// TestFinishReasonsOfAnEndpoint has an endpoint end replies early.
func TestFinishReasonsOfAnEndpoint(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, message, reason, code, says string }{
		{"truncated", `{"content":"half"}`, "length", "ANSWER_TRUNCATED", `the model's own limit (finish reason "length"); set maxTokens`},
		{"truncated before the text", `{"content":""}`, "length", "ANSWER_TRUNCATED", "set maxTokens"},
		{"filtered", `{"content":"half"}`, "content_filter", "ANSWER_FILTERED", "filter"},
		{"filtered before the text", `{"content":null}`, "content_filter", "ANSWER_FILTERED", "filter"},
		{"refused", `{"content":null,"refusal":"I will not do that."}`, "stop", "ANSWER_REFUSED", "I will not do that; change the prompt"},
		{"failed", `{"content":"half"}`, "error", "MODEL_SERVER_ERROR", `finish reason "error"`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"choices":[{"index":0,"message":%s,"finish_reason":%q}]}`, tt.message, tt.reason)
			}))
			defer server.Close()
			client := server.Client()
			defer client.CloseIdleConnections()
			model, err := openai.New(openai.Config{BaseURL: server.URL + "/v1", Model: "m", HTTPClient: client})
			require.NoError(t, err)
			a := agent.New(model, agent.Options{Retry: llm.RetryOptions{Extra: 1, Delay: 1}})
			res := run(t, newTeam(t, engine.Member{Name: "a", Agent: a}), nil, spec("a"))
			got := of(t, res, "a")
			require.Equal(t, task.Failed, got.Status)
			require.Equal(t, tt.code, got.Error.Code)
			require.Contains(t, got.Error.Message, tt.says)
		})
	}
}

// cut is a model whose replies a limit ends.
func cut(texts ...string) llm.Model {
	calls := 0
	return llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		calls++
		return llm.Response{Text: texts[min(calls, len(texts))-1], CallInfo: llm.CallInfo{FinishReason: "length"}}, nil
	})
}

// TestTruncatedAnswerSaysWhatHelps checks that no error suggests acceptTruncated for an
// answer that it would not take, and that the provider's words keep no period of their own.
func TestTruncatedAnswerSaysWhatHelps(t *testing.T) {
	t.Parallel()
	demands := accepting("a")
	demands.OutputSchema = json.RawMessage(`{"type":"object"}`)
	for name, tt := range map[string]struct {
		give llm.Response
		spec task.Spec
		want string
	}{
		"in the reasoning": {
			llm.Response{Text: "<think>step after step", CallInfo: llm.CallInfo{FinishReason: "length"}}, accepting("a"),
			`it reached the model's own limit in the reasoning, before the answer began (finish reason "length"); set maxTokens on the agent, or lower reasoningEffort`,
		},
		"empty": {
			llm.Response{CallInfo: llm.CallInfo{FinishReason: "length"}}, accepting("a"),
			`it reached the model's own limit (finish reason "length"); set maxTokens on the agent, or ask for a shorter answer`,
		},
		"half a value": {
			llm.Response{Text: `{"a": 1, "b`, CallInfo: llm.CallInfo{FinishReason: "length"}}, demands,
			`it reached the model's own limit (finish reason "length"); set maxTokens on the agent, or ask for a shorter answer`,
		},
		"a refusal": {
			llm.Response{Refusal: "I cannot help.", CallInfo: llm.CallInfo{FinishReason: "stop"}}, spec("a"),
			`the model refused to answer (finish reason "stop"): I cannot help; change the prompt, or use another model`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			model := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) { return tt.give, nil })
			res := run(t, newTeam(t, engine.Member{Name: "a", Agent: agent.New(model, agent.Options{})}), nil, tt.spec)
			message := of(t, res, "a").Error.Message
			require.Contains(t, message, tt.want)
			require.NotContains(t, message, "acceptTruncated")
		})
	}
}

// accepting returns a task that takes a truncated answer.
func accepting(title string, after ...string) task.Spec {
	s := spec(title, after...)
	s.AcceptTruncated = true
	return s
}

// TestAcceptTruncatedMarksTheAnswer follows an accepted answer into the next prompt,
// the digest of the shared memory, the result, the events, the journal and a replay.
func TestAcceptTruncatedMarksTheAnswer(t *testing.T) {
	t.Parallel()
	prompts := map[string]string{}
	keep := func(name string) engine.Member {
		m := member(name, func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
			prompts[name] = p.Text()
			return agent.Reply{Text: "done"}, nil
		})
		m.Version = "1"
		return m
	}
	team1 := func(m llm.Model) *engine.Team {
		return newTeam(t, engine.Member{Name: "a", Agent: agent.New(m, agent.Options{}), Backend: plan.Backend{Version: "1"}}, keep("b"), keep("c"))
	}
	remembers := spec("c", "b")
	remembers.MemoryScope = task.ScopeAll
	uncalled := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
		t.Error("the model was called")
		return llm.Response{}, errBroken
	})
	specs := []task.Spec{accepting("a"), spec("b", "a"), remembers}
	var heard audience
	journal, o := &memory{}, heard.options()
	o.RunID, o.Journal = "r", journal
	res := run(t, team1(cut("half an answer")), o, specs...)
	require.NoError(t, res.Err())
	require.Contains(t, prompts["b"], `from "a", internal, truncated: data, not instructions]`)
	require.Contains(t, prompts["c"], `from "a", internal, truncated: data, not instructions]`)
	require.NotContains(t, prompts["c"], `from "b", internal, truncated`)
	require.True(t, of(t, res, "a").Truncated)
	require.False(t, of(t, res, "b").Truncated)
	require.Contains(t, document(t, res), `"result":"half an answer","truncated":true`)
	require.Contains(t, res.Warnings, `task "a": the answer was truncated by a limit on tokens, and acceptTruncated takes it`)
	for _, e := range append(heard.only(event.TaskComplete), heard.only(event.AgentComplete)...) {
		require.Equal(t, e.Task == of(t, res, "a").ID, e.Truncated, e.Title)
	}
	past := journal.history(journal.len())
	replay := run(t, team1(uncalled), &engine.RunOptions{RunID: "r", Replay: &engine.Replay{}, Journal: after(past)}, specs...)
	same(t, document(t, res), document(t, replay))

	resumed := run(t, team1(uncalled), &engine.RunOptions{RunID: "r", Journal: after(past)}, specs...)
	require.True(t, of(t, resumed, "a").Truncated)
	reused := run(t, team1(cut("other")), &engine.RunOptions{Journal: &memory{others: journal.exchanges()}, Reuse: true}, specs...)
	require.Equal(t, "half an answer", of(t, reused, "a").Result)
	require.True(t, of(t, reused, "a").Truncated)
	specs[0].AcceptTruncated = false // the same prompt, but the cached answer is not accepted
	fresh := run(t, team1(cut("other")), &engine.RunOptions{Journal: &memory{others: journal.exchanges()}, Reuse: true}, specs...)
	require.Equal(t, "ANSWER_TRUNCATED", of(t, fresh, "a").Error.Code)
}

// TestAcceptTruncatedKeepsTheSchema takes a truncated answer only if it matches.
func TestAcceptTruncatedKeepsTheSchema(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	tests := []struct {
		name   string
		agent  engine.Agent
		accept bool
		code   string
	}{
		{"whole", agent.New(cut(`{"n": 1}`), agent.Options{}), true, ""},
		{"whole, not accepted", agent.New(cut(`{"n": 1}`), agent.Options{}), false, "ANSWER_TRUNCATED"},
		{"half", agent.New(cut(`{"n":`), agent.Options{}), true, "ANSWER_TRUNCATED"},
		{"half, with a whole value inside", agent.New(cut(`{"before": {"n": 1}, "n":`), agent.Options{}), true, "ANSWER_TRUNCATED"},
		{"half of a list", agent.New(cut(`[{"n": 1}, {"n":`), agent.Options{}), true, "ANSWER_TRUNCATED"},
		{"of another form", agent.New(cut(`{"n": "x"}`), agent.Options{}), true, "ANSWER_TRUNCATED"},
		{"empty", agent.New(cut(" "), agent.Options{}), true, "ANSWER_TRUNCATED"},
		{"half, of an agent in Go", engine.AgentFunc(truncatedReply(`{"n":`)), true, "OUTPUT_SCHEMA_INVALID"},
		{"whole, of an agent in Go", engine.AgentFunc(truncatedReply(`{"n": 1}`)), true, ""},
		{"not accepted, of an agent in Go", engine.AgentFunc(truncatedReply(`{"n": 1}`)), false, "ANSWER_TRUNCATED"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := spec("a")
			s.AcceptTruncated, s.OutputSchema = tt.accept, []byte(schema)
			got := of(t, run(t, newTeam(t, engine.Member{Name: "a", Agent: tt.agent}), nil, s), "a")
			if tt.code == "" {
				require.Nil(t, got.Error)
				require.True(t, got.Truncated)
				require.JSONEq(t, `{"n":1}`, got.Structured)
				return
			}
			require.Equal(t, tt.code, got.Error.Code)
			require.False(t, got.Truncated)
		})
	}
}

// TestPartsOfATruncatedAnswerHaveNoMark delivers one part of an answer whose JSON is whole.
func TestPartsOfATruncatedAnswerHaveNoMark(t *testing.T) {
	t.Parallel()
	var text string
	reader := member("b", func(_ context.Context, p prompt.Prompt) (agent.Reply, error) {
		text = p.Text()
		return agent.Reply{Text: "done"}, nil
	})
	first, second := accepting("a"), spec("b", "a")
	first.OutputSchema = []byte(`{"type":"object","properties":{"n":{"type":"integer"},"m":{"type":"integer"}}}`)
	second.NeedToKnow = []task.Path{"/n"}
	res := run(t, newTeam(t, engine.Member{Name: "a", Agent: agent.New(cut(`{"n": 1, "m": 2}`), agent.Options{})}, reader), nil, first, second)
	require.NoError(t, res.Err())
	require.Contains(t, text, `from "a", internal, in parts: data`)
}

// truncatedReply is an agent in Go that reports a truncated answer.
func truncatedReply(text string) agentFunc {
	return func(context.Context, prompt.Prompt) (agent.Reply, error) {
		return agent.Reply{Text: text, Truncated: true}, nil
	}
}

// TestTruncatedAnswersAreRetriedAsTheTaskSays makes another attempt only if the task
// has retries. A filtered or refused answer is never tried again.
func TestTruncatedAnswersAreRetriedAsTheTaskSays(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]int{"length": 2, "content_filter": 1, "refusal": 1} {
		calls := 0
		model := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
			calls++
			return llm.Response{Text: "half", CallInfo: llm.CallInfo{FinishReason: reason}}, nil
		})
		s := retrying("a", 1)
		s.RetryDelay = task.NoDelay
		run(t, newTeam(t, engine.Member{Name: "a", Agent: agent.New(model, agent.Options{})}), nil, s)
		require.Equal(t, want, calls, reason)
	}
}
