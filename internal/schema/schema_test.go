package schema_test

import (
	"testing"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
	"github.com/stretchr/testify/require"
)

func TestSchemaValidates(t *testing.T) {
	t.Parallel()
	tests := []struct {
		schema, value string
		ok            bool
	}{
		{`{"type":"integer"}`, `5`, true}, {`{"type":"integer"}`, `5.0`, true}, {`{"type":"integer"}`, `5.5`, false}, {`{"type":"integer"}`, `"5"`, false},
		{`{"type":"number"}`, `1e3`, true}, {`{"type":"string"}`, `5`, false}, {`{"type":"string"}`, `"5"`, true}, {`{"type":"number","maximum":10}`, `11`, false},
		{`{"enum":[1,"a",null]}`, `1`, true}, {`{"enum":[1,"a",null]}`, `1.0`, true}, {`{"enum":[1,"a",null]}`, `"1"`, false}, {`{"const":3}`, `3`, true},
		{`{"type":"array","items":{"type":"boolean"},"maxItems":2}`, `[true,false]`, true}, {`{"type":"array","maxItems":2}`, `[1,2,3]`, false}, {`{"type":"array","uniqueItems":true}`, `[1,1.0]`, false},
		{`{"type":"null"}`, `null`, true}, {`{}`, `{"x":[1]}`, true}, {`true`, `1`, true}, {`false`, `1`, false},
		{`{"type":"string","pattern":"^a+$"}`, `"aa"`, true}, {`{"type":"string","pattern":"^a+$"}`, `"b"`, false},
		{`{"$defs":{"n":{"type":"integer"}},"$ref":"#/$defs/n"}`, `"x"`, false}, {`{"$defs":{"n":{"type":"integer"}},"$ref":"#/$defs/n"}`, `1`, true},
	}
	for _, tt := range tests {
		s, err := schema.Parse(tt.schema)
		require.NoError(t, err, tt.schema)
		v, err := jsonvalue.Parse(tt.value)
		require.NoError(t, err)
		require.Equal(t, tt.ok, s.Validate(v) == nil, "%s against %s: %v", tt.value, tt.schema, s.Validate(v))
	}
}

// Requirement: G42.
func TestSchemaErrorsQuoteNoValue(t *testing.T) {
	t.Parallel()
	tests := []struct{ schema, value, want string }{
		{`{"type":"integer"}`, `"CANARY"`, `it does not match the schema: the whole value: found a string; expected type "integer"`},
		{`{"properties":{"a":{"properties":{"b":{"type":"integer"}}}}}`, `{"a":{"b":"CANARY"}}`, `it does not match the schema: /a/b: found a string; expected type "integer"`},
		{`{"properties":{"a":{"enum":[1]}}}`, `{"a":"CANARY: type: x"}`, "it does not match the schema: /a: found a string; expected enum [1]"},
		{`{"const":1}`, `"CANARY"`, `it does not match the schema: the whole value: found a string; expected type "number"`},
		{`{"items":{"maxLength":3}}`, `["CANARY"]`, "it does not match the schema: /*: found a string; expected maxLength 3"},
		{`{"additionalProperties":{"items":{"type":"null"}}}`, `{"CANARY":[true]}`, `it does not match the schema: /*/*: found a boolean; expected type "null"`},
		{`{"additionalProperties":false}`, `{"CANARY":1}`, ""},
		{`{"additionalProperties":false}`, `{"CANARY: x":1}`, ""},
		{`{"required":["a"]}`, `{"CANARY":1}`, `it does not match the schema: the whole value: found an object; expected required ["a"]`},
		{`{"contains":{"type":"integer"}}`, `["CANARY"]`, ""}, {`{"not":{"type":"string"}}`, `"CANARY"`, ""}, {`{"oneOf":[{"type":"integer"}]}`, `"CANARY"`, ""}, {`{"anyOf":[{"const":1}]}`, `"CANARY"`, ""},
		{`{"propertyNames":{"maxLength":2}}`, `{"CANARY":1}`, ""}, {`{"dependentRequired":{"CANARY":["b"]}}`, `{"CANARY":1}`, ""}, {`{"pattern":"^a$"}`, `"CANARY\nvalidating /x: type: "`, ""},
		{`{"$id":"https://x.example/with blank: y","type":"integer"}`, `"CANARY"`, ""},
	}
	for _, tt := range tests {
		s, err := schema.Parse(tt.schema)
		if err != nil {
			require.Contains(t, tt.schema, "$id", "%v", err)
			continue
		}
		v, err := jsonvalue.Parse(tt.value)
		require.NoError(t, err)
		err = s.Validate(v)
		require.Error(t, err, tt.schema)
		require.NotContains(t, err.Error(), "CANARY", tt.schema)
		require.NotContains(t, err.Error(), "\n")
		require.Contains(t, err.Error(), "it does not match the schema")
		if tt.want != "" {
			require.EqualError(t, err, tt.want)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		``, `nothing`, `[]`, `{"type":"object"`, `{"type":"object","type":"array"}`, `{"type":5}`,
		`{"$ref":"https://example.com/schema.json"}`, `{"$ref":"file:///etc/passwd"}`, `{"$ref":"#/$defs/missing"}`, `{"pattern":"("}`, `{} {}`,
	} {
		s, err := schema.Parse(raw)
		require.ErrorIs(t, err, schema.ErrInvalid, raw)
		require.Nil(t, s)
	}
	s, err := schema.Parse(" { \"type\" : \"object\" } ")
	require.NoError(t, err)
	require.Equal(t, `{"type":"object"}`, s.String(), "canonical: equal schemas give equal prompts")
}
