package scripted_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/callinfo"
	"github.com/runteam/runteam/internal/endpoint"
	"github.com/runteam/runteam/internal/scripted"
	"github.com/runteam/runteam/llm"
)

// TestRecordingReplaysFailuresInOrder compares a run with retries with its
// recording, both over HTTP.
func TestRecordingReplaysFailuresInOrder(t *testing.T) {
	t.Parallel()
	_, m := start(t, &scripted.Script{Replies: []scripted.Reply{
		{Task: "a", Status: 500, Times: 1}, {Task: "a", Text: "cut short", Cut: true, Times: 1}, {Task: "a", Text: "first", Times: 1},
		{Task: "a", Status: 429, RetryAfter: time.Second, Times: 1}, {Task: "a", Text: " ", Times: 1}, {Task: "a", Text: "second"},
		{Task: "b", Status: 401},
	}})
	var r scripted.Recorder
	once := func(m llm.Model) (answers []string) {
		for _, user := range []string{"# Task: a", "# Task: b", "# Task: a"} {
			for range 5 { // as Retry does, without its waiting
				res, _, err := call(t, m, user, false)
				e, failed := errors.AsType[*llm.Error](err)
				if !failed {
					require.NoError(t, err)
					answers = append(answers, res.Text)
					break
				}
				answers = append(answers, e.Kind)
				if !e.Retryable() {
					break
				}
			}
		}
		return answers
	}
	want := []string{"server error", "cut", "first", "unauthorized", "rate limited", "empty", "second"}
	require.Equal(t, want, once(r.Model(m)))
	_, again := start(t, reread(t, written(t, r.Script())))
	require.Equal(t, want, once(again))
	for _, reply := range r.Script().Replies {
		require.Zero(t, reply.RetryAfter+reply.Delay, "a replay does not wait")
	}
}

func TestRecordedFailures(t *testing.T) {
	t.Parallel()
	tests := []struct {
		give   error
		want   string
		status int
		says   string
	}{
		{&llm.Error{Kind: callfault.Unauthorized, Status: 403, Message: "not for you"}, callfault.Unauthorized, 403, "not for you"},
		{&llm.Error{Kind: callfault.Unauthorized, Err: llm.ErrNoKey}, callfault.Unauthorized, 401, "when this was recorded: unauthorized"},
		{&llm.Error{Kind: callfault.RateLimited, Status: 429, RetryAfter: time.Hour}, callfault.RateLimited, 429, "the script says 429"},
		{&llm.Error{Kind: callfault.NoCredit, Status: 429, Message: "spent"}, callfault.NoCredit, 402, "spent"},
		{&llm.Error{Kind: callfault.ServerError, Status: 408}, callfault.ServerError, 408, ""},
		{&llm.Error{Kind: callfault.ServerError, Status: 599, Message: "oh"}, callfault.ServerError, 599, "oh"},
		{&llm.Error{Kind: callfault.UnknownModel, Status: 404, Message: "no gtp"}, callfault.UnknownModel, 404, "no gtp"},
		{&llm.Error{Kind: callfault.NotFound, Status: 302, Message: "it redirects"}, callfault.UnknownModel, 404, "it redirects"}, // the scripted endpoint lists its models
		{&llm.Error{Kind: callfault.BadRequest, Status: 422, Message: "temperature"}, callfault.BadRequest, 422, "temperature"},
		{&llm.Error{Kind: callfault.BadRequest, Message: "a setting is not a number"}, callfault.BadRequest, 400, "a setting"},
		{&llm.Error{Kind: callfault.BadResponse, Status: 200, Message: "HTML instead of JSON"}, callfault.BadResponse, 200, "HTML instead of JSON"},
		{&llm.Error{Kind: callfault.Cut, Status: 200}, callfault.Cut, 200, ""},
		{&llm.Error{Kind: callfault.Empty, Status: 200, Usage: llm.Usage{InputTokens: 3, OutputTokens: 4}}, callfault.Empty, 200, ""},
		{&llm.Error{Kind: callfault.TooLarge, Status: 200, Message: "the limit"}, callfault.BadRequest, 400, "the limit"},
		{&llm.Error{Kind: callfault.PromptTooLong, Status: 400, Message: "context of 8192"}, callfault.PromptTooLong, 413, "context of 8192"},
		{&llm.Error{Kind: callfault.Unreachable, Message: "connection refused"}, callfault.ServerError, 503, "when this was recorded: unreachable: connection refused"},
		{&llm.Error{Kind: callfault.Timeout, Message: "the limit is 5m0s"}, callfault.ServerError, 504, "when this was recorded: timeout: the limit is 5m0s"},
		{fmt.Errorf("task: %w", context.Canceled), callfault.ServerError, 500, "when this was recorded: task: context canceled"},
	}
	for _, tt := range tests {
		t.Run(tt.give.Error(), func(t *testing.T) {
			t.Parallel()
			var r scripted.Recorder
			_, err := r.Model(asked{err: tt.give}.model()).Call(t.Context(), request("x"), nil)
			require.Equal(t, tt.give, err)
			_, m := start(t, reread(t, written(t, r.Script())))
			for _, stream := range []bool{false, true} {
				_, _, err = call(t, m, "x", stream)
				e, ok := errors.AsType[*llm.Error](err)
				require.True(t, ok, "%v", err)
				require.Equal(t, tt.want, e.Kind)
				require.Equal(t, tt.status, e.Status)
				require.Contains(t, e.Message, tt.says)
				if tt.want == callfault.Empty {
					require.Equal(t, llm.Usage{InputTokens: 3, OutputTokens: 4}, e.Usage)
				}
			}
		})
	}
}

