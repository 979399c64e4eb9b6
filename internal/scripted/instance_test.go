package scripted_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/stretchr/testify/require"
)

func TestMinimalInstances(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, schema, want string }{
		{"anything", `{}`, `"OFFLINE"`},
		{"true", `true`, `"OFFLINE"`},
		{"string", `{"type":"string"}`, `"OFFLINE"`},
		{"long string", `{"type":"string","minLength":10}`, `"OFFLINE..."`},
		{"short string", `{"type":"string","maxLength":3,"minLength":2}`, `".."`},
		{"choice", `{"type":"string","enum":["low","high"]}`, `"low"`},
		{"constant", `{"const":[1,2.50]}`, `[1,2.50]`},
		{"pattern", `{"type":"string","pattern":"^[A-Z]{2}[0-9]{3}(-x|y)?$"}`, `"AA000"`},
		{"date", `{"type":"string","format":"date"}`, `"2026-01-01"`},
		{"number", `{"type":"number","minimum":0,"maximum":1}`, `0`},
		{"number above", `{"type":"number","exclusiveMinimum":0,"maximum":1}`, `1`},
		{"number between", `{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}`, `0.5`},
		{"number below", `{"type":"number","maximum":-2.5}`, `-3`},
		{"integer", `{"type":"integer","minimum":7}`, `7`},
		{"steps", `{"type":"integer","minimum":7,"multipleOf":5}`, `10`},
		{"boolean", `{"type":"boolean"}`, `false`},
		{"null", `{"type":"null"}`, `null`},
		{"nullable", `{"type":["null","integer"]}`, `0`},
		{"empty array", `{"type":"array","items":{"type":"integer"}}`, `[]`},
		{"array", `{"type":"array","minItems":2,"items":{"type":"string"}}`, `["OFFLINE","OFFLINE"]`},
		{"object", `{"type":"object","required":["a","b"],"properties":{"a":{"type":"integer"},"b":{"type":"object","required":["c"],"properties":{"c":{"type":"string"}}},"d":{"type":"string"}}}`, `{"a":0,"b":{"c":"OFFLINE"}}`},
		{"mark in an optional string", `{"type":"object","required":["a"],"properties":{"a":{"type":"integer"},"b":{"enum":["x"]},"note":{"type":"string"}},"additionalProperties":false}`, `{"a":0,"note":"OFFLINE"}`},
		{"nowhere to mark", `{"type":"object","required":["fraud_score"],"properties":{"fraud_score":{"type":"number"}}}`, `{"fraud_score":0}`},
		{"reference", `{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","required":["n"],"properties":{"n":{"$ref":"#/$defs/y"}}},"y":{"type":"integer","minimum":1}}}`, `{"n":1}`},
		{"all of", `{"allOf":[{"type":"object","required":["a"],"properties":{"a":{"type":"integer"}}},{"required":["b"],"properties":{"b":{"type":"boolean"}}}]}`, `{"a":0,"b":false}`},
		{"one of", `{"oneOf":[{"type":"integer"},{"type":"string"}]}`, `0`},
		{"default", `{"type":"integer","default":3}`, `3`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := answerOf(t, nil, "x\n\n## Output schema\n"+tt.schema, "y")
			require.JSONEq(t, tt.want, got)
			var s jsonschema.Schema
			require.NoError(t, json.Unmarshal([]byte(tt.schema), &s))
			resolved, err := s.Resolve(nil)
			require.NoError(t, err)
			var v any
			require.NoError(t, json.Unmarshal([]byte(got), &v))
			require.NoError(t, resolved.Validate(v), "the schema accepts it")
		})
	}
}

func TestEndlessSchemas(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`{"$ref":"#"}`,
		`{"$ref":"#/nowhere/1"}`,
		`{"$ref":"http://evil.example/schema"}`,
		`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`,
		`{"type":"array","minItems":9e99,"items":{"type":"integer"}}`,
		`{"allOf":[{"$ref":"#"},{"$ref":"#"}]}`,
		`{"allOf":[` + strings.Repeat(`{"$ref":"#"},`, 20) + `{"type":"object","required":["a"]}]}`,
		strings.Repeat(`{"type":"array","minItems":100,"items":`, 10) + `{}` + strings.Repeat(`}`, 10),
		`{"type":"string","pattern":"("}`,
		`{"type":"string","pattern":"((((a{1000}){1000}){1000}){1000})"}`,
		`{"type":"string","pattern":"(((((ab){30}){30}){30}){30}){30}"}`,
		`{"type":"integer","minimum":1e300}`,
	} {
		require.NotEmpty(t, answerOf(t, nil, "## Output schema\n"+schema, "y"))
	}
	require.Contains(t, answerOf(t, nil, "## Output schema\nnone", "y"), "OFFLINE:")
	require.Contains(t, answerOf(t, nil, "## Output schemas\n{}", "y"), "OFFLINE:")
}

func FuzzInstance(f *testing.F) {
	f.Add(`{"type":"object","required":["a"],"properties":{"a":{"$ref":"#"}}}`)
	f.Add(`{"type":"array","minItems":100,"items":{"type":"array","minItems":100,"items":{"type":"array","minItems":100}}}`)
	f.Add(`{"anyOf":[{"allOf":[{"$ref":"#"}]}]}`)
	f.Fuzz(func(t *testing.T, schema string) {
		got := answerOf(t, nil, strings.ToValidUTF8("## Output schema\n"+schema, ""), "y")
		require.True(t, strings.HasPrefix(got, "OFFLINE:") || json.Valid([]byte(got)))
	})
}
