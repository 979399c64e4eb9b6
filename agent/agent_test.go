package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/process"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/prompt"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	process.StopTime = 300 * time.Millisecond
	goleak.VerifyTestMain(m)
}

const scoreSchema = `{"type":"object","properties":{"score":{"type":"integer","maximum":10}},"required":["score"],"additionalProperties":false}`

// promptOf returns a prompt with this system prompt and schema.
func promptOf(t testing.TB, system, schema string) prompt.Prompt {
	k, err := gate.Negotiate(gate.Request{Session: "s", Task: "t"}, &gate.Capabilities{Agent: "writer"})
	require.NoError(t, err)
	p, _, err := prompt.Build(brief.Brief{Contract: k, Task: &task.Task{ID: "t", Spec: task.Spec{Title: "Score it", Description: "From 0 to 10."}}, System: system, Schema: schema})
	require.NoError(t, err)
	return p
}

// A fake is a model that answers from a list and records its requests.
type fake struct {
	mu       sync.Mutex // guards both
	answers  []answer
	requests []llm.Request
}

type answer struct {
	res llm.Response
	err error
}

func says(texts ...string) *fake {
	f := new(fake)
	for _, text := range texts {
		f.answers = append(f.answers, answer{res: llm.Response{Text: text, CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: llm.Usage{InputTokens: 10, OutputTokens: 1}}})
	}
	return f
}

func (f *fake) Call(ctx context.Context, req llm.Request, emit func(llm.Delta) error) (llm.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if emit != nil {
		return llm.Response{}, errors.New("unexpected request for a stream")
	}
	req.Messages = slices.Clone(req.Messages)
	f.requests = append(f.requests, req)
	if len(f.requests) > len(f.answers) {
		return llm.Response{}, errors.New("one call too many")
	}
	a := f.answers[len(f.requests)-1]
	return a.res, a.err
}

// hangs is a model that answers when its context ends, as a [llm.Model] must.
var hangs = llm.ModelFunc(func(ctx context.Context, _ llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
	<-ctx.Done()
	return llm.Response{}, context.Cause(ctx)
})

func TestPromptIsPassedVerbatim(t *testing.T) {
	t.Parallel()
	p, model := promptOf(t, " You score.\n\n<b> ", ""), says(" An answer.\n")
	reply, err := agent.New(model, agent.Options{
		Settings: llm.Settings{MaxTokens: 77, Temperature: new(0.0), TopP: new(0.5), FrequencyPenalty: new(-1.0), PresencePenalty: new(0.0), Seed: new(int64(7)), Stop: []string{"END"}, ReasoningEffort: "low"},
	}).Run(t.Context(), p)
	require.NoError(t, err)
	require.Equal(t, agent.Reply{Text: " An answer.\n", Usage: llm.Usage{InputTokens: 10, OutputTokens: 1}, Turns: 1, Call: llm.CallInfo{FinishReason: "stop"}}, reply)
	require.Equal(t, []llm.Request{{
		System: p.System(), Messages: []llm.Message{{Role: llm.User, Text: p.Text()}}, Settings: llm.Settings{MaxTokens: 77, Temperature: new(0.0), TopP: new(0.5), FrequencyPenalty: new(-1.0), PresencePenalty: new(0.0), Seed: new(int64(7)), Stop: []string{"END"}, ReasoningEffort: "low"},
	}}, model.requests)
	require.Equal(t, " You score.\n\n<b> ", p.System())
}

func TestStructuredAnswer(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"bare": `{"score": 7}`, "spaces around": "\n {\"score\": 7} \n", "in a fence": "```json\n{\"score\": 7}\n```", "in a bare fence": "```\n{\"score\": 7}\n```",
	} {
		model := says(text)
		reply, err := agent.New(model, agent.Options{}).Run(t.Context(), promptOf(t, "", scoreSchema))
		require.NoError(t, err, name)
		require.Equal(t, `{"score":7}`, reply.JSON.Canonical(), name)
		require.Equal(t, text, reply.Text, name)
		require.Equal(t, 1, reply.Turns, name)
		require.Contains(t, model.requests[0].System, scoreSchema)
	}
}

