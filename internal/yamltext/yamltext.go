// Package yamltext writes texts as YAML scalars.
package yamltext

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote returns a text in double quotes on one line. Bytes that are not UTF-8 become the
// replacement character.
func Quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range text {
		switch {
		case r == '"', r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case IsVisible(r):
			b.WriteRune(r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// Block returns a text as a literal block whose lines begin with indent. ok is false for a
// text that a block might not preserve, even if an editor removes invisible spaces: with
// characters that are not visible, with a space at the beginning or at the end of a line, or
// with line breaks at its ends except one at the end.
func Block(text, indent string) (block string, ok bool) {
	body, ended := strings.CutSuffix(text, "\n")
	if body == "" || !utf8.ValidString(body) {
		return "", false
	}
	before := '\n'
	for i, r := range body {
		if !IsVisible(r) || unicode.IsSpace(r) && (i == 0 || r == '\n' && before != '\n' && unicode.IsSpace(before)) {
			return "", false
		}
		before = r
	}
	if unicode.IsSpace(before) {
		return "", false
	}
	var b strings.Builder
	b.WriteByte('|')
	if !ended {
		b.WriteByte('-')
	}
	b.WriteByte('\n')
	for line := range strings.SplitSeq(body, "\n") {
		if line != "" {
			b.WriteString(indent + line)
		}
		b.WriteByte('\n')
	}
	return b.String(), true
}

// IsVisible reports whether a file may contain a character unescaped: one that is printable,
// a space, a tab or a line feed.
func IsVisible(r rune) bool {
	return r == '\n' || r == '\t' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r)
}
