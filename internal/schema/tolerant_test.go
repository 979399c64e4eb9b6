package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/schema"
)

// TestTolerantSchemasAreRead checks schemas as servers write them: Parse refuses them, and reads what
// Tolerant leaves of them.
func TestTolerantSchemasAreRead(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, give, want string }{
		{"unknown keywords", `{"type":"object","example":{},"properties":{"example":{"type":"string","optional":true,"x-order":1}}}`, `{"type":"object","properties":{"example":{"type":"string","x-order":1}}}`},
		{"a pattern of JavaScript", `{"properties":{"a":{"type":"string","pattern":"^(?!x)"},"b":{"pattern":"^x"}}}`, `{"properties":{"a":{"type":"string"},"b":{"pattern":"^x"}}}`},
		{"names by a pattern of JavaScript", `{"patternProperties":{"^(?!x)":{"type":"string"},"^y":{}},"additionalProperties":false}`, `{"patternProperties":{"^y":{}}}`},
		{"values that keywords cannot have", `{"required":null,"properties":{"a":{"title":null,"minItems":"1","maxLength":-1,"required":true,"type":"file","minimum":1}}}`, `{"properties":{"a":{"minimum":1}}}`},
		{"other documents", `{"$id":"https://example.com/a","properties":{"a":{"$ref":"b.json","type":"string"},"b":{"$id":"c"}}}`, `{"$id":"https://example.com/a","properties":{"a":{"type":"string"},"b":{}}}`},
		{"lists of schemas", `{"anyOf":[{"nullable":true},true],"items":{"unknown":1}}`, `{"anyOf":[{},true],"items":{}}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := schema.Parse(tt.give)
			require.ErrorIs(t, err, schema.ErrInvalid)
			got := schema.Tolerant(tt.give)
			require.JSONEq(t, tt.want, got)
			parsed(t, got)
		})
	}
	require.Equal(t, "{", schema.Tolerant("{"))
	require.Equal(t, "true", schema.Tolerant("true"))
}