// Words around the answer cause no further call, and are not part of it: nothing validated
// them.
func TestStructuredAnswerInText(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"prose": "Here it is: {\"score\": 7}. The IBAN was fine.", "a fence in prose": "Sure!\n```json\n{\"score\": 7}\n```\nDone.",
		"a thought": "<think>{\"score\": 3}? No, [7].</think>{\"score\": 7}", "citations": "After [1] and [2]: {\"score\": 7}",
	} {
		reply, err := agent.New(says(text), agent.Options{}).Run(t.Context(), promptOf(t, "", scoreSchema))
		require.NoError(t, err, name)
		require.Equal(t, 1, reply.Turns, name)
		require.Equal(t, `{"score":7}`, reply.JSON.Canonical(), name)
		require.Equal(t, `{"score": 7}`, reply.Text, name)
	}
}

func TestOneCorrectiveTurn(t *testing.T) {
	t.Parallel()
	for name, first := range map[string]string{
		"prose": "I would say seven.", "two values": `{"score":7} {"score":8}`, "duplicate keys": `{"score":7,"score":8}`,
		"another type": `{"score":"seven"}`, "out of range": `{"score":11}`, "a property too many": `{"score":7,"why":"x"}`, "one too few": `{}`, "two fences": "```json\n{\"score\":7}\n```\n```json\n{\"score\":8}\n```",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, model := promptOf(t, "", scoreSchema), says(first, `{"score":7}`)
			reply, err := agent.New(model, agent.Options{}).Run(t.Context(), p)
			require.NoError(t, err)
			require.Equal(t, `{"score":7}`, reply.JSON.Canonical())
			require.Equal(t, `{"score":7}`, reply.Text, "the answer that counts")
			require.Equal(t, 2, reply.Turns)
			require.Equal(t, llm.Usage{InputTokens: 20, OutputTokens: 2}, reply.Usage)
			require.Len(t, model.requests, 2)
			require.Equal(t, model.requests[0].System, model.requests[1].System)
			messages := model.requests[1].Messages
			require.Len(t, messages, 3)
			require.Equal(t, llm.Message{Role: llm.User, Text: p.Text()}, messages[0])
			require.Equal(t, llm.Message{Role: llm.Assistant, Text: first}, messages[1])
			require.Equal(t, llm.User, messages[2].Role)
			require.Regexp(t, `^That answer cannot be used: .+\. Answer again with one JSON value that matches the schema, and with nothing else\.$`, messages[2].Text)
		})
	}
}

func TestCorrectionNamesTheProblems(t *testing.T) {
	t.Parallel()
	model := says(`{"score":"seven"}`, `{"score":7}`)
	_, err := agent.New(model, agent.Options{}).Run(t.Context(), promptOf(t, "", scoreSchema))
	require.NoError(t, err)
	correction := model.requests[1].Messages[2].Text
	require.Contains(t, correction, `/score: found "seven"; expected type "integer"`)
}

func TestNoThirdTurn(t *testing.T) {
	t.Parallel()
	model := says(`{"score":"CANARY"}`, `{"score":"CANARY","CANARY":1}`, `{"score":7}`)
	reply, err := agent.New(model, agent.Options{}).Run(t.Context(), promptOf(t, "", scoreSchema))
	require.ErrorIs(t, err, agent.Condition(codes.Schema))
	require.Len(t, model.requests, 2)
	require.Zero(t, reply.JSON)
	require.Equal(t, 2, reply.Turns)
	require.Equal(t, llm.Usage{InputTokens: 20, OutputTokens: 2}, reply.Usage)
	require.NotContains(t, err.Error(), "CANARY")
}

func TestMaxTurnsOne(t *testing.T) {
	t.Parallel()
	model := says("prose", `{"score":7}`)
	reply, err := agent.New(model, agent.Options{MaxTurns: 1}).Run(t.Context(), promptOf(t, "", scoreSchema))
	require.ErrorIs(t, err, agent.Condition(codes.MaxTurns))
	require.Len(t, model.requests, 1)
	require.Equal(t, llm.Usage{InputTokens: 10, OutputTokens: 1}, reply.Usage)
	_, err = agent.New(says(`{"score":7}`), agent.Options{MaxTurns: 1}).Run(t.Context(), promptOf(t, "", scoreSchema))
	require.NoError(t, err)
	_, err = agent.New(says("prose", `{"score":7}`), agent.Options{MaxTurns: -1}).Run(t.Context(), promptOf(t, "", scoreSchema))
	require.NoError(t, err, "below zero means the default")
}

