package trace

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A needle is a text to look for.
type needle struct {
	exact string
	words string // with one blank for each run of white space
}

func newNeedle(text string) needle {
	return needle{exact: text, words: strings.Join(strings.Fields(text), " ")}
}

// A span is a run of bytes, [start, end).
type span struct{ start, end int }

// in returns where a text contains the needle, without overlaps; loose says
// that it does only if white space does not count.
func (n needle) in(text string) (found []span, loose bool) {
	if n.exact == "" {
		return nil, false
	}
	if found = every(text, n.exact); found != nil || n.words == "" {
		return found, false
	}
	plain, at := squeeze(text)
	for _, s := range every(plain, n.words) {
		found = append(found, span{at[s.start], at[s.end-1] + 1})
	}
	return found, found != nil
}

func every(text, part string) (found []span) {
	for from := 0; ; {
		i := strings.Index(text[from:], part)
		if i < 0 {
			return found
		}
		found = append(found, span{from + i, from + i + len(part)})
		from += i + len(part)
	}
}

// squeeze returns a text with one blank for each run of white space, and for
// each byte of it the place in text.
func squeeze(text string) (plain string, at []int) {
	b := make([]byte, 0, len(text))
	at = make([]int, 0, len(text))
	blank := false
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch space := unicode.IsSpace(r); {
		case !space:
			for j := range size {
				b, at = append(b, text[i+j]), append(at, i+j)
			}
			blank = false
		case !blank:
			b, at, blank = append(b, ' '), append(at, i), true
		}
		i += size
	}
	return string(b), at
}
