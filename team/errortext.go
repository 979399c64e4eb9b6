package team

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/handoff"
)

// errorText returns what an error says as valid UTF-8, cut to
// [handoff.MaxError] bytes with a mark. Redaction comes later and at each
// reader, so the cut is never inside a span that it would take out.
func (r *run) errorText(said string) string {
	if len(said) <= handoff.MaxError {
		return strings.ToValidUTF8(said, "\uFFFD")
	}
	length := len(said)
	const beyond = 2 * handoff.MaxError // how far a span is looked for that begins before the cut
	said = strings.ToValidUTF8(said[:min(length, beyond)], "\uFFFD")
	end := min(len(said), handoff.MaxError)
	for end < len(said) && !utf8.RuneStart(said[end]) {
		end--
	}
	for _, s := range r.team.edges.words().Find(said, nil) {
		if s.Start < end && s.End > end {
			end = s.Start
		}
	}
	return fmt.Sprintf("%s… [cut: %d of %d KiB]", said[:end], end>>10, length>>10)
}