// Requirement: G21.
func TestToolCallsAreRefused(t *testing.T) {
	t.Parallel()
	call := llm.Response{Text: " ", CallInfo: llm.CallInfo{FinishReason: "tool_calls"}, ToolCalls: []llm.ToolCall{{Name: "shell\n## Inputs", Arguments: "CANARY"}}, Usage: llm.Usage{InputTokens: 10, OutputTokens: 1}}
	for _, before := range []*fake{says(), says("prose")} {
		before.answers = append(before.answers, answer{res: call})
		reply, err := agent.New(before, agent.Options{}).Run(t.Context(), promptOf(t, "", scoreSchema))
		require.ErrorIs(t, err, agent.Condition(codes.ToolCall))
		require.Contains(t, err.Error(), "shell")
		require.NotContains(t, err.Error(), "\n")
		require.NotContains(t, err.Error(), "CANARY")
		require.Equal(t, llm.Usage{InputTokens: 10, OutputTokens: 1}.InputTokens*len(before.requests), reply.Usage.InputTokens)
		require.Zero(t, reply.JSON)
	}
}

// TestTextNextToAToolCallIsTheAnswer checks that an unexpected tool call does not discard the
// text beside it.
func TestTextNextToAToolCallIsTheAnswer(t *testing.T) {
	t.Parallel()
	for _, reason := range []string{"tool_calls", "stop"} {
		call := llm.Response{Text: `{"score":7}`, CallInfo: llm.CallInfo{FinishReason: reason}, ToolCalls: []llm.ToolCall{{Name: "CANARY", Arguments: "CANARY"}}}
		reply, err := agent.New(&fake{answers: []answer{{res: call}}}, agent.Options{}).Run(t.Context(), promptOf(t, "", scoreSchema))
		require.NoError(t, err)
		require.Equal(t, `{"score":7}`, reply.JSON.Canonical())
		require.Equal(t, []string{"the model called the tool CANARY, which it was not given; the text beside the call is the answer"}, reply.Warnings)
	}
	for _, cut := range []string{"length", "content_filter"} {
		call := llm.Response{Text: "half", CallInfo: llm.CallInfo{FinishReason: cut}, ToolCalls: []llm.ToolCall{{Name: "x"}}}
		_, err := agent.New(&fake{answers: []answer{{res: call}}}, agent.Options{}).Run(t.Context(), promptOf(t, "", ""))
		require.Error(t, err, cut)
	}
}

