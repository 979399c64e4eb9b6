package engine_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/callfault"
	"github.com/runteam/runteam/internal/engine"
	"github.com/runteam/runteam/internal/plan"
	"github.com/runteam/runteam/label"
	"github.com/runteam/runteam/llm"
	"github.com/runteam/runteam/task"
)

// logged runs tasks with a logger of this level and returns its records.
func logged(t *testing.T, level slog.Level, o *engine.RunOptions, specs []task.Spec, members ...engine.Member) (text string, records []map[string]any) {
	t.Helper()
	var out bytes.Buffer
	tm, err := engine.New(engine.Config{Agents: members, Logger: slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level}))})
	require.NoError(t, err)
	run(t, tm, o, specs...)
	for line := range strings.Lines(out.String()) {
		var r map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &r))
		records = append(records, r)
	}
	return out.String(), records
}

// TestDebugLogOfCallsAndRetries checks that the log names calls, retries and
// decisions with their numbers, and quotes neither prompts, replies nor errors.
func TestDebugLogOfCallsAndRetries(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		model := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
			if calls++; calls == 1 {
				return llm.Response{}, &llm.Error{Kind: callfault.ServerError, Status: 503, Message: "WORDS"}
			}
			return llm.Response{Text: "WORDS", CallInfo: llm.CallInfo{FinishReason: "stop"}, Usage: llm.Usage{InputTokens: 7, OutputTokens: 3}}, nil
		})
		first, second := spec("a"), retrying("b", 1)
		first.Description, second.DependsOn = "WORDS", task.On("a")
		b := engine.Member{Name: "b", Agent: engine.AgentFunc(flaky(1, errBroken))}
		members := []engine.Member{{Name: "a", Backend: plan.Backend{Model: "m-1"}, Agent: agent.New(model, agent.Options{})}, b}
		text, records := logged(t, slog.LevelDebug, nil, []task.Spec{first, second}, members...)
		require.NotContains(t, text, "WORDS")
		require.NotContains(t, text, errBroken.Error())

		var seen []string
		byKind := map[string]map[string]any{}
		for _, r := range records {
			kind := r["msg"].(string)
			if kind == "gate decision" && r["to"] != "b" {
				continue
			}
			seen = append(seen, kind+" "+r["task"].(string))
			if byKind[kind] == nil {
				byKind[kind] = r
			}
			require.Equal(t, r["task"], r["agent"])
		}
		require.Equal(t, []string{"agent called a", "model call retried a", "agent finished a", "gate decision b", "agent called b", "agent finished b", "task retried b",
			"gate decision b", "agent called b", "agent finished b"}, seen)
		done := byKind["agent finished"]
		require.Equal(t, "m-1", done["model"])
		require.EqualValues(t, 1, done["attempt"])
		require.EqualValues(t, 7, done["input_tokens"])
		require.EqualValues(t, 3, done["output_tokens"])
		require.Positive(t, done["duration"])
		require.Equal(t, "MODEL_SERVER_ERROR", byKind["model call retried"]["code"])
		require.Positive(t, byKind["model call retried"]["wait"])
		require.Equal(t, "AGENT_ERROR", byKind["task retried"]["code"])
		require.Equal(t, "a", byKind["gate decision"]["from"])
		require.EqualValues(t, len("WORDS"), byKind["gate decision"]["bytes_before"])
	})
	_, records := logged(t, slog.LevelInfo, nil, []task.Spec{spec("a")}, member("a", says("x")))
	require.Empty(t, records, "nothing at the level info")
}

// TestDebugLogOfAFallback checks that a retry is logged without a model if it may be any
// of the chain.
func TestDebugLogOfAFallback(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta) error) (llm.Response, error) {
			return llm.Response{}, &llm.Error{Kind: callfault.ServerError, Status: 503}
		})
		failing := agent.New(down, agent.Options{Fallback: []llm.Model{down}})
		_, records := logged(t, slog.LevelDebug, nil, []task.Spec{spec("a")}, engine.Member{Name: "a", Backend: plan.Backend{Model: "m-1"}, Agent: failing})
		retries := 0
		for _, r := range records {
			switch r["msg"] {
			case "model call retried":
				retries++
				require.NotContains(t, r, "model")
			case "agent called":
				require.Equal(t, "m-1", r["model"])
			}
		}
		require.Equal(t, 4, retries)
	})
}

// TestDebugLogHasNoSizeOfHiddenValues checks that the log has no size of what is
// above the caller's clearance.
//
// Requirement: G42.
func TestDebugLogHasNoSizeOfHiddenValues(t *testing.T) {
	t.Parallel()
	secret := spec("a")
	secret.Classification = label.Secret
	_, records := logged(t, slog.LevelDebug, nil, []task.Spec{secret, spec("b")}, cleared("a", label.Secret, says("five!")), member("b", says("x")))
	decisions := 0
	for _, r := range records {
		if r["msg"] == "gate decision" && r["label_before"] == label.Secret.String() {
			decisions++
			require.EqualValues(t, 0, r["bytes_before"], "%v", r)
		}
		if r["msg"] == "agent finished" && r["task"] == "a" {
			require.EqualValues(t, 0, r["bytes"], "%v", r)
		}
	}
	require.Positive(t, decisions)
}
