package schema

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/jsonvalue"
	"github.com/runteam/runteam/internal/pick"
)

func anyName(string) bool { return true }

// respelt reports whether a name may have other spellings that are the same in
// NFC. Of ASCII, these are K (as the sign of kelvin), the semicolon and the grave accent.
func respelt(name string) bool {
	return strings.ContainsFunc(name, func(r rune) bool { return r >= utf8.RuneSelf || r == 'K' || r == ';' || r == '`' })
}

// A spelling says how a token of a path is compared with the names of members and
// the indexes of items.
type spelling uint8

const (
	asGrants  spelling = iota // as allow paths compare: exactly, after NFC
	asBlocks                  // as blocks compare: the token is in the form of pick.Loose
	asWritten                 // letter for letter, and no index: for what is shown
)

// names reports whether the token selects a member of this name.
func (s spelling) names(name, token string) bool {
	switch {
	case token == "*" || name == token:
		return true
	case s == asGrants:
		return pick.Exact(name) == pick.Exact(token)
	case s == asBlocks:
		return pick.Loose(name) == token
	}
	return false
}

// index returns the item that the token selects. In a block, 007 is 7.
func (s spelling) index(token string) (int, bool) {
	switch k, err := strconv.Atoi(token); {
	case s == asWritten:
		return 0, false
	case s == asBlocks:
		return k, err == nil && k >= 0
	}
	return jsonvalue.Index(token)
}
