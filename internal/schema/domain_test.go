package schema_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/condition"
	"github.com/runteam/runteam/internal/schema"
)

func TestDomain(t *testing.T) {
	t.Parallel()
	low, high := 0.5, 9.0
	tests := []struct {
		name, schema string
		want         condition.Domain
	}{
		{"an enum", `{"enum":["b","a",1,null]}`, condition.Domain{Values: []string{`"a"`, `"b"`, "1", "null"}}},
		{"a const", `{"const":2.50}`, condition.Domain{Values: []string{"2.5"}}},
		{"a boolean", `{"type":"boolean"}`, condition.Domain{Values: []string{"false", "true"}}},
		{"a boolean or null", `{"type":["boolean","null"]}`, condition.Domain{Values: []string{"false", "null", "true"}}},
		{"numbers", `{"type":"number","minimum":0.5,"maximum":9}`, condition.Domain{Numbers: true, Min: &low, Max: &high}},
		{"integers", `{"type":"integer"}`, condition.Domain{Numbers: true, Integer: true}},
		{"texts", `{"type":"string","pattern":"^[a-c]$"}`, condition.Domain{Texts: true}},
		{"either", `{"anyOf":[{"type":"integer","minimum":0.5},{"type":"number","maximum":9},{"enum":["a"]}]}`, condition.Domain{Numbers: true, Values: []string{`"a"`}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s, err := schema.Parse(`{"type":"object","required":["x"],"properties":{"x":` + tt.schema + `,"y":` + tt.schema + `}}`)
			require.NoError(t, err)
			require.Equal(t, tt.want, s.Domain([]string{"x"}))
			tt.want.Absent = true
			require.Equal(t, tt.want, s.Domain([]string{"y"}))
		})
	}
}

// TestDomainOfOptionalObjects checks that a value may be absent with an object around it.
func TestDomainOfOptionalObjects(t *testing.T) {
	t.Parallel()
	for text, absent := range map[string]bool{
		`{"type":"object","required":["o"],"properties":{"o":{"type":"object","required":["x"],"properties":{"x":{"type":"boolean"}}}}}`:                                  false,
		`{"type":"object","properties":{"o":{"type":"object","required":["x"],"properties":{"x":{"type":"boolean"}}}}}`:                                                   true,
		`{"type":"object","required":["o"],"properties":{"o":{"type":["object","null"],"required":["x"],"properties":{"x":{"type":"boolean"}}}}}`:                         true,
		`{"type":"object","required":["o"],"properties":{"o":{"allOf":[{"type":"object","required":["x"]},{"type":"object","properties":{"x":{"type":"boolean"}}}]}}}`:    false,
		`{"type":"object","required":["o"],"properties":{"o":{"type":"object","properties":{"x":{"type":"boolean"}}}},"allOf":[{"properties":{"o":{"required":["x"]}}}]}`: true, // alone, the second says so of objects only
	} {
		s, err := schema.Parse(text)
		require.NoError(t, err)
		require.Equal(t, condition.Domain{Absent: absent, Values: []string{"false", "true"}}, s.Domain([]string{"o", "x"}), text)
	}
	var none *schema.Schema
	require.True(t, none.Domain([]string{"x"}).Texts)
}
