package oneline_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/oneline"
)

func TestOfCutsOnARune(t *testing.T) {
	t.Parallel()
	require.Equal(t, strings.Repeat("é", 148)+"…", oneline.Of(strings.Repeat("é", 400)))
	require.Equal(t, strings.Repeat("x", 300), oneline.Of(strings.Repeat("x", 300)))
	require.Equal(t, "a b", oneline.Of(" \ta\r\n\v b\u2028"))
}

func FuzzOf(f *testing.F) {
	f.Add("a\nb")
	f.Add("\x1b]8;;http://x\x07 \u200d \xff")
	f.Add(strings.Repeat("x", 299) + "é")
	f.Add(strings.Repeat("x", 298) + "  y")
	f.Fuzz(func(t *testing.T, s string) {
		got := oneline.Of(s)
		require.LessOrEqual(t, len(got), 300)
		require.True(t, utf8.ValidString(got))
		require.NotContains(t, got, "  ")
		for _, r := range got {
			require.True(t, unicode.IsPrint(r), "%q", r)
		}
		require.Equal(t, got, oneline.Of(got))
	})
}
