package agent

import (
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/pick"
)

func anyName(string) bool { return true }

// sameName reports whether allow paths take two names for one.
func sameName(a, b string) bool { return a == b || pick.Exact(a) == pick.Exact(b) }

// respelt reports whether a name may have other spellings that are the same in
// NFC. Of ASCII, these are K (as the sign of kelvin), the semicolon and the grave accent.
func respelt(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf || r == 'K' || r == ';' || r == '`' })
}
