package scripted

import (
	"strconv"
	"strings"
	"unicode"

	"github.com/runteam/runteam/internal/yamltext"
)

// literal returns a template that prints a text. It writes as {{"…"}} what a template or a
// file would not preserve: pairs of braces, control and invisible characters, spaces at the
// beginning and at the ends of lines, and line breaks at both ends except one at the end.
func literal(text string) string {
	runes := []rune(text)
	odd := oddities(runes)
	var b strings.Builder
	for i := 0; i < len(runes); {
		end := i + 1
		for end < len(runes) && odd[end] == odd[i] {
			end++
		}
		piece := string(runes[i:end])
		if odd[i] {
			piece = "{{" + strconv.Quote(piece) + "}}"
		}
		b.WriteString(piece)
		i = end
	}
	return b.String()
}

// oddities marks the characters that cannot be written in a template as they are.
func oddities(text []rune) []bool {
	odd := make([]bool, len(text))
	last := len(text) - 1
	for i, r := range text {
		pair := r == '{' && (i > 0 && text[i-1] == '{' || i < last && text[i+1] == '{')
		odd[i] = pair || !yamltext.IsVisible(r)
	}
	for i := 0; i <= last && unicode.IsSpace(text[i]); i++ {
		odd[i] = true
	}
	if last > 0 && text[last] == '\n' && text[last-1] == '\n' {
		for i := last; i >= 0 && text[i] == '\n'; i-- {
			odd[i] = true
		}
	}
	trailing := true // only spaces follow up to the end of the line
	for i := last; i >= 0; i-- {
		trailing = text[i] == '\n' || trailing && isSpace(text[i])
		odd[i] = odd[i] || trailing && text[i] != '\n'
		if i < last && odd[i+1] && text[i] == '{' {
			odd[i] = true // before a marked brace it would be read as a third brace
		}
	}
	return odd
}
