package schema_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
	"github.com/stretchr/testify/require"
)

// TestProblemsOfAnAnswer checks that a mismatch is explained with the path, the value
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
		{"no verdict", judge, `{"note":"no"}`, false, `"verdict" is missing; found {"note":"no"}`},
		{"another verdict and no note", judge, `{"verdict":"reject"}`, false, `"note" is missing; found {"verdict":"reject"}`},
		{"another verdict and a wrong note", judge, `{"verdict":"reject","note":7}`, false, `/note: found 7; expected type "string"`},
		{"an enum beside a const", `{"properties":{"v":{"enum":["approve","reject"],"const":"approve"}}}`, `{"v":"maybe"}`, false, `/v: found "maybe"; expected one of ["approve","reject"]`},
		{"one of an enum beside a const", `{"properties":{"v":{"enum":["approve","reject"],"const":"approve"}}}`, `{"v":"reject"}`, true, `/v: found "reject"; expected const "approve"`},
		{"another type, without a type", `{"properties":{"v":{"const":"approve"}}}`, `{"v":7}`, false, `/v: found 7; expected type "string"`},
		{"a definition that is a choice, too", `{"$defs":{"v":{"const":"yes"}},"properties":{"v":{"$ref":"#/$defs/v"},"w":{"anyOf":[{"$ref":"#/$defs/v"}]}}}`, `{"v":"yes","w":"no"}`, false, ``},
		{"another verdict by a definition that is a choice, too", `{"$defs":{"v":{"const":"yes"}},"properties":{"v":{"$ref":"#/$defs/v"},"w":{"oneOf":[true,{"$ref":"#/$defs/v"}]}}}`, `{"v":"no","w":"no"}`, false, `/v: found "no"; expected const "yes"`},
		{"a misspelled name", `{"properties":{"goal":{},"to":{}},"required":["goal"],"additionalProperties":false}`, `{"gaol":"x","to":"b"}`, false, `unknown "gaol"; known are "goal", "to"; "goal" is missing`},
		{"unknown names below", `{"properties":{"a":{"items":{"additionalProperties":false}}}}`, `{"a":[{},{"x":1,"y":2}]}`, false, ``},
		{"unknown names of a member", `{"properties":{"a":{"properties":{"k":{}},"additionalProperties":false}}}`, `{"a":{"x":1,"y":2}}`, false, `/a: unknown "x", "y"; known are "k"`},
		{"several names that are missing", `{"required":["a","b"]}`, `{}`, false, `"a", "b" are missing; found {}`},
		{"an enum of one", `{"properties":{"to":{"enum":["b"]}}}`, `{"to":["b"]}`, false, `/to: found ["b"]; expected "b"`},
		{"an enum", `{"properties":{"verdict":{"enum":["approve","revise"]}}}`, `{"verdict":"reject"}`, false, `/verdict: found "reject"; expected one of ["approve","revise"]`},
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
			s, err := schema.Parse(tt.schema)
			require.NoError(t, err)
			v, err := jsonvalue.Parse(tt.give)
			require.NoError(t, err)
			err = s.Validate(v)
			require.Error(t, err)
			require.Equal(t, tt.guard, errors.Is(err, schema.ErrGuard))
			got := schema.Problem(err)
			require.True(t, strings.HasPrefix(got, tt.want), got)
			require.Less(t, len(got), 1200)
			if !tt.guard && strings.Contains(tt.schema, `"const":"approve"`) && !strings.Contains(tt.schema, "enum") {
				require.NotContains(t, got, "approve", "the const is not pressed")
			}
		})
	}
	s, err := schema.Parse(`{"properties":{"n":{"const":1}}}`)
	require.NoError(t, err)
	v, err := jsonvalue.Parse(`{"n":1.0}`)
	require.NoError(t, err)
	require.NoError(t, s.Validate(v))
}

// TestManyMismatchesNeedLinearTime checks that neither many guards nor a deep value of a
// recursive schema make a mismatch slow to explain.
func TestManyMismatchesNeedLinearTime(t *testing.T) {
	t.Parallel()
	for raw, give := range map[string]string{
		`{"items":{"const":"yes"}}`: "[" + strings.Repeat(`"no",`, 100_000) + `"no"]`,
		`{"$defs":{"l":{"type":["array","string"],"items":{"$ref":"#/$defs/l"}}},"$ref":"#/$defs/l"}`: strings.Repeat("[", 90) + strings.Repeat(`"x",`, 100_000) + "7" + strings.Repeat("]", 90),
	} {
		s, err := schema.Parse(raw)
		require.NoError(t, err)
		v, err := jsonvalue.Parse(give)
		require.NoError(t, err)
		err = s.Validate(v)
		require.Error(t, err)
		require.Contains(t, schema.Problem(err), "found ")
	}
}

// TestAnswerThatNeedsTooMuchWorkIsRefused checks that an answer that would need too many
// checks is refused without a search for the place that is wrong. The search would take years.
func TestAnswerThatNeedsTooMuchWorkIsRefused(t *testing.T) {
	t.Parallel()
	s, err := schema.Parse(`{"properties":{"child":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`)
	require.NoError(t, err)
	v, err := jsonvalue.Parse(strings.Repeat(`{"child":`, 60) + `{}` + strings.Repeat(`}`, 60))
	require.NoError(t, err)
	require.Contains(t, schema.Problem(s.Validate(v)), "nest less deeply")
}
