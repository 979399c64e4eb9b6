package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

func parsed(t *testing.T, raw string) *schema.Schema {
	t.Helper()
	s, err := schema.Parse(raw)
	require.NoError(t, err, raw)
	return s
}

func ExampleSchema_Bounded() {
	s, _ := schema.Parse(`{"properties": {"score": {"type": "number"}, "note": {"type": "string"}}}`)
	fmt.Println(s.Bounded("/score"))
	fmt.Println(s.Bounded("/note"))
	// Output:
	// <nil>
	// /note is not bounded: /properties/note allows any text there: write "enum", or "pattern" such as "^[A-Z]{2}-[0-9]{1,6}$"
}

func TestBoundedPaths(t *testing.T) {
	t.Parallel()
	const (
		number = `{"type":"number"}`
		closed = `"additionalProperties":false`
	)
	tests := []struct {
		schema string
		path   task.Path
		want   string // of the error; empty if bounded
	}{
		{`{"properties":{"a":` + number + `}}`, "/a", ""},
		{`{"properties":{"a":{"type":["integer","null","boolean"]}}}`, "/a", ""},
		{`{"properties":{"a":{"type":["integer","string"]}}}`, "/a", "/properties/a allows any text there"},
		{`{"properties":{"a":{"enum":["x y z","` + strings.Repeat("long ", 50) + `",1]}}}`, "/a", ""},
		{`{"properties":{"a":{"const":{"b":"any text"}}}}`, "/a/b", ""},
		{`{"properties":{"a":{"const":{"b":"any text"}}}}`, "/a/**", ""},
		{`{"properties":{"a":{}}}`, "/a", "the schema allows anything there"},
		{`{"properties":{"a":true}}`, "/a/**", "the schema allows anything there"},
		{`{"properties":{"a":` + number + `}}`, "/b", `the schema has no /b`},
		{`{"properties":{"a":` + number + `},` + closed + `}`, "/b", `the schema has no /b`},
		{`{"additionalProperties":` + number + `}`, "/b", `the schema has no /b`},
		{`{"patternProperties":{"^b":` + number + `}}`, "/b", `the schema has no /b`},
		{`{"required":["a"]}`, "/a", "anything"},
		{`{"type":"number"}`, "", ""},
		{`{"type":"number"}`, "/**", ""},
		{`false`, "", "the schema has no"},
		{`{"properties":{"a":` + number + `}}`, "a", "not a path"},
		{`{"properties":{"a":` + number + `}}`, "/**/a", "not a path"},
		{`{"items":` + number + `}`, "/0", "not a path"},

		{`{"type":"object","properties":{"a":{"type":"object","properties":{"b":` + number + `},` + closed + `}},` + closed + `}`, "", ""},
		{`{"type":"object","properties":{"a":{"type":"object","properties":{"b":` + number + `},` + closed + `}},` + closed + `}`, "/a", "only a path that ends in /** selects"},
		{`{"type":"object","properties":{"a":` + number + `}}`, "", "leaves the names of members to the reply"},
		{`{"type":"object","properties":{"a":` + number + `},"additionalProperties":` + number + `}`, "/*", "leaves the names of members to the reply"},
		{`{"type":"object","patternProperties":{"a":` + number + `},` + closed + `}`, "/**", "leaves the names of members to the reply"},
		{`{"type":"object","patternProperties":{"a":false},"properties":{"b":` + number + `},` + closed + `}`, "/**", ""},
		{`{"type":"object","properties":{"a":` + number + `},"unevaluatedProperties":false}`, "/*", ""},
		{`{"type":"object","allOf":[{"properties":{"b":{"type":"string"}}}],"properties":{"a":` + number + `},"unevaluatedProperties":false}`, "/*", "names of members"},

		{`{"type":"array","maxItems":64,"items":` + number + `}`, "/*", ""},
		{`{"type":"array","maxItems":64,"items":` + number + `}`, "", ""},
		{`{"type":"array","maxItems":65,"items":` + number + `}`, "/*", `write "maxItems" of at most 64`},
		{`{"type":"array","items":` + number + `}`, "/*", `write "maxItems" of at most 64`},
		{`{"type":"array","maxItems":3,"items":{"type":"string"}}`, "/*", "/items allows any text there"},
		{`{"type":"array","prefixItems":[` + number + `],"items":false}`, "/*", ""},
		{`{"type":"array","prefixItems":[` + number + `],"maxItems":1}`, "/**", ""},
		{`{"type":"array","prefixItems":[` + number + `],"maxItems":2}`, "/*", "anything"},
		{`{"type":"array","maxItems":2,"unevaluatedItems":` + number + `}`, "/*", ""},
		{`{"type":"array","maxItems":2,"contains":{"type":"string"},"unevaluatedItems":` + number + `}`, "/*", "the schema has no /*"},
		{`{"type":"array","maxItems":2,"items":[` + number + `]}`, "/*", "the schema has no /*"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","maxItems":2,"items":[` + number + `],"additionalItems":` + number + `}`, "/*", ""},

		{`{"$defs":{"n":` + number + `},"properties":{"a":{"$ref":"#/$defs/n"}}}`, "/a", ""},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"s":{"type":"string"}},"properties":{"a":{"$ref":"#/definitions/s","enum":[1]}}}`, "/a", "/definitions/s allows any text"},
		{`{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"a":{"enum":["x"]}}}]}`, "/a", ""},
		{`{"anyOf":[{"properties":{"a":` + number + `}},{"properties":{"a":{"type":"string"}}}]}`, "/a", "/anyOf/1/properties/a allows any text"},
		{`{"oneOf":[{"properties":{"a":` + number + `},` + closed + `},{"properties":{"b":true},` + closed + `}]}`, "/a", ""},
		{`{"oneOf":[{"properties":{"a":` + number + `}},{"properties":{"b":true}}]}`, "/a", "anything"},
		{`{"if":{"properties":{"b":true}},"then":{"properties":{"a":` + number + `}}}`, "/a", "anything"},
		{`{"not":{"properties":{"a":{"type":"string"}}},"properties":{"a":{}}}`, "/a", "anything"},
		{`{"type":"array","maxItems":2,"items":{"$ref":"#"}}`, "/**", "contains itself"},
	}
	for _, tt := range tests {
		requireBounded(t, parsed(t, tt.schema), tt.path, tt.want)
	}
}

func requireBounded(t *testing.T, s *schema.Schema, path task.Path, want string) {
	t.Helper()
	err := s.Bounded(path)
	if want == "" {
		require.NoError(t, err, "%s in %s", path, s)
		return
	}
	require.ErrorIs(t, err, schema.ErrUnbounded, "%s in %s", path, s)
	require.ErrorContains(t, err, want, "%s in %s", path, s)
}

func TestBoundedTexts(t *testing.T) {
	t.Parallel()
	const long, spells, loose = "more than 64 characters", "can spell anything", "matches anywhere"
	tests := []struct{ keywords, want string }{
		{`"pattern":"^[A-Z]{2}-[0-9]{1,6}$"`, ""},
		{`"pattern":"^[0-9a-f]{64}$"`, ""}, {`"pattern":"^[0-9a-fA-F]{65}$"`, long},
		{`"pattern":"^(low|medium|high)$"`, ""}, {`"pattern":"^low$|^high$"`, ""}, {`"pattern":"^low|high$"`, loose}, {`"pattern":"low"`, loose},
		{`"pattern":"(?m)^low$"`, loose}, {`"pattern":"(?i)^low$"`, ""}, {`"pattern":"\\Alow\\z"`, ""}, {`"pattern":"(?:^)?low$"`, loose},
		{`"pattern":"^[a-z]{8}$"`, ""}, {`"pattern":"^[a-z]{9}$"`, spells}, {`"pattern":"^(?:[a-z][0-9]){9}$"`, spells},
		{`"pattern":"^[A-Z0-9]{8}$"`, ""}, {`"pattern":"^[A-Za-z]{7}$"`, ""}, {`"pattern":"^[A-Za-z]{8}$"`, spells},
		{`"pattern":"^(a|b|c|d|e|f|g){14}$"`, ""}, {`"pattern":"^(a|b|c|d|e|f|g){15}$"`, spells},
		{`"pattern":"^.{1,9}$"`, spells}, {`"pattern":"(?s)^.{2}$"`, ""}, {`"pattern":"(?s)^.{3}$"`, spells}, {`"pattern":"^[^a]{9}$"`, spells}, {`"pattern":"^\\p{Han}{9}$"`, spells},
		{`"pattern":"^[0-9]+$"`, long}, {`"pattern":"^[0-9]+$","maxLength":64`, ""}, {`"pattern":"^[0-9]+$","maxLength":65`, long},
		{`"pattern":"^[a-z]*$","maxLength":8`, ""}, {`"pattern":"^[a-z]*$","maxLength":9`, spells}, {`"pattern":"^(?:[0-9]{8}){8,}$"`, long}, {`"pattern":"^(?:[0-9]{8}){0,8}$"`, ""},
		{`"maxLength":3`, "allows any text"}, {`"pattern":""`, "allows any text"},
		{`"format":"date"`, `nothing checks "format" in /properties/a: write "pattern": "^[0-9]{4}-`}, {`"format":"email"`, "allows any text"},
		{`"format":"uuid","pattern":"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"`, ""},
		{`"pattern":"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"`, ""},
	}
	for _, tt := range tests {
		requireBounded(t, parsed(t, `{"properties":{"a":{"type":"string",`+tt.keywords+`}}}`), "/a", tt.want)
	}
}

func TestNamesThatAreTheSameInNFCAreBoundedTogether(t *testing.T) {
	t.Parallel()
	const e = `"\u00e9":{"type":"number"}`
	requireBounded(t, parsed(t, `{"properties":{`+e+`}}`), "/\u00e9", "names of members")
	requireBounded(t, parsed(t, `{"properties":{`+e+`},"additionalProperties":false}`), "/\u00e9", "")
	requireBounded(t, parsed(t, `{"properties":{`+e+`,"e\u0301":{"type":"string"}},"additionalProperties":false}`), "/\u00e9", "allows any text")
	requireBounded(t, parsed(t, `{"properties":{"K":{"type":"number"}}}`), "/K", "names of members")
}

func TestNilSchemaAnswersMaybe(t *testing.T) {
	t.Parallel()
	var s *schema.Schema
	require.ErrorIs(t, s.Bounded("/a"), schema.ErrUnbounded)
	require.Equal(t, schema.Maybe, s.Has([]string{"a"}))
	require.Equal(t, schema.Maybe, s.Names("a"))
	require.Equal(t, task.Path("/*/*"), s.Shown("/a/b"))
}
