package agent

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

func anyName(string) bool { return true }

// sameName reports whether allow paths take two names for one: in NFC.
func sameName(a, b string) bool { return a == b || norm.NFC.String(a) == norm.NFC.String(b) }

// respelt reports whether a name may have other spellings that are the same in
// NFC. Of ASCII, these are K (as the sign of kelvin), the semicolon and the grave accent.
func respelt(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf || r == 'K' || r == ';' || r == '`' })
}

// loose returns the form in which blocks compare names, the same as in package pick.
func loose(name string) string {
	name = norm.NFKC.String(strings.Map(visible, name))
	name = norm.NFKC.String(cases.Fold().String(name))
	// Folding can compose anew, and what is composed can fold once more.
	return strings.Map(visible, norm.NFKC.String(cases.Fold().String(name)))
}

// visible drops the characters that nobody sees.
func visible(r rune) rune {
	if unicode.In(r, unicode.Cf, unicode.Cc, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) {
		return -1
	}
	return r
}
