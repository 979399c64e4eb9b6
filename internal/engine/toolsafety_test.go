package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/event"
	"github.com/runteam/runteam/internal/gate"
	"github.com/runteam/runteam/internal/record"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
	"github.com/runteam/runteam/tool"
)

// A tool that ignores its context is abandoned when its time is over.
func TestRunDoesNotWaitForAToolThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		stuck := make(chan struct{})
		defer close(stuck)
		hang := newTool(t, "hang", tool.Options{Effect: tool.None, Timeout: time.Minute}, func(ctx context.Context, _ struct{}) (string, error) {
			c, _ := tool.CallFrom(ctx)
			_, err := c.Shared.Get("k", func() (io.Closer, error) { <-stuck; return nil, io.EOF })
			return "", err
		})
		m := &listening{namedModel: callsFirst(call("hang", `{}`))}
		began := time.Now()
		res := run(t, toolTeam(t, m, hang), nil, errand())
		require.NoError(t, res.Err())
		require.Equal(t, time.Minute, time.Since(began))
		require.Contains(t, m.answered(), "the tool timed out after 1m0s")
	})
}

// The time limit of a task counts the calls of its tools, also of one that ignores its context.
func TestTimeoutCountsCallsOfTools(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := newTool(t, "slow", tool.Options{Effect: tool.None, Timeout: time.Hour}, func(context.Context, struct{}) (string, error) {
			time.Sleep(40 * time.Second)
			return "ok", nil
		})
		defer time.Sleep(time.Minute) // until the abandoned call returns
		s := errand()
		s.Timeout = time.Minute
		began := time.Now()
		res := run(t, toolTeam(t, byTurn(func(int, llm.Request) llm.Response {
			return llm.Response{ToolCalls: []llm.ToolCall{call("slow", `{}`)}}
		}), slow), nil, s)
		require.Equal(t, time.Minute, time.Since(began))
		require.Equal(t, "TIMEOUT", res.Tasks[0].Error.Code)
	})
}

// No effect follows a call of the same reply that ended the attempt or the run.
func TestNoEffectAfterAFailureOfTheSameReply(t *testing.T) {
	t.Parallel()
	for name, effect := range map[string]tool.Effect{"beside a call without effects": tool.None, "after a call with effects": tool.External} {
		t.Run("the run is canceled "+name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			pay := newCountedTool(t, "pay", tool.Options{})
			stop := newTool(t, "stop", tool.Options{Effect: effect}, func(context.Context, struct{}) (string, error) {
				cancel()
				return "ok", nil
			})
			res, err := toolTeam(t, callsFirst(call("stop", `{}`), call("pay", `{}`)), stop, pay.Tool).RunTasks(ctx, []task.Spec{errand()}, nil)
			require.NoError(t, err)
			require.Equal(t, task.Skipped, res.Tasks[0].Status)
			require.Zero(t, pay.calls.Load())
		})
		t.Run("the record fails "+name, func(t *testing.T) {
			t.Parallel()
			pay, first := newCountedTool(t, "pay", tool.Options{}), newCountedTool(t, "first", tool.Options{Effect: effect})
			failing := func(_ context.Context, r record.Prompt) error {
				if len(r.Handoffs) > 0 && r.Handoffs[0].To == "tool:first" {
					return errors.New("no space left")
				}
				return nil
			}
			res := run(t, toolTeam(t, callsFirst(call("first", `{}`), call("pay", `{}`)), first.Tool, pay.Tool), &engine.RunOptions{Recorder: failing}, errand())
			require.Equal(t, "RECORD_FAILED", res.Tasks[0].Error.Code)
			require.Zero(t, first.calls.Load()+pay.calls.Load())
		})
	}
}

// A call whose outcome a resumed run does not know ends the attempt before the next call.
func TestNoEffectAfterAnUncertainCallOfTheSameReply(t *testing.T) {
	t.Parallel()
	first, pay := newCountedTool(t, "first", tool.Options{}), newCountedTool(t, "pay", tool.Options{})
	tm := toolTeam(t, callsFirst(call("first", `{}`), call("pay", `{}`)), first.Tool, pay.Tool)
	j, _ := journaled(t, tm, errand())
	h := interrupted(j, func(e *record.Entry) bool {
		return answerEntry(e) || e.ToolResult != nil || e.ToolCall != nil && e.ToolCall.Agent == "tool:pay"
	})
	res := resumed(t, tm, h, errand())
	require.Equal(t, "EFFECTS_UNCERTAIN", res.Tasks[0].Error.Code)
	require.EqualValues(t, 1, first.calls.Load())
	require.EqualValues(t, 1, pay.calls.Load())
}

// Each ruling on arguments is recorded once as a decision for the tool, and the agent learns
// why its call was not made.
func TestArgumentsThatAToolDoesNotGetAreRecorded(t *testing.T) {
	t.Parallel()
	digits := json.RawMessage(`{"type":"object","properties":{"card":{"type":"string","pattern":"^[0-9 ]+$"}}}`)
	for _, tt := range []struct {
		name      string
		arguments string
		rule      *handoff.PairRule
		message   label.Classification // of a message to the agent
		verdict   gate.Verdict
		told      string
	}{
		{"delivered", `{"card":"1234"}`, nil, label.Internal, gate.Passed, "ok"},
		{"withheld by a rule", `{"card":"1234"}`, &handoff.PairRule{Mode: handoff.Minimal}, label.Internal, gate.Minimized, "Call refused: the policy delivers no arguments to pay."},
		{"translated into a text", `{"card":"` + strings.Repeat("1234 ", 100) + `"}`, &handoff.PairRule{Translate: &handoff.Translation{MaxTokens: 20}}, label.Internal, gate.Passed, "Call refused: the policy translates what pay gets into a text"},
		{"refused because of the label", `{"card":"1234"}`, nil, label.Confidential, gate.Withheld, "Call refused: it is confidential"},
		{"invalid once redacted", `{"card":"4111 1111 1111 1111"}`, nil, label.Internal, gate.Passed, "Invalid arguments, once they are redacted: "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			pay := newCountedTool(t, "pay", tool.Options{})
			pay.Parameters = digits
			m := &listening{namedModel: callsFirst(call("pay", tt.arguments))}
			c := clerk(m, pay.Tool)
			c.Accepts = label.Confidential
			policy := &handoff.Policy{}
			if tt.rule != nil {
				tt.rule.From, tt.rule.To = "clerk", "tool:pay"
				policy.Rules = append(policy.Rules, *tt.rule)
			}
			var l ledger
			var a audience
			res := run(t, governed(t, policy, c), a.with(engine.RunOptions{Recorder: l.Record, Messages: []engine.Message{{From: handoff.User, To: "clerk", Text: "a note", Classification: tt.message}}}), errand())
			require.NoError(t, res.Err())
			require.Equal(t, tt.told == "ok", pay.calls.Load() == 1)
			require.Contains(t, m.answered(), tt.told)
			var decided, heard []event.Handoff
			for _, h := range l.handoffs() {
				if h.To == "tool:pay" {
					decided = append(decided, h)
				}
			}
			for _, e := range a.only(event.Handed) {
				if e.Handoff.To == "tool:pay" {
					heard = append(heard, *e.Handoff)
				}
			}
			require.Len(t, decided, 1)
			require.Equal(t, tt.verdict, decided[0].Verdict)
			require.Equal(t, "clerk", decided[0].From)
			require.Equal(t, decided, heard)
			require.False(t, strings.Contains(m.answered(), "4111"))
		})
	}
}
