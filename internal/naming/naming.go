// Package naming decides what may name something: titles of tasks, names of agents and inputs,
// and texts that take up one line. It compares names, and suggests the one that was meant.
package naming

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of names and lines, in characters.
const (
	MaxTitle = 200
	MaxName  = 64
)

// The conditions of a name or a line that the Check functions refuse.
var (
	ErrLine     = errors.New("not one clean line")
	ErrTitle    = errors.New("not a title")
	ErrName     = errors.New("not a name")
	ErrReserved = errors.New("reserved name")
)

// reserved are readers and producers of context that are no agents, and the
// wildcard of rules.
var reserved = []string{"user", "coordinator", "runteam", "*"}

// CheckTitle reports why a title cannot be one: it must be a clean line (see
// [CheckLine]) of 1 to [MaxTitle] characters, surrounding spaces not counted.
// Errors wrap [ErrTitle].
func CheckTitle(title string) error {
	title = strings.TrimSpace(title)
	switch {
	case title == "":
		return fmt.Errorf("%w: it is empty", ErrTitle)
	case len(title) > MaxTitle && utf8.RuneCountInString(title) > MaxTitle:
		return fmt.Errorf("%w: %d characters, more than %d", ErrTitle, utf8.RuneCountInString(title), MaxTitle)
	}
	if fault := lineFault(title); fault != "" {
		return fmt.Errorf("%w: %s", ErrTitle, fault)
	}
	return nil
}

// CheckLine reports why a text cannot be written on one line: it must be valid
// UTF-8 without control characters, line breaks of any script, and invisible
// characters that reorder or hide what a person reads (the joiners that scripts and
// emoji need are allowed). The empty text is fine. Errors wrap [ErrLine].
func CheckLine(text string) error {
	if fault := lineFault(text); fault != "" {
		return fmt.Errorf("%w: %s", ErrLine, fault)
	}
	return nil
}

// lineFault says what is wrong with a line, or nothing.
func lineFault(text string) string {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f {
			return unicodeFault(text)
		}
	}
	return ""
}

func unicodeFault(text string) string {
	if !utf8.ValidString(text) {
		return "it is not valid UTF-8"
	}
	for i, r := range text {
		switch {
		case EndsLine(r):
			return fmt.Sprintf("it has a line break (%U) at byte %d", r, i)
		case unicode.IsControl(r):
			return fmt.Sprintf("it has a control character (%U) at byte %d", r, i)
		case Hidden(r):
			return fmt.Sprintf("it has an invisible character (%U) at byte %d", r, i)
		}
	}
	return ""
}

// EndsLine reports whether some reader of text ends a line at r: LF, CR, VT,
// FF, FS to RS, NEL, LS or PS.
func EndsLine(r rune) bool {
	return '\n' <= r && r <= '\r' || 0x1c <= r && r <= 0x1e || r == 0x85 || r == 0x2028 || r == 0x2029
}

// Hidden reports characters that a person cannot see: control characters, line and paragraph
// separators, format characters (among them the bidi controls, the byte order mark and the tag
// characters), and those that Unicode draws as nothing. The joiners ZWNJ and ZWJ, the selectors of
// text and emoji style, and signs that precede numbers are not hidden.
func Hidden(r rune) bool {
	switch {
	case r < 0x20 || r == 0x7f:
		return true
	case r < 0x7f:
		return false
	case r == 0x200c || r == 0x200d || r == 0xfe0e || r == 0xfe0f:
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// CheckName reports why a name of an agent or an input cannot be one. A name
// is a letter or digit, then up to 63 letters, digits, `.`, `_`, `-` or spaces,
// the last not a space. The names user, coordinator, runteam and * are reserved
// in any letter case. Errors wrap [ErrName] or [ErrReserved].
func CheckName(name string) error {
	if slices.ContainsFunc(reserved, func(word string) bool { return strings.EqualFold(word, name) }) {
		return fmt.Errorf("%w %s: choose another", ErrReserved, name)
	}
	switch {
	case name == "":
		return fmt.Errorf("%w: it is empty", ErrName)
	case !utf8.ValidString(name):
		return fmt.Errorf("%w: it is not valid UTF-8", ErrName)
	case len(name) > MaxName && utf8.RuneCountInString(name) > MaxName:
		return fmt.Errorf("%w: %d characters, more than %d", ErrName, utf8.RuneCountInString(name), MaxName)
	case strings.HasSuffix(name, " "):
		return fmt.Errorf("%w: it ends in a space", ErrName)
	}
	for i, r := range name {
		if isAlnum(r) || i > 0 && (r == '.' || r == '_' || r == '-' || r == ' ') {
			continue
		}
		if i == 0 {
			return fmt.Errorf("%w: it begins with %q: begin with a letter or a digit", ErrName, r)
		}
		return fmt.Errorf("%w: %q at byte %d: use letters, digits, '.', '_', '-' and spaces", ErrName, r, i)
	}
	return nil
}

// isAlnum reports whether r is in \p{L} or \p{N}.
func isAlnum(r rune) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.IsLetter(r) || unicode.IsNumber(r)
}

// KeyFault reports why a task's key cannot be one: it must be [a-z0-9-]+, at most MaxName long.
func KeyFault(key string) string {
	for i, r := range key {
		if r != '-' && (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			return fmt.Sprintf("%q at byte %d: use a-z, 0-9 and '-'", r, i)
		}
	}
	if len(key) > MaxName {
		return fmt.Sprintf("%d characters, more than %d", len(key), MaxName)
	}
	return ""
}

// Quote quotes a word of the caller, with escapes for what a terminal must not
// see, and cuts it so that a message stays readable.
func Quote(word string) string {
	const most = 60
	if utf8.RuneCountInString(word) > most {
		word = string([]rune(word)[:most-1]) + "…"
	}
	return strconv.Quote(word)
}
