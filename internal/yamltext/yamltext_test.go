package yamltext_test

import (
	"testing"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/yamltext"
)

func TestBlock(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ give, want string }{
		{"a\nb", "|-\n  a\n  b\n"},
		{"a\n\nb\n", "|\n  a\n\n  b\n"},
		{"a\n  b\n", "|\n  a\n    b\n"},
		{"", ""}, {"\n", ""}, {"\na", ""}, {" a\nb", ""}, {"a \nb", ""}, {"a\nb ", ""}, {"a\n\n", ""},
		{"a\rb\nc", ""}, {"a\x00\nb", ""}, {"a\u200b\nb", ""}, {"a\xff\nb", ""}, {"a\u00a0\nb", ""},
	} {
		got, ok := yamltext.Block(tt.give, "  ")
		require.Equal(t, tt.want, got, "%q", tt.give)
		require.Equal(t, tt.want != "", ok, "%q", tt.give)
	}
}

func FuzzTextsAreReadAsWritten(f *testing.F) {
	for _, text := range []string{"", "a\nb\n", "\"\\\t", "\u0085\u2028\U0001f600\x01", "a: b # c", "{{ x }}\n- y"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		text = string([]rune(text)) // as UTF-8
		require.Equal(t, text, read(t, yamltext.Quote(text)))
		if block, ok := yamltext.Block(text, "  "); ok {
			require.Equal(t, text, read(t, block))
		}
	})
}

// read returns the text of a scalar after a key.
func read(t *testing.T, scalar string) string {
	t.Helper()
	file, err := parser.ParseBytes([]byte("key: "+scalar+"\n"), 0)
	require.NoError(t, err, "%q", scalar)
	var value ast.Node
	switch body := file.Docs[0].Body.(type) {
	case *ast.MappingNode:
		value = body.Values[0].Value
	case *ast.MappingValueNode:
		value = body.Value
	}
	switch v := value.(type) {
	case *ast.StringNode:
		return v.Value
	case *ast.LiteralNode:
		return v.Value.Value
	}
	t.Fatalf("%q is read as %T", scalar, value)
	return ""
}
