package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/pick"
	"github.com/runteam/runteam/internal/schema"
	"github.com/runteam/runteam/task"
	"github.com/stretchr/testify/require"
)

func TestHas(t *testing.T) {
	t.Parallel()
	const no, maybe, yes = schema.No, schema.Maybe, schema.Yes
	tests := []struct {
		schema string
		path   task.Path
		want   schema.Answer
	}{
		{`{}`, "", yes}, {`false`, "", no}, {`{}`, "/a", maybe}, {`{"type":"string"}`, "/a", no}, {`{"type":"array"}`, "/a", no}, {`{"type":"array"}`, "/0", maybe},
		{`{"properties":{"a":{}}}`, "/a", yes}, {`{"properties":{"a":{}}}`, "/b", maybe}, {`{"properties":{"a":{"type":"null"}}}`, "/a/b", no},
		{`{"properties":{"a":{}},"additionalProperties":false}`, "/b", no}, {`{"properties":{"a":{}},"additionalProperties":{"type":"null"}}`, "/b", maybe},
		{`{"properties":{"a":{}},"additionalProperties":{"type":"null"}}`, "/b/c", no}, {`{"additionalProperties":{"properties":{"c":{}}}}`, "/*/c", yes},
		{`{"properties":{"a":false}}`, "/a", no}, {`{"required":["a"]}`, "/a", yes}, {`{"required":["a"]}`, "/a/b", maybe},
		{`{"patternProperties":{"^x-":{"type":"null"}},"additionalProperties":false}`, "/x-1", maybe}, {`{"patternProperties":{"^x-":{}},"additionalProperties":false}`, "/y", no},
		{`{"patternProperties":{"^x-":{}},"additionalProperties":false}`, "/*", yes}, {`{"patternProperties":{"^x-":false}}`, "/x-1", no},
		{`{"items":{"properties":{"a":{}}}}`, "/*/a", yes}, {`{"items":{"properties":{"a":{}}}}`, "/7/a", yes}, {`{"items":{"type":"null"}}`, "/*/a", maybe}, {`{"type":"array","items":{"type":"null"}}`, "/*/a", no},
		{`{"type":"array","maxItems":2}`, "/2", no}, {`{"type":"array","maxItems":0}`, "/*", no}, {`{"type":"array","prefixItems":[{"type":"null"}],"items":false}`, "/0", yes},
		{`{"allOf":[{"properties":{"a":{}}},{"additionalProperties":false}]}`, "/a", no}, {`{"anyOf":[{"properties":{"a":{}}},{"type":"null"}]}`, "/a", yes}, {`{"anyOf":[]}`, "", no},
		{`{"if":{"type":"null"},"else":{"properties":{"a":{}}}}`, "/a", yes}, {`{"dependentSchemas":{"b":{"properties":{"a":{}}}}}`, "/a", yes}, {`{"not":{"properties":{"a":{}}}}`, "/a", maybe},
		{`{"enum":[{"a":[{"b":1}]},2]}`, "/a/*/b", yes}, {`{"enum":[{"a":1}]}`, "/b", no}, {`{"const":{"a":1}}`, "/a/b", no}, {`{"const":null}`, "/a", no}, {`{"enum":[]}`, "", no},
		{`{"$ref":"#/$defs/t","$defs":{"t":{"properties":{"next":{"$ref":"#/$defs/t"},"v":{}},"additionalProperties":false}}}`, "/next/next/v", yes},
		{`{"$ref":"#/$defs/t","$defs":{"t":{"properties":{"next":{"$ref":"#/$defs/t"},"v":{}},"additionalProperties":false}}}`, "/next/next/w", no},
	}
	for _, tt := range tests {
		var tokens []string
		if tt.path != "" {
			tokens = strings.Split(string(tt.path[1:]), "/")
		}
		require.Equal(t, tt.want, parsed(t, tt.schema).Has(tokens), "%s in %s", tt.path, tt.schema)
	}
	require.Equal(t, "no maybe yes", strings.Join([]string{no.String(), maybe.String(), yes.String()}, " "))
}

// Requirement: G10.
func TestNamesAreComparedLoosely(t *testing.T) {
	t.Parallel()
	closed := parsed(t, `{"type":"object","properties":{"person":{"type":"array","items":{"type":"object","properties":{"SSN":{"type":"string"}},"additionalProperties":false}}},"additionalProperties":false}`)
	for _, name := range []string{"ssn", "SSN", "Ssn", "s\u200bsn", "\uff53sn", "ſsn", "ss\u00adn", "s\ufe0fsn"} {
		require.Equal(t, schema.Yes, closed.Names(name), "%q", name)
	}
	require.Equal(t, schema.No, closed.Names("ssn2"))
}

