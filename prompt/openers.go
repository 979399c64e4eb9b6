package prompt

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The builder's own headings.
const (
	headTask         = "# Task: "
	headInputs       = "## Inputs"
	headDependencies = "## Context from prerequisite tasks"
	headMemory       = "## Shared Team Memory"
	headMessages     = "## Messages from team members"
	headRaw          = "#### Raw output"
	headStructured   = "#### Validated structured result"
	headSchema       = "## Output schema"
	fenceOpen        = "[envelope "
	fenceClose       = "[/envelope "
	withheldOpen     = "[withheld"
)

// openers are what no line of a description may begin with, in lower case.
var openers = []string{"# task:", "## inputs", "## context from prerequisite tasks", "## shared team memory",
	"## messages from team members", fenceOpen, fenceClose, withheldOpen}

// Opener finds the first line of an instruction that begins as only the
// builder's own lines may, after leading blanks, whatever the case of its
// letters, and with invisible characters anywhere. It returns the line's number, from 1, and
// the opener; line 0 means that there is none.
func Opener(text string) (line int, opener string) {
	if !strings.ContainsAny(text, "#[") {
		return 0, ""
	}
	for line = 1; ; line++ {
		end := strings.IndexFunc(text, endsLine)
		first := text
		if end >= 0 {
			first = text[:end]
		}
		first = strings.TrimLeftFunc(first, blank)
		for _, o := range openers {
			if foldPrefix(first, o) {
				return line, o
			}
		}
		if end < 0 {
			return 0, ""
		}
		r, size := utf8.DecodeRuneInString(text[end:])
		if r == '\r' && strings.HasPrefix(text[end+size:], "\n") {
			size++
		}
		text = text[end+size:]
	}
}

// endsLine reports whether some reader takes r for the end of a line.
func endsLine(r rune) bool {
	switch r {
	case '\n', '\r', '\v', '\f', 0x1c, 0x1d, 0x1e, 0x85, 0x2028, 0x2029:
		return true
	}
	return false
}

// invisible reports whether r leaves no mark on a page: format and control
// characters, variation selectors, fillers, the empty Braille pattern.
func invisible(r rune) bool {
	return r > unicode.MaxASCII && (unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || r == 0x2800) ||
		unicode.IsControl(r)
}

// foldPrefix reports whether text begins with prefix: letter case, invisible
// characters, and how many blanks stand where the prefix has one aside.
func foldPrefix(text, prefix string) bool {
	for len(prefix) > 0 {
		if prefix[0] == ' ' {
			rest := strings.TrimLeftFunc(text, blank)
			if len(rest) == len(text) {
				return false
			}
			prefix, text = prefix[1:], rest
			continue
		}
		r, size := utf8.DecodeRuneInString(text)
		if size == 0 {
			return false
		}
		text = text[size:]
		switch want := prefix[:1]; {
		case r < utf8.RuneSelf && string(r) == want, strings.EqualFold(string(r), want):
			prefix = prefix[1:]
		case !invisible(r):
			return false
		}
	}
	return true
}

func blank(r rune) bool { return unicode.IsSpace(r) || invisible(r) }