// TestRepliesThatEndInACall checks calls that a limit or a filter ended, and replies that only say that they have calls.
func TestRepliesThatEndInACall(t *testing.T) {
	t.Parallel()
	reply := func(text, reason string, arguments ...string) llm.Response {
		res := llm.Response{Text: text, CallInfo: llm.CallInfo{FinishReason: reason}, Usage: llm.Usage{OutputTokens: 50}}
		for _, a := range arguments {
			res.ToolCalls = append(res.ToolCalls, llm.ToolCall{Name: "add", Arguments: a})
		}
		return res
	}
	const inCall = "maxTokens 50 of the agent in a call of the tool add"
	for name, tt := range map[string]struct {
		replies  []llm.Response
		says     string
		code     string // empty for an answer
		mentions string
	}{
		"a limit cut the call":              {[]llm.Response{reply("", "length", `{"a":1,"b"`)}, "", codes.Truncated, inCall},
		"a limit cut the last call":         {[]llm.Response{reply("I add.", "max_tokens", `{"a":1}`, `{"a`)}, "", codes.Truncated, inCall},
		"a limit ended a reply in a call":   {[]llm.Response{reply("", "length", `{"a":1}`)}, "", codes.Truncated, inCall},
		"a cut call is said to be whole":    {[]llm.Response{reply("", "tool_calls", `{"a":1,"b":[2`)}, "", codes.Truncated, inCall},
		"a cut call is said to stop":        {[]llm.Response{reply("I add.", "stop", `{"a":"`)}, "", codes.Truncated, inCall},
		"a filter":                          {[]llm.Response{reply("", "content_filter", `{"a":1}`)}, "", codes.Filtered, "content_filter"},
		"calls without a call":              {[]llm.Response{reply("4", "tool_calls")}, "4", "", ""},
		"calls without a call, then a text": {[]llm.Response{reply("", "tool_calls"), reply("4", "stop")}, "4", "", ""},
		"calls without a call, twice":       {[]llm.Response{reply(" ", "tool_use"), reply("<think>I add.</think>", "tool_calls")}, "", "", "neither"},
	} {
		model := &fake{}
		for _, res := range tt.replies {
			model.answers = append(model.answers, answer{res: res})
		}
		got, err := agent.New(model, agent.Options{Settings: llm.Settings{MaxTokens: 50}, Retry: llm.RetryOptions{Extra: 1, Delay: 1}}).Run(t.Context(), promptOf(t, "", ""))
		require.Len(t, model.requests, len(tt.replies), name)
		require.False(t, got.Truncated, "%s: no task accepts a call that was cut", name)
		require.Empty(t, got.ToolCalls, name)
		if tt.says != "" {
			require.NoError(t, err, name)
			require.Equal(t, tt.says, got.Text, name)
			continue
		}
		if tt.code != "" {
			require.ErrorIs(t, err, agent.Condition(tt.code), name)
			require.ErrorContains(t, err, tt.mentions, name)
			continue
		}
		failed, _ := errors.AsType[*llm.Error](err)
		require.NotNil(t, failed, name)
		require.Equal(t, callfault.Empty, failed.Kind, name)
	}
}

// TestReasoningIsNotTheAnswer checks that reasoning is separated from the text, wherever the
// endpoint put it, and that a reply with reasoning alone is an error.
func TestReasoningIsNotTheAnswer(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		give      llm.Response
		text, why string
	}{
		"in the text":            {llm.Response{Text: "<think>\nwhy\n</think>\n\n7"}, "7", "why"},
		"apart":                  {llm.Response{Text: "7", Reasoning: "why"}, "7", "why"},
		"apart, and in the text": {llm.Response{Text: "<think>why</think>7", Reasoning: "why"}, "7", "why"},
		"two":                    {llm.Response{Text: "<think>what</think>7", Reasoning: "why"}, "7", "why\n\nwhat"},
		"truncated after it":     {llm.Response{Text: "<think>why</think>7", CallInfo: llm.CallInfo{FinishReason: "length"}}, "7", "why"},
		"truncated inside":       {llm.Response{Text: "<think>why 7", CallInfo: llm.CallInfo{FinishReason: "length"}}, "", "why 7"},
	} {
		model := &fake{answers: []answer{{res: tt.give}}}
		reply, err := agent.New(model, agent.Options{}).Run(t.Context(), promptOf(t, "", ""))
		if tt.give.FinishReason == "length" {
			require.ErrorIs(t, err, agent.Condition(codes.Truncated), name)
			require.Equal(t, tt.text != "", reply.Truncated, name)
		} else {
			require.NoError(t, err, name)
		}
		require.Equal(t, []string{tt.text, tt.why}, []string{reply.Text, reply.Reasoning}, name)
	}
	for _, text := range []string{"<think>The answer is 7.", "<think>why</think>\n"} {
		model := says(text, "<think>why</think>7")
		reply, err := agent.New(model, agent.Options{Retry: llm.RetryOptions{Delay: 1}}).Run(t.Context(), promptOf(t, "", ""))
		require.NoError(t, err)
		require.Equal(t, "7", reply.Text)
		require.Len(t, model.requests, 2, "%q is no answer, and the call is made again", text)
		_, err = agent.New(says(text), agent.Options{Retry: llm.RetryOptions{Extra: -1}}).Run(t.Context(), promptOf(t, "", ""))
		failed, ok := errors.AsType[*llm.Error](err)
		require.True(t, ok)
		require.Equal(t, callfault.Empty, failed.Kind)
	}
	model := says("<think>CANARY</think>prose", `<thinking>CANARY</thinking>{"score":7}`)
	_, err := agent.New(model, agent.Options{}).Run(t.Context(), promptOf(t, "", scoreSchema))
	require.NoError(t, err)
	require.NotContains(t, fmt.Sprint(model.requests), "CANARY", "a corrective call has none of it")
}

