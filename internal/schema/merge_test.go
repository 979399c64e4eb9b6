package schema_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/schema"
)

func TestMergerUnitesReferencedSchemas(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, give, want string
		choose           bool
	}{
		{name: "no reference", give: `{"type":"string"}`, want: `{"type":"string"}`},
		{name: "reference", give: `{"$ref":"#/$defs/a~1b","title":"x"}`, want: `{"title":"x","type":"number","minimum":2}`},
		{name: "the outer keyword wins", give: `{"$ref":"#/$defs/a~1b","minimum":5}`, want: `{"type":"number","minimum":5}`},
		{name: "properties and required", give: `{"allOf":[{"properties":{"a":true,"b":false},"required":["a"]}],"properties":{"b":true},"required":["b"]}`,
			want: `{"properties":{"a":true,"b":true},"required":["b","a"]}`},
		{name: "choices stay", give: `{"anyOf":[{"type":"null"},{"type":"string"}]}`, want: `{"anyOf":[{"type":"null"},{"type":"string"}]}`},
		{name: "first choice", choose: true, give: `{"oneOf":[{"type":"null"},{"type":"string"}]}`, want: `{"oneOf":[{"type":"null"},{"type":"string"}],"type":"null"}`},
		{name: "no such place", give: `{"$ref":"#/$defs/none","title":"x"}`, want: `{"title":"x"}`},
		{name: "another document", give: `{"$ref":"https://example.com/a","title":"x"}`, want: `{"title":"x"}`},
		{name: "endless", give: `{"$ref":"#/$defs/loop"}`, want: `{"title":"loop"}`},
		{name: "true", give: `true`, want: `{}`},
	}
	root := decode(t, `{"$defs":{"a/b":{"type":"number","minimum":2},"loop":{"title":"loop","$ref":"#/$defs/loop"}}}`)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m := schema.Merger{Root: root, Choose: tt.choose, Steps: 100}
			require.Equal(t, decode(t, tt.want), any(m.Merge(decode(t, tt.give))))
		})
	}
}

func TestMergerStopsAfterItsSteps(t *testing.T) {
	t.Parallel()
	all := `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"$ref":"#"},`, 20), ",") + `],"title":"x"}`
	m := schema.Merger{Root: decode(t, all), Steps: 1000}
	require.Equal(t, map[string]any{"title": "x"}, m.Merge(m.Root))
	require.Negative(t, m.Steps)
}

func decode(t *testing.T, text string) (v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}
