package prompt

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/naming"
	"golang.org/x/text/unicode/norm"
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
	headAnswer       = "## Your previous answer"
	headWrong        = "## What is wrong with it"
	fenceOpen        = "[envelope "
	fenceClose       = "[/envelope "
	withheldOpen     = "[withheld"

	// In prompts for the coordinator.
	headRoster   = "## Team Roster"
	headGoal     = "## Goal"
	headDraft    = "## Your previous plan"
	headOriginal = "## Original Goal"
	headResults  = "## Task Results"
	headFailed   = "## Failed Tasks"
	headSkipped  = "## Skipped Tasks"
	headDuty     = "## Your Task"
)

// openers are what no line of a description may begin with, in lower case.
// Where one has a blank, any number of them counts; behind a bracket or a
// slash and before a colon blanks count as nothing.
var openers = lowered("# Task:", headInputs, headDependencies, headMemory, headMessages, headRaw, headStructured, headSchema, headAnswer, headWrong,
	fenceOpen, "[envelope:", fenceClose, "[/envelope:", withheldOpen)

// goalOpeners are what no line of a goal may begin with.
var goalOpeners = append(lowered(headRoster, headGoal, headDraft, headOriginal, headResults, headFailed, headSkipped, headDuty), openers...)

func lowered(list ...string) []string {
	for i := range list {
		list[i] = strings.ToLower(list[i])
	}
	return list
}

// Opener finds the first line of an instruction that begins as only the
// builder's own lines may, after leading blanks, whatever the case of its
// letters, and with invisible characters anywhere. It returns the line's
// number, from 1, and the opener; line 0 means that there is none.
func Opener(text string) (line int, opener string) { return find(text, openers) }

// GoalOpener does for a goal what [Opener] does for a description. A goal also
// keeps off the headings of the coordinator's prompts, where it stands.
func GoalOpener(text string) (line int, opener string) { return find(text, goalOpeners) }

// find looks for a line that begins with something reserved, also in
// compatibility forms such as full-width letters and ligatures. Every opener
// begins with # or a bracket.
func find(text string, reserved []string) (line int, opener string) {
	if !strings.ContainsAny(text, "#[") && isASCII(text) {
		return 0, ""
	}
	for line = 1; ; line++ {
		end := strings.IndexFunc(text, naming.EndsLine)
		first := text
		if end >= 0 {
			first = text[:end]
		}
		first = visible(strings.TrimLeftFunc(first, blank))
		if strings.HasPrefix(first, "#") || strings.HasPrefix(first, "[") {
			for _, o := range reserved {
				if foldPrefix(first, o) {
					return line, o
				}
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

func isASCII(text string) bool {
	return strings.IndexFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) < 0
}

// maxOpener is how many characters of a line are compared: more than a reserved
// line begins with.
const maxOpener = 64

// visible returns the beginning of a line as a reader takes it: compatibility
// characters as what they stand for, without marks and what is invisible, and
// one space for several. A line of ASCII is returned as it is.
func visible(line string) string {
	if isASCII(line) {
		return line
	}
	var b strings.Builder
	kept, gap := 0, false
	for _, r := range line {
		if invisible(r) || unicode.Is(unicode.M, r) {
			continue
		}
		for _, c := range norm.NFKD.String(string(r)) {
			switch {
			case unicode.Is(unicode.M, c) || invisible(c):
			case unicode.IsSpace(c) && gap:
			default:
				gap = unicode.IsSpace(c)
				kept++
				b.WriteRune(c)
			}
		}
		if kept >= maxOpener {
			break
		}
	}
	return b.String()
}

// invisible reports whether r leaves no mark on a page: format and control
// characters, variation selectors, fillers, the empty Braille pattern.
func invisible(r rune) bool {
	return r > unicode.MaxASCII && (unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || r == 0x2800) ||
		unicode.IsControl(r)
}

// foldPrefix reports whether text begins with prefix: letter case, invisible
// characters, and blanks aside, see [openers].
func foldPrefix(text, prefix string) bool {
	for i := 0; i < len(prefix); {
		if prefix[i] == ' ' {
			rest := strings.TrimLeftFunc(text, blank)
			if len(rest) == len(text) {
				return false
			}
			i, text = i+1, rest
			continue
		}
		if loose(prefix, i) {
			text = strings.TrimLeftFunc(text, blank)
		}
		r, size := utf8.DecodeRuneInString(text)
		if size == 0 {
			return false
		}
		text = text[size:]
		switch want := prefix[i : i+1]; {
		case r < utf8.RuneSelf && string(r) == want, strings.EqualFold(string(r), want):
			i++
		case !invisible(r):
			return false
		}
	}
	return true
}

// loose reports whether blanks before prefix[i] count as nothing.
func loose(prefix string, i int) bool {
	return prefix[i] == ':' || i > 0 && (prefix[i-1] == '/' || prefix[i-1] == '[')
}

func blank(r rune) bool { return unicode.IsSpace(r) || invisible(r) }