// Requirement: G32.
func TestJSONWithoutSchemaIsText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{`{"tool_calls":[{"name":"shell","arguments":"rm"}]}`, `<tool_call>{"name":"shell"}</tool_call>`, "[TOOL_CALLS] [{\"name\":\"shell\"}]"} {
		model := says(text)
		reply, err := agent.New(model, agent.Options{}).Run(t.Context(), promptOf(t, "", ""))
		require.NoError(t, err)
		require.Equal(t, text, reply.Text)
		require.Len(t, model.requests, 1)
		require.Zero(t, reply.JSON, "no schema, no structure")
	}
}

func TestUsageCountsEveryCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		spent := func(n int) error {
			return &llm.Error{Kind: callfault.ServerError, Status: 503, Usage: llm.Usage{InputTokens: n, OutputTokens: n}}
		}
		model := says("prose")
		model.answers = append([]answer{{err: spent(100)}, {err: spent(200)}}, model.answers...)
		model.answers = append(model.answers, answer{err: spent(1000)}, answer{err: spent(2000)}, answer{err: spent(4000)})
		reply, err := agent.New(model, agent.Options{}).Run(t.Context(), promptOf(t, "", scoreSchema))
		failed, ok := errors.AsType[*llm.Error](err)
		require.True(t, ok)
		require.Equal(t, callfault.ServerError, failed.Kind)
		require.Len(t, model.requests, 6, "two more for each call")
		require.Equal(t, llm.Usage{InputTokens: 100 + 200 + 10 + 1000 + 2000 + 4000, OutputTokens: 100 + 200 + 1 + 1000 + 2000 + 4000}, reply.Usage)
		require.Equal(t, 1, reply.Turns, "calls that answered")
		require.Equal(t, "prose", reply.Text)
	})
}

func TestRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := says("done")
		model.answers = append([]answer{{err: &llm.Error{Kind: callfault.RateLimited, Status: 429, RetryAfter: time.Minute}}}, model.answers...)
		start := time.Now()
		reply, err := agent.New(model, agent.Options{}).Run(t.Context(), promptOf(t, "", ""))
		require.NoError(t, err)
		require.Equal(t, "done", reply.Text)
		require.Equal(t, time.Minute, time.Since(start))

		model.requests = nil
		_, err = agent.New(model, agent.Options{CallTimeout: 7 * time.Second}).Run(t.Context(), promptOf(t, "", ""))
		require.NoError(t, err, "the wait between two calls is no part of either")

		never := &fake{answers: []answer{{err: &llm.Error{Kind: callfault.BadRequest, Status: 400}}}}
		_, err = agent.New(never, agent.Options{}).Run(t.Context(), promptOf(t, "", ""))
		require.Error(t, err)
		require.Len(t, never.requests, 1)

		once := &fake{answers: []answer{{err: &llm.Error{Kind: callfault.ServerError, Status: 500}}}}
		_, err = agent.New(once, agent.Options{Retry: llm.RetryOptions{Extra: -1}}).Run(t.Context(), promptOf(t, "", ""))
		require.Error(t, err)
		require.Len(t, once.requests, 1)
	})
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		options agent.Options
		model   llm.Model
		after   time.Duration
		want    func(error) bool
	}{
		{"the whole work", agent.Options{Timeout: time.Minute}, hangs, time.Minute, func(err error) bool { return errors.Is(err, agent.Condition(codes.Timeout)) }},
		{"one call", agent.Options{CallTimeout: 7 * time.Second}, hangs, 7 * time.Second, isTimeout},
		{"one call, by default", agent.Options{}, hangs, 5 * time.Minute, isTimeout},
		{"below zero means the default", agent.Options{CallTimeout: -1, Timeout: -1}, hangs, 5 * time.Minute, isTimeout},
		{"the call before the work", agent.Options{Timeout: time.Minute, CallTimeout: time.Second}, hangs, time.Second, isTimeout},
		{"the work while a retry waits", agent.Options{Timeout: 10 * time.Second},
			&fake{answers: []answer{{err: &llm.Error{Kind: callfault.RateLimited, Status: 429, RetryAfter: time.Minute}}}}, 10 * time.Second, func(err error) bool { return errors.Is(err, agent.Condition(codes.Timeout)) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				_, err := agent.New(tt.model, tt.options).Run(t.Context(), promptOf(t, "", ""))
				require.Truef(t, tt.want(err), "%v", err)
				require.Equal(t, tt.after, time.Since(start))
			})
		})
	}
}

