package planning

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/naming"
)

// The joiners, which scripts and emoji need, are the only invisible characters
// that a line keeps.
const (
	nonJoiner = '\u200c'
	joiner    = '\u200d'
)

// oneLine returns text as one clean line: runs of spaces and line breaks are
// one space, what is invisible or no UTF-8 is dropped, and more than most
// characters are cut, if possible between words, with … at the end.
func oneLine(text string, most int) string {
	var b strings.Builder
	gap := false
	for _, r := range strings.ToValidUTF8(text, "") {
		switch {
		case unicode.IsSpace(r) || naming.EndsLine(r):
			gap = b.Len() > 0
			continue
		case dropped(r):
			continue
		case gap:
			b.WriteByte(' ')
			gap = false
		}
		b.WriteRune(r)
	}
	return cut(b.String(), most)
}

// dropped reports whether r leaves no mark on a page: control and format
// characters, variation selectors, fillers, the empty Braille pattern.
func dropped(r rune) bool {
	if r < utf8.RuneSelf {
		return r < ' ' || r == 0x7f
	}
	if r == nonJoiner || r == joiner || unicode.Is(unicode.Prepended_Concatenation_Mark, r) {
		return false
	}
	return unicode.IsControl(r) || r == 0x2800 ||
		unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// cut returns a line of at most most characters.
func cut(line string, most int) string {
	if len(line) <= most || utf8.RuneCountInString(line) <= most {
		return line
	}
	runes := []rune(line)[:most]
	end := most - 1 // room for …
	for end > 0 && joined(runes[end-1], runes[end]) {
		end--
	}
	if end == 0 { // marks only: nothing to keep whole
		end = most - 1
	}
	for at := end; at > end*2/3; at-- {
		if runes[at] == ' ' {
			end = at
			break
		}
	}
	return strings.TrimRightFunc(string(runes[:end]), func(r rune) bool { return r == ' ' || r == ',' || r == ';' || r == ':' }) + "…"
}

// joined reports whether b belongs to a, so that no cut goes between them.
func joined(a, b rune) bool {
	return unicode.Is(unicode.M, b) || b == joiner || b == nonJoiner || a == joiner
}

// quote quotes a word of a plan, cut and with escapes for what must not be seen.
func quote(word string) string { return strconv.Quote(cut(word, maxWord)) }
