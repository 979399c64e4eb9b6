package gate

import (
	"fmt"
	"unicode/utf8"

	"github.com/runteam/runteam/handoff"
	"github.com/runteam/runteam/internal/jsonvalue"
)

// MaxReply is how many bytes a reply may have as JSON writes it: text, structured
// part and tags together.
const MaxReply = 4 << 20

// RuleReplySize refuses a reply above [MaxReply].
const RuleReplySize handoff.Rule = "reply size"

// tooLargeReply is the reason for that.
var tooLargeReply = fmt.Sprintf("the reply is larger than %d MiB, as JSON writes it: return less", MaxReply>>20)

// tooLarge reports whether the reply is above [MaxReply]. A small text is not looked through: JSON
// writes a byte as at most six.
func (r *Reply) tooLarge() bool {
	if len(r.Tags) == 0 && len(r.JSON.Canonical())+len(`\u0000`)*len(r.Text)+len(`""`) <= MaxReply {
		return false
	}
	left := MaxReply - len(r.JSON.Canonical()) - jsonSize(r.Text)
	for _, tag := range r.Tags {
		if left < 0 {
			break
		}
		left -= jsonSize(tag)
	}
	return left < 0
}

// FitsReply reports whether a reply of a text and a structured part, which may be the zero
// value, is within [MaxReply].
func FitsReply(text string, v jsonvalue.Value) bool {
	return !(&Reply{Text: text, JSON: v}).tooLarge()
}

// mostShown bounds a result as the caller sees it. A line of a journal has 16 MiB
// and holds both forms of a result, which take a third more if encrypted.
const mostShown = 7 << 20

// FitsRecord reports whether a result in the form for the caller is small enough to
// be stored with the result itself: redaction can make a value longer.
func FitsRecord(text, structured string) bool {
	return jsonSize(text)+jsonSize(structured) <= mostShown
}

// jsonSize returns how many bytes JSON takes for a text. One that is longer than
// any reply may be is not looked through.
func jsonSize(text string) int {
	n := len(text) + len(`""`)
	if n > mostShown {
		return n
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"', c == '\\', c == '\n', c == '\r', c == '\t', c == '\b', c == '\f':
			n++
		case c < ' ':
			n += len(`\u0000`) - 1
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRuneInString(text[i:])
			switch {
			case r == utf8.RuneError && size == 1:
				n += len(`\ufffd`) - 1
			case r == '\u2028', r == '\u2029':
				n += len(`\u2028`) - size
			}
			i += size - 1
		}
	}
	return n
}