func isTimeout(err error) bool {
	failed, ok := errors.AsType[*llm.Error](err)
	return ok && failed.Kind == callfault.Timeout
}

func TestCallTimeoutAppliesToEachCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		slow := llm.ModelFunc(func(ctx context.Context, _ llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
			select {
			case <-time.After(6 * time.Second):
			case <-ctx.Done():
				return llm.Response{}, context.Cause(ctx)
			}
			calls++
			return llm.Response{Text: []string{"prose", `{"score":7}`}[calls-1]}, nil
		})
		_, err := agent.New(slow, agent.Options{CallTimeout: 7 * time.Second}).Run(t.Context(), promptOf(t, "", scoreSchema))
		require.NoError(t, err)
		calls = 0
		_, err = agent.New(slow, agent.Options{Timeout: 7 * time.Second}).Run(t.Context(), promptOf(t, "", scoreSchema))
		require.ErrorIs(t, err, agent.Condition(codes.Timeout))
	})
}

func TestRunStopsWhenContextEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stop := errors.New("the run was stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stop) })
		_, err := agent.New(hangs, agent.Options{Timeout: time.Hour}).Run(ctx, promptOf(t, "", ""))
		require.ErrorIs(t, err, stop)
		require.NotErrorIs(t, err, agent.Condition(codes.Timeout))
	})
}

func TestNoModel(t *testing.T) {
	t.Parallel()
	a := agent.New(nil, agent.Options{})
	_, err := a.Run(t.Context(), promptOf(t, "", ""))
	require.ErrorIs(t, err, llm.ErrNoModel)
	require.Equal(t, []string{""}, a.Endpoints())
}

// located is a model that says where it is.
type located struct{ *fake }

func (located) Endpoint() string { return "http://127.0.0.1:1/v1" }

// Requirement: G51.
func TestEndpoint(t *testing.T) {
	t.Parallel()
	require.Equal(t, []string{"http://127.0.0.1:1/v1"}, agent.New(located{says()}, agent.Options{}).Endpoints())
	require.Equal(t, []string{""}, agent.New(says(), agent.Options{}).Endpoints())
}

func TestBadSchemaCallsNoModel(t *testing.T) {
	t.Parallel()
	model := says("x")
	_, err := agent.New(model, agent.Options{}).Run(t.Context(), promptOf(t, "", `{"type":"nothing of the kind`))
	require.ErrorIs(t, err, schema.ErrInvalid)
	require.Empty(t, model.requests)
}

func TestRunsAreIndependent(t *testing.T) {
	t.Parallel()
	model := llm.ModelFunc(func(_ context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		if len(req.Messages) == 1 {
			return llm.Response{Text: "prose of " + req.System[:1]}, nil
		}
		if req.Messages[1].Text != "prose of "+req.System[:1] {
			return llm.Response{}, errors.New("that is another conversation")
		}
		return llm.Response{Text: `{"score":` + req.System[:1] + `}`}, nil
	})
	a := agent.New(model, agent.Options{})
	var wg sync.WaitGroup
	for i := range 9 {
		p := promptOf(t, string(rune('0'+i)), scoreSchema)
		wg.Go(func() {
			for range 20 {
				reply, err := a.Run(t.Context(), p)
				if err != nil || reply.JSON.Canonical() != `{"score":`+string(rune('0'+i))+`}` {
					t.Errorf("%v %v", reply, err)
				}
			}
		})
	}
	wg.Wait()
}
