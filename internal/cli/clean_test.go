package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/cli/terminal"
	"github.com/runteam/runteam/internal/naming"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Requirement: G53.
func TestCleanEscapesHiddenCharacters(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, give, want string }{
		{"plain text stays", "Grüße, 世界 👩‍🚀 ❤️\n\tend", "Grüße, 世界 👩‍🚀 ❤️\n\tend"},
		{"ANSI escapes", "\x1b[2J\x1b]0;title\a", `\x1b[2J\x1b]0;title\x07`},
		{"carriage return and backspace", "real\rfake\b\b", `real\rfake\x08\x08`},
		{"C1 control sequence introducer", "a\u009b31mb", `a\u009b31mb`},
		{"a raw byte that is C1 in Latin-1", "a\x9b31mb", `a\x9b31mb`},
		{"DEL", "a\x7fb", `a\x7fb`},
		{"bidi override and isolates", "a\u202eb\u2066c\u2069", `a\u202eb\u2066c\u2069`},
		{"byte order mark and zero width space", "\ufeffa\u200bb", `\ufeffa\u200bb`},
		{"line and paragraph separators, NEL", "a\u2028b\u2029c\u0085d", `a\u2028b\u2029c\u0085d`},
		{"tag characters", "a\U000e0041", `a\U000e0041`},
		{"hangul filler, which is a letter", "a\u3164b", `a\u3164b`},
		{"variation selector beyond the two of emoji", "a\U000e0100", `a\U000e0100`},
		{"vertical tab, form feed", "a\v\fb", `a\x0b\x0cb`},
		{"the replacement character itself is visible", "a\ufffdb", "a\ufffdb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, tt.want, terminal.Clean(tt.give))
		})
	}
	require.Equal(t, `a\nb\tc`, terminal.CleanLine("a\nb\tc"))
}

// Requirement: G53.
func FuzzCleanLeavesNothingHidden(f *testing.F) {
	f.Add("a\u202eb\x1b[0m\x9b\n\t")
	f.Fuzz(func(t *testing.T, s string) {
		got := terminal.Clean(s)
		require.True(t, utf8.ValidString(got))
		require.Equal(t, got, terminal.Clean(got), "cleaning twice changes nothing")
		for _, r := range got {
			require.False(t, naming.Hidden(r) && r != '\n' && r != '\t', "%q", r)
		}
	})
}

// Requirement: G53.
func TestJSONWriterKeepsTheMeaning(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune("\u202e\u009b\x7f\U000e0041\u2066\ufeff\x1b\n")))).Draw(t, "text")
		given, err := json.Marshal(map[string]string{"text": text})
		require.NoError(t, err)
		var out bytes.Buffer
		c := &terminal.JSONWriter{W: &out}
		for rest := given; len(rest) > 0; { // in pieces that cut runes
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			written, err := c.Write(rest[:n])
			require.NoError(t, err)
			require.Equal(t, n, written)
			rest = rest[n:]
		}
		var want, got any
		require.NoError(t, json.Unmarshal(given, &want))
		require.NoError(t, json.Unmarshal(out.Bytes(), &got), "%s", out.String())
		require.Equal(t, want, got)
		require.Equal(t, -1, strings.IndexFunc(out.String(), naming.Hidden), "%q", out.String())
	})
}
