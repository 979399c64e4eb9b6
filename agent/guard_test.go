package agent_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/internal/codes"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/llm"
)

// TestGuardsAreNotCorrected counts the model calls for an answer of the right form that
// fails a guard. Another fault is corrected, and the explanation leaves the guard out.
func TestGuardsAreNotCorrected(t *testing.T) {
	t.Parallel()
	const verdict = `{"type":"object","properties":{"verdict":{"const":"approve"},"note":{"type":"string"}},"required":["verdict","note"]}`
	for name, tt := range map[string]struct {
		give  []string
		calls int
		guard bool
	}{
		"at once":               {[]string{`{"verdict":"reject","note":"no"}`}, 1, true},
		"after a correction":    {[]string{`{"verdict":"reject"}`, `{"verdict":"reject","note":"no"}`}, 2, true},
		"with the wrong type":   {[]string{`{"verdict":0,"note":"no"}`, `{"verdict":"approve","note":"yes"}`}, 2, false},
		"passed, after a fault": {[]string{`{"verdict":"approve"}`, `{"verdict":"approve","note":"yes"}`}, 2, false},
	} {
		model := says(tt.give...)
		reply, err := agent.New(model, agent.Options{}).Run(t.Context(), promptOf(t, "", verdict))
		require.Len(t, model.requests, tt.calls, name)
		require.Equal(t, tt.give[len(tt.give)-1], reply.Text, name)
		if tt.calls == 2 && tt.guard {
			require.NotContains(t, model.requests[1].Messages[2].Text, "approve", name)
		}
		if !tt.guard {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, agent.Condition(codes.Guard), name)
		require.ErrorIs(t, err, agent.Condition(codes.Schema), name)
		require.EqualError(t, err, `the answer fails a guard of the output schema: the schema at /properties/verdict demands const "approve"`)
		rejected := new(schema.RejectedError)
		require.ErrorAs(t, err, &rejected)
		require.Equal(t, `/verdict: found "reject"; expected const "approve"`, rejected.Problem, name)
	}
}

// TestGuardsDoNotBindTheEndpoint checks that an endpoint that enforces the schema does not
// enforce the verdict. The prompt has the schema unchanged.
func TestGuardsDoNotBindTheEndpoint(t *testing.T) {
	t.Parallel()
	for give, want := range map[string]string{
		`{"type":"object","properties":{"verdict":{"const":"approve"}}}`:                       `{"type":"object","properties":{"verdict":{"type":"string"}}}`,
		`{"properties":{"a/b":{"type":"integer","const":1,"title":"n"}}}`:                      `{"properties":{"a/b":{"type":"integer","title":"n"}}}`,
		`{"$defs":{"v":{"const":true}},"items":{"$ref":"#/$defs/v"}}`:                          `{"$defs":{"v":{"type":"boolean"}},"items":{"$ref":"#/$defs/v"}}`,
		`{"properties":{"v":{"anyOf":[{"const":"yes"},{"const":"no"}]}}}`:                      `{"properties":{"v":{"anyOf":[{"const":"yes"},{"const":"no"}]}}}`,
		`{"allOf":[{"const":1}],"prefixItems":[{"const":[1]}],"not":{"const":2}}`:              `{"allOf":[{"type":"number"}],"prefixItems":[{"type":"array"}],"not":{"const":2}}`,
		`{"patternProperties":{"^x":{"const":{"a":1}}},"additionalProperties":{"const":null}}`: `{"patternProperties":{"^x":{"type":"object"}},"additionalProperties":{"const":null}}`,
	} {
		model := says("7")
		_, _ = agent.New(model, agent.Options{}).Run(supervise.With(t.Context(), nil, 1), promptOf(t, "", give))
		require.JSONEq(t, want, string(model.requests[0].Schema))
		require.Contains(t, model.requests[0].System, `"const"`)
	}
}

// TestTruncatedAnswerFailsItsGuard checks the answer to be final if it has everything that
// its schema requires but fails a guard, even if a limit cut the words after it.
func TestTruncatedAnswerFailsItsGuard(t *testing.T) {
	t.Parallel()
	const judge = `{"properties":{"verdict":{"const":"approve"}},"required":["verdict"]}`
	for text, guard := range map[string]bool{`{"verdict":"reject"} because`: true, `{"verdict":"approve"} because`: false, `{"verdict":"rej`: false, `{"verdict":7} because`: false} {
		m := &fake{answers: []answer{{res: llm.Response{Text: text, CallInfo: llm.CallInfo{FinishReason: "length"}}}}}
		reply, err := agent.New(m, agent.Options{}).Run(t.Context(), promptOf(t, "", judge))
		require.Equal(t, guard, errors.Is(err, agent.Condition(codes.Guard)), "%s: %v", text, err)
		require.Equal(t, !guard, errors.Is(err, agent.Condition(codes.Truncated)), "%s: %v", text, err)
		require.Equal(t, text == `{"verdict":"approve"} because`, reply.JSON.Canonical() != "", text)
	}
}