func TestRecordingDistinguishesAgents(t *testing.T) {
	t.Parallel()
	calls := []asked{
		{system: "You help.", user: "# Task: Review", text: "short"},
		{system: "You help.\nYou are a lawyer.", user: "# Task: Review", text: "lawyer"},
		{system: "You help.\nYou are a doctor.", user: "# Task: Review", text: "doctor"},
		{system: "", user: "# Task: Review", text: "nobody"},
		{system: "You help.\nYou are a lawyer.", user: "# Task: Other", text: "other"},
	}
	file := record(t, calls)
	for range 20 { // whatever the order
		rand.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		replay(t, file, calls)
	}
	require.Contains(t, file, `system: "You are a lawyer."`, "a line is enough")
	require.Equal(t, 1, strings.Count(file, "lawyer.\""), "and none is needed where the title is enough")
}

func TestRecordingDistinguishesParts(t *testing.T) {
	t.Parallel()
	part := func(n int) string {
		return strings.Replace(digestPrompt, "part 2 of 3", fmt.Sprintf("part %d of 3", n), 1)
	}
	calls := []asked{{user: part(1), text: "one"}, {user: part(3), text: "three"}, {user: part(2), text: "two"}, {user: synthesisPrompt, text: "all"}}
	file := record(t, calls)
	calls[0], calls[2], calls[3] = calls[3], calls[0], calls[2]
	replay(t, file, calls)
}

func TestRecordingKeepsToolCalls(t *testing.T) {
	t.Parallel()
	want := llm.Response{
		Text: "I look", CallInfo: llm.CallInfo{FinishReason: "tool_calls", Model: "any-name"}, Usage: llm.Usage{InputTokens: 3, OutputTokens: 4},
		ToolCalls: []llm.ToolCall{{ID: "1", Name: "search", Arguments: `{"q": "<a>\n"}`}, {ID: "2", Name: "stop", Arguments: "{}"}},
	}
	var r scripted.Recorder
	m := r.Model(llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) { return want, nil }))
	_, err := m.Call(t.Context(), request("x"), nil)
	require.NoError(t, err)
	_, again := start(t, reread(t, written(t, r.Script())))
	for _, stream := range []bool{false, true} {
		got, _, err := call(t, again, "x", stream)
		require.NoError(t, err)
		got.Model, got.Endpoint = "any-name", "" // a recording names neither
		want.Provider, got.Provider = nil, nil   // of another endpoint
		require.Equal(t, want, got)
	}
}