// TestNamesAreComparedAsBlocksCompareThem checks that a schema has a name
// wherever a block of this name would take something away.
//
// Requirement: G10.
func TestNamesAreComparedAsBlocksCompareThem(t *testing.T) {
	t.Parallel()
	for _, pair := range [][2]string{{"id", "\u0131d"}, {"id", "\U0001d6a4d"}, {"a\u03b9", "a\u0345"}, {"\u13a0", "\uab70"}, {"e\u0301", "\u00c9"}, {"s s", "ss"}} {
		s, err := pick.Everything().Except(task.Path(pair[0]))
		require.NoError(t, err)
		blocked := len(s.Apply(map[string]any{pair[1]: "x"}).Value.(map[string]any)) == 0
		closed := parsed(t, fmt.Sprintf(`{"type":"object","properties":{%q:{"type":"string"}},"additionalProperties":false}`, pair[1]))
		require.Equal(t, blocked, closed.Names(pair[0]) == schema.Yes, "%+q", pair)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]schema.Answer{
		`{}`:                   schema.Maybe,
		`false`:                schema.No,
		`{"type":"string"}`:    schema.No,
		`{"type":"array"}`:     schema.Maybe,
		`{"required":["ssn"]}`: schema.Yes,
		`{"type":"array","items":{"type":"string"}}`:                                                                    schema.No,
		`{"type":"array","prefixItems":[{"properties":{"ssn":true}}],"items":false}`:                                    schema.Yes,
		`{"type":"array","prefixItems":[{"type":"null"}],"maxItems":1}`:                                                 schema.No,
		`{"type":"array","maxItems":0}`:                                                                                 schema.No,
		`{"type":"object","patternProperties":{"^x":{"type":"null"}}}`:                                                  schema.Maybe,
		`{"type":"object","patternProperties":{"^x":false},"additionalProperties":false}`:                               schema.No,
		`{"type":"object","patternProperties":{"^x":true},"additionalProperties":false}`:                                schema.Maybe,
		`{"type":"object","additionalProperties":{"type":"null"}}`:                                                      schema.Maybe,
		`{"type":"object","properties":{"ssn":false},"additionalProperties":false}`:                                     schema.No,
		`{"enum":[1,{"a":[{"Ssn":1}]}]}`:                                                                                schema.Yes,
		`{"enum":[1,{"a":"ssn"}]}`:                                                                                      schema.No,
		`{"allOf":[{"type":"string"},{"properties":{"ssn":true}}]}`:                                                     schema.No,
		`{"anyOf":[{"type":"string"},{"properties":{"ssn":true}}]}`:                                                     schema.Yes,
		`{"anyOf":[{"type":"string"},{"type":"number"}]}`:                                                               schema.No,
		`{"type":["object","null"],"additionalProperties":false,"properties":{"n":{"$ref":"#"}}}`:                       schema.No,
		`{"type":["object","null"],"additionalProperties":false,"properties":{"n":{"$ref":"#"},"ssn":{"type":"null"}}}`: schema.Yes,
		`{"if":{"type":"null"},"then":{"properties":{"ssn":true}}}`:                                                     schema.Yes,
		`{"type":"string","if":{"type":"null"},"then":{"properties":{"ssn":true}}}`:                                     schema.No,
		`{"type":"null","$defs":{"a":{"properties":{"ssn":true}}}}`:                                                     schema.No,
	} {
		require.Equal(t, want, parsed(t, schema).Names("ssn"), schema)
	}
}

