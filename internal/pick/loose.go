package pick

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Exact returns a name as allow paths compare it: after NFC.
func Exact(name string) string {
	if isPlain(name) {
		return name
	}
	return norm.NFC.String(name)
}

// Loose returns a name as blocks compare it: case-folded, after NFKC, without
// invisible characters. Spellings that differ only in these are the same name.
func Loose(name string) string {
	if isPlain(name) {
		return strings.ToLower(name)
	}
	// Folding wants its text taken apart, lest it fold a mark out of its order;
	// what folding makes may come apart, and fold, once more.
	name = strings.Map(visible, name)
	for range 2 {
		name = cases.Fold().String(norm.NFKD.String(name))
	}
	return strings.Map(visible, norm.NFKC.String(strings.Map(lower, name)))
}

// lower evens out the letters that folding exchanges, such as Cherokee ones.
func lower(r rune) rune { return unicode.ToLower(unicode.ToUpper(r)) }

func isPlain(name string) bool {
	for i := range len(name) {
		if c := name[i]; c < ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}

// visible drops format and control characters, variation selectors and fillers.
func visible(r rune) rune {
	switch {
	case r < utf8.RuneSelf && r >= ' ' && r != 0x7f:
		return r
	case unicode.In(r, unicode.Cf, unicode.Cc, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return -1
	}
	return r
}
