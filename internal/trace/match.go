package trace

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A needle is a text to search for.
type needle struct {
	exact string
	words string // with one space for each run of whitespace
}

func newNeedle(text string) needle {
	return needle{exact: text, words: strings.Join(strings.Fields(text), " ")}
}

// A span is a run of bytes, [start, end).
type span struct{ start, end int }

// in returns where a text contains the needle, without overlaps; loose reports that it does
// so only if whitespace is ignored.
func (n needle) in(text string) (found []span, loose bool) {
	if n.exact == "" {
		return nil, false
	}
	if found = findAll(text, n.exact); found != nil || n.words == "" {
		return found, false
	}
	found = findAll(squeeze(text), n.words)
	unsqueeze(text, found)
	return found, found != nil
}

func findAll(text, part string) (found []span) {
	for from := 0; ; {
		i := strings.Index(text[from:], part)
		if i < 0 {
			return found
		}
		found = append(found, span{from + i, from + i + len(part)})
		from += i + len(part)
	}
}

// squeeze returns a text with one space for each run of whitespace.
func squeeze(text string) string {
	b := make([]byte, 0, len(text))
	eachSqueezed(text, func(_ int, part string) { b = append(b, part...) })
	return string(b)
}

// unsqueeze converts spans of a squeezed text, which are sorted and do not overlap, to spans
// of the text.
func unsqueeze(text string, found []span) {
	if len(found) == 0 {
		return
	}
	at, next := 0, 0 // in the squeezed text; among the ends of found
	eachSqueezed(text, func(from int, part string) {
		for i := range len(part) {
			if next < 2*len(found) && next%2 == 0 && found[next/2].start == at {
				found[next/2].start = from + i
				next++
			}
			at++
			if next < 2*len(found) && next%2 == 1 && found[next/2].end == at {
				found[next/2].end = from + i + 1
				next++
			}
		}
	})
}

// eachSqueezed calls f with each part of a squeezed text and its position in the text.
func eachSqueezed(text string, f func(from int, part string)) {
	space := false
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch isSpace := unicode.IsSpace(r); {
		case !isSpace:
			f(i, text[i:i+size])
			space = false
		case !space:
			f(i, " ")
			space = true
		}
		i += size
	}
}
