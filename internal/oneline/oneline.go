// Package oneline turns text from another program into one short, clean line that an
// error or a log can quote.
package oneline

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLine bounds the result of [Of], in bytes.
const maxLine = 300

// Of returns a text as one line of at most 300 bytes. Runs of whitespace become one
// space, control and format characters and invalid UTF-8 become escapes, and a longer
// text is cut and ends in "…". Of(Of(s)) is Of(s).
func Of(s string) string {
	if len(s) > 8*maxLine { // more cannot fit unless it is whitespace
		s = s[:8*maxLine]
	}
	var b strings.Builder
	space := false
	for i, size := 0, 0; i < len(s); i += size {
		var r rune
		r, size = utf8.DecodeRuneInString(s[i:])
		if unicode.IsSpace(r) {
			space = b.Len() > 0
			continue
		}
		piece := s[i : i+size]
		if r == utf8.RuneError && size == 1 {
			piece = fmt.Sprintf(`\x%02x`, s[i])
		} else if !unicode.IsPrint(r) {
			piece = fmt.Sprintf(`\u%04x`, r)
		}
		if space {
			piece = " " + piece
		}
		if b.Len()+len(piece) > maxLine-len("…") && !fits(b.Len()+len(piece), s[i+size:]) {
			return strings.TrimRight(b.String(), " ") + "…"
		}
		b.WriteString(piece)
		space = false
	}
	return b.String()
}

// fits reports whether a text of n bytes stays within the limit with the clean rest.
func fits(n int, rest string) bool {
	if n+len(rest) > maxLine {
		return false
	}
	for _, r := range rest {
		if r == utf8.RuneError || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
