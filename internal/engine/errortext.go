package engine

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/redact"
)

// maxErrorText bounds an error text in bytes.
const maxErrorText = 64 << 10

// errorText returns an error text as valid UTF-8, cut to maxErrorText bytes with
// a mark. Redaction comes later and for each reader, so the cut is never inside
// a span that redaction would replace.
func (r viewer) errorText(said string) string {
	if len(said) <= maxErrorText {
		return strings.ToValidUTF8(said, "\uFFFD")
	}
	length := len(said)
	const beyond = 2 * maxErrorText // a span that begins before the cut is found up to here
	said = strings.ToValidUTF8(said[:min(length, beyond)], "\uFFFD")
	end := min(len(said), maxErrorText)
	for end < len(said) && !utf8.RuneStart(said[end]) {
		end--
	}
	r.governed().Rules.Words().Find(said, func(from, to int, _ redact.Kind) {
		if from < end && to > end {
			end = from
		}
	})
	return fmt.Sprintf("%s… [cut: %d of %d KiB]", said[:end], end>>10, length>>10)
}
