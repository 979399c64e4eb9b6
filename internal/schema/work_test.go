package schema_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
	"github.com/stretchr/testify/require"
)

func nested(depth int) string {
	return strings.Repeat("[", depth) + "1" + strings.Repeat("]", depth)
}

func validate(t testing.TB, s *schema.Schema, raw string) error {
	t.Helper()
	v, err := jsonvalue.Parse(raw)
	require.NoError(t, err)
	return s.Validate(v)
}

// In each of these schemas a level of a value is checked in two ways, so a
// value 100 levels deep would be in 2^100: if one were tried, the test would not end.
func TestValidatingIsBoundedForRecursionInSeveralWays(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`,
		`{"items":{"$ref":"#"},"contains":{"$ref":"#"}}`,
		`{"anyOf":[{"items":{"$ref":"#"}},{"not":{"items":{"$ref":"#"}}}]}`,
		`{"prefixItems":[{"$ref":"#"}],"contains":{"$ref":"#"}}`,
		`{"$schema":"http://json-schema.org/draft-07/schema#","allOf":[{"items":{"$ref":"#"}},{"items":{"$ref":"#"}}]}`,
		`{"if":{"items":{"$ref":"#"}},"then":{"items":{"$ref":"#"}}}`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"allOf":[{"items":{"$ref":"#/$defs/b"}},{"items":{"$ref":"#/$defs/a"}}]},"b":{"items":{"allOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}]}}}}`,
	} {
		s := parsed(t, raw)
		require.NoError(t, validate(t, s, nested(8)), raw)
		require.EqualError(t, validate(t, s, nested(100)), "it does not match the schema at root: depth", raw)
	}
	members := parsed(t, `{"properties":{"a":{"$ref":"#"}},"patternProperties":{"a":{"$ref":"#"}}}`)
	require.EqualError(t, validate(t, members, strings.Repeat(`{"a":`, 100)+"1"+strings.Repeat("}", 100)), "it does not match the schema at root: depth")
}

func TestRecursionInOneWayIsValidatedToAnyDepth(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"items":{"$ref":"#"}}`, `{"type":["array","number"],"items":{"$ref":"#"}}`,
		`{"anyOf":[{"type":"number"},{"type":"array","items":{"$ref":"#"}}]}`,
	} {
		require.NoError(t, validate(t, parsed(t, raw), nested(jsonvalue.MaxDepth)), raw)
	}
	tree := parsed(t, `{"properties":{"left":{"$ref":"#"},"right":{"$ref":"#"}},"patternProperties":{"^x":{"$ref":"#"}},"additionalProperties":{"$ref":"#"}}`)
	require.NoError(t, validate(t, tree, strings.Repeat(`{"left":1,"y":2,"xx":3,"right":`, 100)+"1"+strings.Repeat("}", 100)))
}

func TestLargeFlatValuesAreValidated(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"items":{"type":"integer"}}`)
	require.NoError(t, validate(t, s, "["+strings.Repeat("1,", 200_000)+"1]"))
}

func TestNumbersOfAnyLengthAreRefused(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"items":{"type":"number"}}`)
	require.NoError(t, validate(t, s, "["+strings.Repeat("1", schema.MaxNumber)+"]"))
	for _, number := range []string{strings.Repeat("1", schema.MaxNumber+1), "1." + strings.Repeat("0", schema.MaxNumber), "9007199254740993." + strings.Repeat("3", 1000)} {
		require.EqualError(t, validate(t, s, "["+number+"]"), "it does not match the schema at root: number")
	}
	require.Error(t, validate(t, parsed(t, `true`), `{"a":{"b":`+strings.Repeat("1", schema.MaxNumber+1)+`}}`), "wherever it stands")
}

func BenchmarkSchemaValidate(b *testing.B) {
	s, err := schema.Parse(`{"items":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"integer"}}}`)
	require.NoError(b, err)
	v, err := jsonvalue.Parse("[" + strings.Repeat("1,", 200_000) + "1]")
	require.NoError(b, err)
	for b.Loop() {
		_ = s.Validate(v)
	}
}

// A schema that looks at all of a value on each of its levels takes time in size
// times depth, which counts.
func TestValidatingCountsSizes(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"allOf":[`+strings.Repeat(`{"uniqueItems":true},`, 20)+`{}],"items":{"$ref":"#"}}`)
	deep := strings.Repeat("[", 120) + `"` + strings.Repeat("x", 3<<20) + `"` + strings.Repeat("]", 120)
	require.EqualError(t, validate(t, s, deep), "it does not match the schema at root: depth")
	require.NoError(t, validate(t, s, `["`+strings.Repeat("x", 3<<20)+`"]`))
}

func TestValidatingEndsWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v, err := jsonvalue.Parse("[" + strings.Repeat("1,", 10_000) + "1]")
	require.NoError(t, err)
	require.ErrorIs(t, parsed(t, `{"items":{"type":"integer"}}`).ValidateContext(ctx, v), context.Canceled)
}

// A watchedContext counts how often it is asked whether it has ended.
type watchedContext struct {
	context.Context
	asked int
}

func (c *watchedContext) Err() error {
	c.asked++
	return nil
}

// The work on a large value asks for the end of the context again and again.
func TestValidatingLooksAtTheContextMeanwhile(t *testing.T) {
	t.Parallel()
	ctx := &watchedContext{Context: t.Context()}
	v, err := jsonvalue.Parse("[" + strings.Repeat("1,", 20_000) + "1]")
	require.NoError(t, err)
	require.NoError(t, parsed(t, `{"items":{"type":"integer"}}`).ValidateContext(ctx, v))
	require.Greater(t, ctx.asked, 10)
}

// The validator looks for each name and each value that a schema lists, and cannot be stopped.
//
// Requirement: G66.
func TestLongListsOfASchemaCountForEachValue(t *testing.T) {
	t.Parallel()
	const most = 20_000
	list := func(form string) string {
		var b strings.Builder
		for i := range most {
			fmt.Fprintf(&b, form+",", i)
		}
		return strings.TrimSuffix(b.String(), ",")
	}
	for name, raw := range map[string]string{
		"enum":              `{"contains":{"enum":[` + list(`"a%d"`) + `]}}`,
		"objects":           `{"contains":{"enum":[` + list(`{"a":%d}`) + `]}}`,
		"required":          `{"items":{"not":{"required":[` + list(`"a%d"`) + `]}}}`,
		"properties":        `{"items":{"properties":{` + list(`"a%d":{}`) + `}}}`,
		"dependentRequired": `{"items":{"dependentRequired":{` + list(`"a%d":["b"]`) + `}}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := schema.Parse(raw)
			require.NoError(t, err)
			began := time.Now()
			err = validate(t, s, "["+strings.TrimSuffix(strings.Repeat("{},", most), ",")+"]")
			require.ErrorContains(t, err, "depth")
			require.Less(t, time.Since(began), 10*time.Second) // of minutes
			require.NotContains(t, fmt.Sprint(validate(t, s, "[{},{}]")), "depth")
		})
	}
}

// The library reads what is nested again for each level around it, and cannot be stopped.
//
// Requirement: G66.
func TestDeepSchemasAreShort(t *testing.T) {
	t.Parallel()
	nest := func(levels, values int) string {
		return strings.Repeat(`{"items":`, levels) + `{"enum":[0` + strings.Repeat(",[]", values) + `]}` + strings.Repeat("}", levels)
	}
	for _, raw := range []string{nest(90, 10_000), nest(1, 100_000)} {
		_, err := schema.Parse(raw)
		require.NoError(t, err)
	}
	began := time.Now()
	_, err := schema.Parse(nest(90, 200_000))
	require.ErrorIs(t, err, schema.ErrInvalid)
	require.ErrorContains(t, err, "takes too long to read; nest less deeply")
	_ = schema.Tolerant(nest(90, 200_000))
	require.Less(t, time.Since(began), 10*time.Second) // the library alone takes as long for it
}
