package schema_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/schema"
)

// A pattern with a thousand states took minutes for a text of a megabyte, and could not be stopped.
func TestPatternsThatAreTooMuchWork(t *testing.T) {
	t.Parallel()
	slow, text := strings.Repeat("x?", 1_000)+"!", strings.Repeat("x", 1<<20)
	for name, tt := range map[string]struct{ schema, value, want string }{
		"pattern":             {`{"properties":{"a":{"pattern":"%s"}}}`, `{"a":"%s"}`, `cannot be checked, since the pattern "x?x?`},
		"in place":            {`{"properties":{"a":{"anyOf":[{"not":{"$ref":"#/$defs/p"}},{}]}},"$defs":{"p":{"pattern":"%s"}}}`, `{"a":"%s"}`, `(in /$defs/p of the schema); write a text that is shorter than 1048576 bytes`},
		"name of a member":    {`{"patternProperties":{"%s":{}}}`, `{"%s":1}`, `takes too much work to match (in the schema)`},
		"names of members":    {`{"propertyNames":{"pattern":"%s"}}`, `{"%s":1}`, `takes too much work to match (in /propertyNames of the schema)`},
		"in all alternatives": {`{"anyOf":[{"pattern":"%s"},{"type":"string"}]}`, `"%s"`, `takes too much work to match (in /anyOf/0 of the schema)`},
	} {
		v, err := jsonvalue.Parse(fmt.Sprintf(tt.value, text))
		require.NoError(t, err)
		s := parsed(t, fmt.Sprintf(tt.schema, slow))
		require.NoError(t, s.Unusable())
		began := time.Now()
		err = s.Validate(v)
		require.ErrorContains(t, err, tt.want, name)
		require.Equal(t, err.Error(), schema.Problem(err))
		require.Less(t, time.Since(began), 5*time.Second, "on a busy computer; it takes some milliseconds")
	}
}

func TestPatternsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("(x{1000})?", 20)
	var many strings.Builder
	many.WriteString(`{"properties":{`)
	for i := range 200 {
		many.WriteString(fmt.Sprintf(`"p%d":{"pattern":"x{1000}%d"},`, i, i))
	}
	for name, tt := range map[string]struct{ schema, value, want string }{
		"pattern":          {`{"properties":{"a":{"pattern":"` + large + `"}}}`, `{"a":"x"}`, `compiles to more than 10000 instructions (in /properties/a of the schema)`},
		"name of a member": {`{"patternProperties":{"` + large + `":false},"additionalProperties":false}`, `{"a":"x"}`, `compiles to more than 10000 instructions (in the schema)`},
		"together":         {many.String() + `"z":{}}}`, `{"p7":"x","p8":"x","p42":"x","p150":"x","p190":"x"}`, `and the others of the schema compile to more than 100000 instructions (in /properties/p`},
	} {
		s := parsed(t, tt.schema)
		err := s.Unusable()
		require.ErrorIs(t, err, schema.ErrInvalid, name)
		require.ErrorContains(t, err, "write a simpler one", name)
		require.ErrorContains(t, validate(t, s, tt.value), tt.want, name)
		require.NoError(t, validate(t, s, `{}`), "the pattern is about nothing")
		require.NotEqual(t, schema.No, s.Has([]string{"a"}), name)
		require.JSONEq(t, tt.schema, schema.Tolerant(tt.schema), "it stays in the schema of a server")
	}
}

// A text that patterns can check in time is checked to its end.
func TestPatternsOfLargeTexts(t *testing.T) {
	t.Parallel()
	s := parsed(t, `{"type":"string","pattern":"^(\\w+ ?)*$"}`)
	text := strings.Repeat("word ", 40_000)
	require.NoError(t, validate(t, s, `"`+text+`"`))
	require.EqualError(t, validate(t, s, `"`+text+`!"`), `it does not match the schema: the whole value: found a string; expected pattern "^(\\w+ ?)*$"`)
}

func TestPatternsEndWithTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	v, err := jsonvalue.Parse(`"` + strings.Repeat("x", 100_000) + `"`)
	require.NoError(t, err)
	require.ErrorIs(t, parsed(t, `{"pattern":"^(a|b|c)*$"}`).ValidateContext(ctx, v), context.Canceled)
}

func BenchmarkPatterns(b *testing.B) {
	s, err := schema.Parse(`{"items":{"properties":{"id":{"pattern":"^[A-Z]{2}-[0-9]{1,6}$"}},"patternProperties":{"^x-":{"type":"string"}}}}`)
	require.NoError(b, err)
	v, err := jsonvalue.Parse("[" + strings.Repeat(`{"id":"AB-1234","x-a":"text","other":"text"},`, 2_000) + "{}]")
	require.NoError(b, err)
	for b.Loop() {
		require.NoError(b, s.Validate(v))
	}
}
