package jsonvalue

import "strings"

// Unfence splits a text into the parts before its body, the body, and after it. The body
// is the content of the code fence that encloses the whole text, or else the text without
// the whitespace around it.
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
