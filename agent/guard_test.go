package agent_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/agent"
	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/internal/supervise"
	"github.com/runteam/runteam/llm"
)

// TestProblemsOfAnAnswer holds that a mismatch is explained with the path, the value
// found and the value expected, and that only a const that applies in any case, and
// to which the answer has a value of the right type, is a guard.
func TestProblemsOfAnAnswer(t *testing.T) {
	t.Parallel()
	const judge = `{"type":"object","properties":{"verdict":{"type":"string","const":"approve"},"note":{"type":"string"}},"required":["verdict","note"],"additionalProperties":false}`
	tests := []struct {
		name, schema, give string
		guard              bool
		want               string
	}{
		{"another verdict", judge, `{"verdict":"reject","note":"no"}`, true, `/verdict: found "reject"; expected const "approve"`},
		{"a verdict of another type", judge, `{"verdict":7,"note":"no"}`, false, `/verdict: found 7; expected type "string"`},
		{"no verdict", judge, `{"note":"no"}`, false, `the whole value: found {"note":"no"}; expected required ["verdict","note"] (missing properties: ["verdict"])`},
		{"another verdict and no note", judge, `{"verdict":"reject"}`, false, `the whole value: found {"verdict":"reject"}; expected required ["verdict","note"] (missing properties: ["note"])`},
		{"another verdict and a wrong note", judge, `{"verdict":"reject","note":7}`, false, `/note: found 7; expected type "string"`},
		{"an enum beside a const", `{"properties":{"v":{"enum":["approve","reject"],"const":"approve"}}}`, `{"v":"maybe"}`, false, `/v: found "maybe"; expected enum ["approve","reject"]`},
		{"one of an enum beside a const", `{"properties":{"v":{"enum":["approve","reject"],"const":"approve"}}}`, `{"v":"reject"}`, true, `/v: found "reject"; expected const "approve"`},
		{"another type, without a type", `{"properties":{"v":{"const":"approve"}}}`, `{"v":7}`, false, `/v: found 7; expected type "string"`},
		{"a definition that is a choice, too", `{"$defs":{"v":{"const":"yes"}},"properties":{"v":{"$ref":"#/$defs/v"},"w":{"anyOf":[{"$ref":"#/$defs/v"}]}}}`, `{"v":"yes","w":"no"}`, false, ``},
		{"an enum", `{"properties":{"verdict":{"enum":["approve","revise"]}}}`, `{"verdict":"reject"}`, false, `/verdict: found "reject"; expected enum ["approve","revise"]`},
		{"a const without a type", `{"properties":{"ok":{"const":true}}}`, `{"ok":false}`, true, `/ok: found false; expected const true`},
		{"a number", `{"properties":{"n":{"const":1}}}`, `{"n":2}`, true, `/n: found 2; expected const 1`},
		{"a const of null", `{"properties":{"n":{"const":null}}}`, `{"n":2}`, false, `/n: found 2; expected const null`},
		{"an object", `{"properties":{"o":{"const":{"a":1}}}}`, `{"o":{"a":2}}`, true, `/o: found {"a":2}; expected const {"a":1}`},
		{"the root", `{"const":"yes"}`, `"no"`, true, `the whole value: found "no"; expected const "yes"`},
		{"a reference", `{"$defs":{"v":{"const":"yes"}},"properties":{"v":{"$ref":"#/$defs/v"}}}`, `{"v":"no"}`, true, `/v: found "no"; expected const "yes"`},
		{"a list", `{"items":{"properties":{"v":{"const":"yes"}}}}`, `[{"v":"yes"},{"v":"no"}]`, true, `/1/v: found "no"; expected const "yes"`},
		{"two guards", `{"items":{"const":"yes"}}`, `["no","never"]`, true, `/0: found "no"; expected const "yes"`},
		{"in allOf", `{"allOf":[{"properties":{"v":{"const":"yes"}}}]}`, `{"v":"no"}`, true, `/v: found "no"; expected const "yes"`},
		{"of other members", `{"additionalProperties":{"const":"yes"}}`, `{"v":"no"}`, true, `/v: found "no"; expected const "yes"`},
		{"in anyOf", `{"properties":{"v":{"anyOf":[{"const":"yes"},{"const":"maybe"}]}}}`, `{"v":"no"}`, false, `/v: found "no"; expected anyOf [{"const":"yes"},{"const":"maybe"}]`},
		{"in oneOf", `{"properties":{"v":{"oneOf":[{"const":"yes"}]}}}`, `{"v":"no"}`, false, `/v: found "no"; expected oneOf [{"const":"yes"}]`},
		{"in not", `{"properties":{"v":{"not":{"const":"no"}}}}`, `{"v":"no"}`, false, `/v: found "no"; expected not {"const":"no"}`},
		{"in then", `{"if":{"required":["v"]},"then":{"properties":{"v":{"const":"yes"}}}}`, `{"v":"no"}`, false, ``},
		{"a name in the path", `{"properties":{"a/b":{"minimum":3}}}`, `{"a/b":2}`, false, `/a~1b: found 2; expected minimum 3`},
		{"the item that is wrong", `{"items":{"type":"integer"}}`, `[1,2,"x",4]`, false, `/2: found "x"; expected type "integer"`},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"v":{"const":"yes"}},"properties":{"v":{"$ref":"#/definitions/v"}}}`, `{"v":"no"}`, true, `/v: found "no"; expected const "yes"`},
		{"a long value", `{"properties":{"v":{"type":"integer"}}}`, `{"v":"` + strings.Repeat("é", 5000) + `"}`, false, `/v: found "` + strings.Repeat("é", 99)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := agent.ParseSchema(tt.schema)
			require.NoError(t, err)
			v, err := envelope.ParseJSON(tt.give)
			require.NoError(t, err)
			err = s.Validate(v)
			require.Error(t, err)
			require.Equal(t, tt.guard, errors.Is(err, agent.ErrGuard))
			got := agent.Problem(err)
			require.True(t, strings.HasPrefix(got, tt.want), got)
			require.Less(t, len(got), 1200)
			if !tt.guard && strings.Contains(tt.schema, `"const":"approve"`) && !strings.Contains(tt.schema, "enum") {
				require.NotContains(t, got, "approve", "the const is not pressed")
			}
		})
	}
	s, err := agent.ParseSchema(`{"properties":{"n":{"const":1}}}`)
	require.NoError(t, err)
	v, err := envelope.ParseJSON(`{"n":1.0}`)
	require.NoError(t, err)
	require.NoError(t, s.Validate(v))
}

