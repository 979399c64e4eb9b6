package console

import (
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/runteam/runteam/internal/cli/terminal"
)

// However a text is written in parts, it is printed like the whole text: clean, and with one line feed at its end.
func TestTextsAreCleanedInParts(t *testing.T) {
	t.Parallel()
	require.Empty(t, printed())
	require.Equal(t, "\n", printed("\n"))
	for _, text := range []string{"a\n\nb\x1b[2Jc\n\n", "\n\na\u202e\r\nb", "x", "a\n"} {
		want := strings.TrimRight(terminal.Clean(text), "\n") + "\n"
		for i := range text {
			for j := range text {
				require.Equal(t, want, printed(text[:min(i, j)], text[min(i, j):max(i, j)], text[max(i, j):]), "%q at %d and %d", text, i, j)
			}
		}
	}
}

// printed returns what is printed of a text that is written in parts.
func printed(parts ...string) string {
	var b strings.Builder
	c := &cleanWriter{to: &b}
	for _, part := range parts {
		_, _ = io.WriteString(c, part) // a Builder has no errors
	}
	_ = c.end()
	return b.String()
}
