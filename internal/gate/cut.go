package gate

import (
	"cmp"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/runteam/runteam/envelope"
	"github.com/runteam/runteam/redact"
	"github.com/runteam/runteam/task"
)

// Lower returns s with its text cut to at most limit bytes, for a prompt whose
// parts together are too large. The structured part stays whole.
func (s Sealed) Lower(limit int) Sealed {
	payload, from := cutText(s.payload, max(limit, 0))
	if from == 0 {
		return s
	}
	s = s.shortened(payload, from)
	s.decision.Truncated = true
	return s
}

// HeadAndTail returns s with the head and the tail of its text, together of at most limit bytes,
// for a reader who has the whole in a file. A structured value that is too long becomes a text.
func (s Sealed) HeadAndTail(limit int) Sealed {
	payload, from := excerpt(s.payload, limit)
	s.as = form(s.as, payload)
	return s.shortened(payload, from)
}

// An excerpt ends with the ellipsis, for which so many units are kept free.
const (
	ellipsis = "…"
	keptFree = 3
)

// Excerpt returns s with a text of at most units UTF-16 units, for one line of a
// digest: a longer text keeps its first units-3 units, and an ellipsis follows. It
// never ends inside a surrogate pair or a placeholder. Without a text the canonical
// JSON is the text; next to a text the structured part is left out. What is
// withheld stays as it is.
func (s Sealed) Excerpt(units int) Sealed {
	if s.Withheld() {
		return s
	}
	text := s.payload.Text()
	if text == "" {
		text, _ = s.payload.JSON()
	}
	s.as = task.Output
	if prefix(text, units) == len(text) {
		return s.shortened(envelope.Text(text), 0)
	}
	kept := ""
	if units > 0 {
		kept = text[:clearOf(text, prefix(text, units-keptFree))] + ellipsis
	}
	return s.shortened(envelope.Text(kept), len(text))
}

// shortened returns s with another payload, whose text had from bytes before
// it was cut; zero means that it was not. What that changes about the decision
// it changes about a copy.
func (s Sealed) shortened(payload envelope.Payload, from int) Sealed {
	size := s.payload.Size()
	s.payload = payload
	if from == 0 && payload.Size() == size {
		return s
	}
	d := *s.decision
	if d.CutFrom == 0 {
		d.CutFrom = from
	}
	d.BytesAfter = d.sizeOf(payload)
	s.decision = &d
	return s
}

// prefix returns how many bytes of the text fit into so many UTF-16 units.
func prefix(text string, units int) int {
	for i, r := range text {
		if units -= utf16.RuneLen(r); units < 0 {
			return i
		}
	}
	return len(text)
}

// cut shortens the text so that both parts together fit into limit bytes; from
// is the text's length before, or zero when nothing was cut.
func cut(p envelope.Payload, limit int) (_ envelope.Payload, from int) {
	canonical, _ := p.JSON()
	return cutText(p, max(limit-len(canonical), 0))
}

// BytesPerToken is the estimate by which bounds in tokens are enforced.
const BytesPerToken = 4

// Tokens estimates how many tokens a text of so many bytes has.
func Tokens(bytes int) int { return (bytes + BytesPerToken - 1) / BytesPerToken }

// omission is written between the head and the tail of an excerpt.
const omission = "\n[…]\n"

// excerpt shortens a payload to head and tail, together of at most limit
// bytes; from is the length before, or zero when nothing was cut. A structured
// value that is too long becomes a text.
func excerpt(p envelope.Payload, limit int) (_ envelope.Payload, from int) {
	text := p.Text()
	if canonical, ok := p.JSON(); ok {
		if p.Size() <= limit {
			return p, 0
		}
		text = cmp.Or(text, canonical)
	}
	if len(text) <= limit {
		return envelope.Text(text), 0
	}
	if limit < len(omission) {
		return envelope.Text(text[:clearOf(text, limit)]), len(text)
	}
	room := limit - len(omission)
	head := text[:clearOf(text, (room+1)/2)]
	return envelope.Text(head + omission + text[behind(text, len(text)-room/2):]), len(text)
}

// behind returns the first place, at or after start, that is inside no rune and
// no placeholder.
func behind(text string, start int) int {
	for start < len(text) && !utf8.RuneStart(text[start]) {
		start++
	}
	if start == len(text) || clearOf(text, start) == start {
		return start
	}
	if end := strings.IndexByte(text[start:], ']'); end >= 0 {
		return start + end + 1
	}
	return len(text)
}

// cutText shortens the text to at most limit bytes, on a rune's boundary and
// never inside a placeholder.
func cutText(p envelope.Payload, limit int) (_ envelope.Payload, from int) {
	text := p.Text()
	if len(text) <= limit {
		return p, 0
	}
	return p.WithText(text[:clearOf(text, limit)]), len(text)
}

// opening is how every placeholder begins.
var opening = strings.TrimSuffix(redact.Kind("").Placeholder(), "]")

// longestPlaceholder is more than a placeholder can have; what is longer and
// unclosed is none, and does not decide where to cut.
const longestPlaceholder = 128

// clearOf returns the last place, at or before end, that is inside no rune and no
// placeholder. The text continues after end.
func clearOf(text string, end int) int {
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	if at := strings.LastIndex(text[:min(end+len(opening), len(text))], opening); at >= 0 && at < end && at > end-longestPlaceholder && !strings.Contains(text[at:end], "]") {
		return at
	}
	return end
}