// TestGuardsAreNotCorrected counts the model calls for an answer of the right form that
// fails a guard. Another fault is corrected, and the explanation leaves the guard out.
func TestGuardsAreNotCorrected(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"verdict":{"const":"approve"},"note":{"type":"string"}},"required":["verdict","note"]}`
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
		reply, err := agent.New(model, agent.Options{}).Run(t.Context(), promptOf(t, "", schema))
		require.Len(t, model.asked, tt.calls, name)
		require.Equal(t, tt.give[len(tt.give)-1], reply.Text, name)
		if tt.calls == 2 && tt.guard {
			require.NotContains(t, model.asked[1].Messages[2].Text, "approve", name)
		}
		if !tt.guard {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorIs(t, err, agent.ErrGuard, name)
		require.ErrorIs(t, err, agent.ErrSchema, name)
		require.EqualError(t, err, `the answer fails a guard of the output schema: the schema at /properties/verdict demands const "approve"`)
		require.Equal(t, `/verdict: found "reject"; expected const "approve"`, agent.Problem(err), name)
	}
}

// TestGuardsDoNotBindTheEndpoint holds that an endpoint which forces the form of a reply
// does not force the verdict. The prompt has the schema as it is written.
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
		_, _ = agent.New(model, agent.Options{}).Run(supervise.WithTurn(t.Context(), 1), promptOf(t, "", give))
		require.JSONEq(t, want, string(model.asked[0].Schema))
		require.Contains(t, model.asked[0].System, `"const"`)
	}
}

// TestManyMissesTakeLinearTime holds that neither many guards nor a deep value of a
// recursive schema make a mismatch slow to explain.
func TestManyMissesTakeLinearTime(t *testing.T) {
	t.Parallel()
	for schema, give := range map[string]string{
		`{"items":{"const":"yes"}}`: "[" + strings.Repeat(`"no",`, 100_000) + `"no"]`,
		`{"$defs":{"l":{"type":["array","string"],"items":{"$ref":"#/$defs/l"}}},"$ref":"#/$defs/l"}`: strings.Repeat("[", 90) + strings.Repeat(`"x",`, 100_000) + "7" + strings.Repeat("]", 90),
	} {
		s, err := agent.ParseSchema(schema)
		require.NoError(t, err)
		v, err := envelope.ParseJSON(give)
		require.NoError(t, err)
		err = s.Validate(v)
		require.Error(t, err)
		require.Contains(t, agent.Problem(err), "found ")
	}
}

// TestAnswerOfTooMuchWorkIsNotSearched holds that an answer that would need too many
// checks is refused without a search for the place that is wrong. The search would take years.
func TestAnswerOfTooMuchWorkIsNotSearched(t *testing.T) {
	t.Parallel()
	s, err := agent.ParseSchema(`{"properties":{"child":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`)
	require.NoError(t, err)
	v, err := envelope.ParseJSON(strings.Repeat(`{"child":`, 60) + `{}` + strings.Repeat(`}`, 60))
	require.NoError(t, err)
	require.Contains(t, agent.Problem(s.Validate(v)), "nest less deeply")
}

// TestTruncatedAnswerFailsItsGuard holds that an answer that says all that its schema
// demands, and something else than a guard does, is not asked for again because a limit cut the words behind it.
func TestTruncatedAnswerFailsItsGuard(t *testing.T) {
	t.Parallel()
	const judge = `{"properties":{"verdict":{"const":"approve"}},"required":["verdict"]}`
	for text, guard := range map[string]bool{`{"verdict":"reject"} because`: true, `{"verdict":"approve"} because`: false, `{"verdict":"rej`: false, `{"verdict":7} because`: false} {
		m := &fake{answers: []answer{{res: llm.Response{Text: text, CallInfo: llm.CallInfo{FinishReason: "length"}}}}}
		reply, err := agent.New(m, agent.Options{}).Run(t.Context(), promptOf(t, "", judge))
		require.Equal(t, guard, errors.Is(err, agent.ErrGuard), "%s: %v", text, err)
		require.Equal(t, !guard, errors.Is(err, agent.ErrTruncated), "%s: %v", text, err)
		require.Equal(t, text == `{"verdict":"approve"} because`, reply.JSON.Canonical() != "", text)
	}
}
