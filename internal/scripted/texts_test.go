package scripted_test

import (
	"strings"

	"pgregory.net/rapid"
)

// texts are such as models write, and such as nobody does.
func texts() *rapid.Generator[string] {
	pieces := rapid.SampledFrom([]string{
		" ", "  ", "\t", "\n", "\n\n", "\r\n", "\r", "\v", "\x00", "\x1b[0m", "\u0085", "\u00a0", "\u2028", "\u2029", "\ufeff", "\u200d", "\u202e", "\u3000",
		"a", "é", "😀", "word", "{", "{{", "{{{", "}}", "}", "{{-", "-}}", "{{/*", "[", "[[", "- ", "---", "...", "# ", "#", ": ", ":", "\"", "'", "\\", `\n`, "`", "|", ">", "&", "*", "!", "%", "@", "?", ",",
		"## Inputs", "OFFLINE", "\U000e0001", "\U0010ffff", "\ufffd", "null", "true", "1", "~", "{{ .Prompt }}",
	})
	lines := rapid.Map(rapid.SliceOfN(pieces, 0, 12), func(all []string) string { return strings.Join(all, "") })
	return rapid.OneOf(lines, rapid.String(), rapid.Map(rapid.SliceOfN(lines, 1, 6), func(all []string) string { return strings.Join(all, "\n") }))
}