// TestRecordingKeepsFinishReasons replays replies that did not end with a normal stop.
func TestRecordingKeepsFinishReasons(t *testing.T) {
	t.Parallel()
	for _, want := range []llm.Response{
		{Text: "half", CallInfo: llm.CallInfo{FinishReason: "length"}},
		{CallInfo: llm.CallInfo{FinishReason: "length"}},
		{Text: "half", CallInfo: llm.CallInfo{FinishReason: "content_filter"}},
		{Text: "half", CallInfo: llm.CallInfo{FinishReason: "lunch"}},
		{Text: "I will not.", CallInfo: llm.CallInfo{FinishReason: "stop"}, Refusal: "I will not."},
	} {
		var r scripted.Recorder
		m := r.Model(llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) { return want, nil }))
		_, err := m.Call(t.Context(), request("x"), nil)
		require.NoError(t, err)
		_, again := start(t, reread(t, written(t, r.Script())))
		got, _, err := call(t, again, "x", false)
		require.NoError(t, err)
		require.Equal(t, want.Text, got.Text)
		require.Equal(t, callinfo.FinishOf(&want), callinfo.FinishOf(&got))
	}
}

func TestRecorderDoesNotChangeCalls(t *testing.T) {
	t.Parallel()
	srv, m := start(t, &scripted.Script{Replies: []scripted.Reply{{Text: strings.Repeat("streamed ", 100)}}})
	var r scripted.Recorder
	require.Equal(t, srv.URL(), endpoint.Of(r.Model(m)))
	require.Empty(t, endpoint.Of(r.Model(asked{}.model())))
	_, deltas, err := call(t, r.Model(m), "x", true)
	require.NoError(t, err)
	require.Greater(t, deltas, 10)
	full := errors.New("disk full")
	_, err = r.Model(m).Call(t.Context(), request("x"), func(llm.Delta) error { return full })
	require.ErrorIs(t, err, full)
	_, err = r.Model(nil).Call(t.Context(), request("x"), nil)
	require.ErrorIs(t, err, llm.ErrNoModel)
	require.Len(t, r.Script().Replies, 3)
	require.Empty(t, (&scripted.Recorder{}).Script().Replies)
}

func TestRecorderOmitsUnfinishedCalls(t *testing.T) {
	t.Parallel()
	var r scripted.Recorder
	var during []scripted.Reply
	m := r.Model(llm.ModelFunc(func(_ context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		during = r.Script().Replies
		return llm.Response{Text: "done"}, nil
	}))
	_, err := m.Call(t.Context(), request("# Task: a"), nil)
	require.NoError(t, err)
	require.Empty(t, during)
	require.Len(t, r.Script().Replies, 1)
}

func TestRecorderIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	var r scripted.Recorder
	m := r.Model(llm.ModelFunc(func(_ context.Context, req llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		return llm.Response{Text: "answer to " + req.Messages[0].Text}, nil
	}))
	var wg sync.WaitGroup
	var calls []asked
	for i := range 100 {
		user := fmt.Sprintf("# Task: %d", i)
		calls = append(calls, asked{user: user, text: "answer to " + user})
		wg.Go(func() {
			_, _ = m.Call(context.Background(), request(user), nil)
			_ = r.Script()
		})
	}
	wg.Wait()
	replay(t, written(t, r.Script()), calls)
}

func TestCallThatWasCanceledIsNotRecorded(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	var rec scripted.Recorder
	m := rec.Model(llm.ModelFunc(func(ctx context.Context, _ llm.Request, _ func(llm.Delta) error) (llm.Response, error) {
		cancel()
		return llm.Response{}, context.Cause(ctx)
	}))
	_, err := m.Call(ctx, llm.Request{Messages: []llm.Message{{Role: llm.User, Text: "# Task: A\n\nGo."}}}, nil)
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, rec.Script().Replies, "a replay answers it as a call that was never made")
}