// Requirement: G44.
func TestOnlyNamesOfTheSchemaAreShown(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"properties":{"a":{"items":{"properties":{"b":{}}}},"m":{"additionalProperties":{"properties":{"c":{}}}},"x/y":{},"\u00e9":{},"k":{"const":[{"d":1}]}},"required":["r"]}`)
	for give, want := range map[task.Path]task.Path{
		"": "", "/a": "/a", "/a/*/b": "/a/*/b", "/a/0/b": "/a/*/b", "/a/*/secret": "/a/*/*", "/secret": "/*", "/secret/a": "/*/*",
		"/m/secret/c": "/m/*/c", "/m/secret/d": "/m/*/*", "/x~1y": "/x~1y", "/r/secret": "/r/*", "/a/**": "/a/**", "/secret/**": "/*/**", "/**/a": "/**/*",
		"secret": "/*", "/e\u0301": "/*", "/\u00e9": "/\u00e9", "/k/*/d": "/k/*/d", "/k/0/d": "/k/*/d",
	} {
		require.Equal(t, want, s.Shown(give), give)
	}
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	const no, maybe, yes = schema.No, schema.Maybe, schema.Yes
	const closed = `"additionalProperties":false`
	tests := []struct {
		schema string
		block  task.Path
		want   schema.Answer
	}{
		{`{"type":"object","properties":{"remarks":{"type":"string"}},` + closed + `}`, "remarkz", no}, {`{"properties":{"remarks":{}},` + closed + `}`, "remarkz", maybe}, {`{"properties":{"remarks":{}},` + closed + `}`, "/remarkz", no}, {`{"properties":{"remarks":{}}}`, "/remarkz", maybe},
		{`{"properties":{"remarks":{}},` + closed + `}`, "/Remarks", yes}, {`{"properties":{"remarks":{}},` + closed + `}`, "/\uff32emarks/**", yes}, {`{"properties":{"remarks":{}},` + closed + `}`, "/**/REMARKS", yes},
		{`{"properties":{"remarks":{"type":"string"}},` + closed + `}`, "/remarks/x", no}, {`{"properties":{"a":{"items":{"properties":{"b":{}},` + closed + `}}},` + closed + `}`, "/a/*/b", yes},
		{`{"properties":{"a":{"type":"array","items":{"properties":{"b":{}},` + closed + `}}},` + closed + `}`, "/a/b", no}, {`{"properties":{"a":{"type":"array","items":{"type":"number"}}},` + closed + `}`, "/a/0", yes},
		{`{"type":"array","prefixItems":[{},{}],"items":false}`, "/01", yes}, {`{"type":"array","prefixItems":[{},{}],"maxItems":2}`, "/2", no},
		{`{"patternProperties":{"^x-":{}},` + closed + `}`, "/x-1", yes}, {`{"patternProperties":{"^x-":{}},` + closed + `}`, "/y", maybe}, {`{"patternProperties":{"^x-":{"type":"null"}},` + closed + `}`, "/y/z", no},
		{`{"additionalProperties":{"type":"number"}}`, "/y/z", no}, {`{"additionalProperties":{"type":"number"}}`, "y", maybe},
		{`{"allOf":[{"properties":{"a":{}}},{"properties":{"b":{}},` + closed + `}]}`, "/a", no}, {`{"oneOf":[{"properties":{"a":{}},` + closed + `},{"properties":{"b":{}},` + closed + `}]}`, "/b", yes},
		{`{"enum":[{"a":{"B":1}}]}`, "/A/b", yes}, {`{"enum":[{"a":{"B":1}}]}`, "/A/c", no}, {`{"enum":[{"a":[1]}]}`, "/a/0", yes}, {`{"enum":[{"a":[1]}]}`, "/a/1", no},
		{`{"$ref":"#/$defs/t","$defs":{"t":{"properties":{"next":{"$ref":"#/$defs/t"},"v":{}},` + closed + `}}}`, "/next/NEXT/v", yes},
		{`{"$ref":"#/$defs/t","$defs":{"t":{"properties":{"next":{"$ref":"#/$defs/t"},"v":{"type":"number"}},"type":"object",` + closed + `}}}`, "w", no},
		{`{"properties":{"a":{}},"unevaluatedProperties":false}`, "/b", no}, {`{"allOf":[{"properties":{"a":{}}}],"unevaluatedProperties":false}`, "/b", maybe},
		{`false`, "/a", no}, {`{` + closed + `}`, "no/block", maybe},
	}
	for _, tt := range tests {
		require.Equal(t, tt.want, parsed(t, tt.schema).Blocks(tt.block), "%s in %s", tt.block, tt.schema)
	}
	var none *schema.Schema
	require.Equal(t, maybe, none.Blocks("a"))
}

func TestMembers(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"properties":{"b":{"properties":{"x":{},"never":false}},"a":{}},"required":["c"],"anyOf":[{"enum":[{"d":1}]}]}`)
	require.Equal(t, []string{"a", "b", "c", "d"}, s.Members(nil))
	require.Equal(t, []string{"x"}, s.Members([]string{"b"}))
	require.Empty(t, s.Members([]string{"a"}))
	require.Equal(t, []string{"a", "b", "c", "d", "x"}, s.MemberNames())
	var none *schema.Schema
	require.Empty(t, none.Members(nil))
	require.Empty(t, none.MemberNames())
}
