package jsonvalue

import "strings"

// Unfence splits a text into what stands before its body, the body and what
// stands behind it, which together are the text. The body is what is inside of
// one pair of code fence lines that encloses the whole text, or else all of the
// text but the whitespace around it.
func Unfence(text string) (before, body, after string) {
	body = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(body, "```"); ok {
		info, rest, lines := strings.Cut(inner, "\n")
		if rest, closed := strings.CutSuffix(rest, "```"); lines && closed && !strings.ContainsAny(info, "`{[\"") {
			body = strings.TrimSpace(rest)
		}
	}
	start := strings.Index(text, body)
	return text[:start], body, text[start+len(body):]
}
