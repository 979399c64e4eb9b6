package schema_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
	"github.com/stretchr/testify/require"
)

func TestIneffectiveSchemasAreRefused(t *testing.T) {
	t.Parallel()
	for give, want := range map[string]string{
		`{"type":"objekt"}`:                  `"type" in the schema must be one of null, boolean`,
		`{"type":["object","nul"]}`:          `"type" in the schema must be`,
		`{"propertys":{}}`:                   `unknown keyword "propertys" in the schema: did you mean "properties"?`,
		`{"properties":{"a":{"minimun":1}}}`: `unknown keyword "minimun" in /properties/a: did you mean "minimum"?`,
		`{"required":"name"}`:                `"required" in the schema must be a list of texts`,
		`{"type":"array","items":["x"]}`:     `"items" in the schema must be a schema or a list of them`,
		`{"properties":[]}`:                  `"properties" in the schema must be schemas by name`,
		`{"minLength":-1}`:                   `"minLength" in the schema must be a whole number from 0`,
		`{"enum":null}`:                      `"enum" in the schema must be a list of values`,
		`{"$defs":{"a%20b":true},"items":{"$ref":"#/$defs/a%20b"}}`: `"$ref" in /items has a %, which some read as an escape`,
		`{"maximum":"3"}`:                                  `"maximum" in the schema must be a number`,
		`{"anyOf":[{"type":"text"}]}`:                      `"type" in /anyOf/0 must be`,
		`{"dependentRequired":{"a":"b"}}`:                  `"dependentRequired" in the schema must be lists of texts by name`,
		`{"uniqueItems":"yes"}`:                            `"uniqueItems" in the schema must be true or false`,
		`{"$defs":{"a":{"$ref":"https://example.com/s"}}}`: `"$ref" in /$defs/a must be # or begin with #/`,
		`{"$ref":"#"}`:                                     `the schema refers to itself without going into the value`,
		`{"$defs":{"a":{"allOf":[{"$ref":"#/$defs/b"}]},"b":{"not":{"$ref":"#/$defs/a"}}},"items":{"$ref":"#/$defs/a"}}`: `refers to itself without going into the value`,
		`{"properties":{"a":{"$ref":"#/$defs/no"}}}`:                             `"$ref" in /properties/a leads nowhere: there is no "#/$defs/no"`,
		`{"properties":{"a":{"$anchor":"x"}}}`:                                   `unknown keyword "$anchor"`,
		`{"properties":{"a":{"$id":"x"}}}`:                                       `only the schema as a whole`,
		`{"properties":{"default":{"allOf":[{"$ref":"#/properties/default"}]}}}`: `/properties/default refers to itself`,
		`{"$defs":{"enum":{"not":{"$ref":"#/$defs/enum"}}}}`:                     `/$defs/enum refers to itself`,
		`{"dependencies":{"a":{"$ref":"#"}}}`:                                    `the schema refers to itself`,
		`{"dependencies":{"a":{"bogus":1}}}`:                                     `unknown keyword "bogus" in /dependencies/a`,
		`{"dependencies":{"a":3}}`:                                               `must be schemas or lists of texts by name`,
		doubling(24):                                                             `applies to one value in more than 10000 ways`,
		`[]`:                                                                     `the schema must be a mapping`,
		`"object"`:                                                               `the schema must be a mapping`,
	} {
		_, err := schema.Parse(give)
		require.ErrorIs(t, err, schema.ErrInvalid, give)
		require.ErrorContains(t, err, want, give)
	}
}

// doubling returns a schema in which each of n definitions applies the next one twice.
func doubling(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"a%d":{"allOf":[{"$ref":"#/$defs/a%d"},{"$ref":"#/$defs/a%d"}]},`, i, i+1, i+1)
	}
	return fmt.Sprintf(`{"$ref":"#/$defs/a0","$defs":{%s"a%d":true}}`, b.String(), n)
}

func TestCommonSchemasAreRead(t *testing.T) {
	t.Parallel()
	for _, give := range []string{
		`{"$ref":"#/$defs/tree","$defs":{"tree":{"properties":{"left":{"$ref":"#/$defs/tree"},"right":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/tree"}]}}}}}`,
		`{"x-note":{"$ref":"#/nowhere"},"dependencies":{"a":["b"],"c":{"type":"object"}}}`,
		doubling(8), `{"const":{"$ref":"nowhere","allOf":3}}`, `{"$defs":{"a/b":{"type":"null"}},"items":{"$ref":"#/$defs/a~1b"}}`,
		`true`, `{}`, `{"type":["string","null"],"x-note":{"any":1}}`,
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","$defs":{"n":{"type":"number"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`,
		`{"type":"array","items":{"type":"integer","minimum":0},"minItems":1,"uniqueItems":true}`,
		`{"oneOf":[{"const":1},{"enum":["a",null]}],"default":{},"examples":[1],"format":"date","deprecated":false}`,
		`{"if":{"required":["a"]},"then":false,"dependentRequired":{"a":["b"]},"additionalProperties":false}`,
	} {
		_, err := schema.Parse(give)
		require.NoError(t, err, give)
	}
}

func TestNumbersMatchTheirTypes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		schema, value string
		fits          bool
	}{
		{`{"type":"integer"}`, `3`, true},
		{`{"type":"integer"}`, `3.0`, true},
		{`{"type":"integer"}`, `3.5`, false},
		{`{"type":"integer"}`, `12345678901234567890`, true},
		{`{"type":"integer"}`, `"3"`, false},
		{`{"type":"number","maximum":1}`, `0.25`, true},
		{`{"type":"number","maximum":1}`, `1e3`, false},
		{`{"type":"string"}`, `3`, false},
		{`{"properties":{"a":{"type":"array","items":{"type":"integer"}}}}`, `{"a":[1,2]}`, true},
		{`{"properties":{"a":{"type":"array","items":{"type":"integer"}}}}`, `{"a":[1,"2"]}`, false},
	} {
		s, err := schema.Parse(tt.schema)
		require.NoError(t, err)
		v, err := jsonvalue.Parse(tt.value)
		require.NoError(t, err)
		require.Equal(t, tt.fits, s.Validate(v) == nil, "%s against %s", tt.value, tt.schema)
	}
}
