package brief

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/naming"
	"golang.org/x/text/unicode/norm"
)

// The builder's own headings.
const (
	HeadTask         = "# Task: "
	HeadInputs       = "## Inputs"
	HeadDependencies = "## Context from prerequisite tasks"
	HeadFiles        = "## Files from prerequisite tasks"
	HeadPassed       = "## Files of the agent that gave you the goal"
	HeadMemory       = "## Shared Team Memory"
	HeadMessages     = "## Messages from team members"
	HeadTransferred  = "## Conversation before it was transferred to you"
	HeadRaw          = "#### Raw output"
	HeadStructured   = "#### Validated structured result"
	HeadSchema       = "## Output schema"
	HeadWrong        = "## What is wrong with it"
	FenceOpen        = "[envelope "
	FenceClose       = "[/envelope "
	WithheldOpen     = "[withheld"

	// In prompts for the coordinator.
	HeadRoster   = "## Team Roster"
	HeadGoal     = "## Goal"
	HeadDraft    = "## Your previous plan"
	HeadOriginal = "## Original Goal"
	HeadResults  = "## Task Results"
	HeadFailed   = "## Failed Tasks"
	HeadSkipped  = "## Skipped Tasks"
	HeadDuty     = "## Your Task"
)

// openers are what no line of a description may begin with, in lower case.
// A space in an opener matches any amount of whitespace. Whitespace after a bracket
// or a slash and before a colon is ignored.
var openers = lowered("# Task:", HeadInputs, HeadDependencies, HeadFiles, HeadPassed, HeadMemory, HeadMessages, HeadTransferred, HeadRaw, HeadStructured, HeadSchema, HeadWrong,
	FenceOpen, "[envelope:", FenceClose, "[/envelope:", WithheldOpen)

// goalOpeners are what no line of a goal may begin with.
var goalOpeners = append(lowered(HeadRoster, HeadGoal, HeadDraft, HeadOriginal, HeadResults, HeadFailed, HeadSkipped, HeadDuty), openers...)

func lowered(list ...string) []string {
	for i := range list {
		list[i] = strings.ToLower(list[i])
	}
	return list
}

// turnOpeners are what no unfenced text of an earlier turn may begin a line with: in the one text
// that an agent without messages reads, the roles of messages are lines.
var turnOpeners = append(lowered("## user", "## assistant", "## tool", "## moved out", "### call", "[turns before"), goalOpeners...)

// CallHeading returns what stands before a call of a tool in an earlier turn. The name of the tool, a line break and the
// arguments follow.
func CallHeading(id string) string { return "\n### call " + id + " of " }

// ImitatesTurns reports whether a text of an earlier turn has a line that only the builder may write.
func ImitatesTurns(text string) bool {
	line, _ := Find(text, turnOpeners)
	return line > 0
}

// Opener finds the first line of an instruction that begins as only the
// builder's own lines may, after leading whitespace, in any case, and with Invisible characters anywhere. It returns the line's
// number, from 1, and the opener; line 0 means that there is none.
func Opener(text string) (line int, opener string) { return Find(text, openers) }

// GoalOpener does for a goal what [Opener] does for a description. A goal must also
// avoid the headings of the coordinator's prompts, which contain it.
func GoalOpener(text string) (line int, opener string) { return Find(text, goalOpeners) }

// Find looks for a line that begins with something reserved, also in
// compatibility forms such as full-width letters and ligatures. Every opener
// begins with # or a bracket.
func Find(text string, reserved []string) (line int, opener string) {
	if strings.IndexByte(text, '#') < 0 && strings.IndexByte(text, '[') < 0 && isASCII(text) {
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
	for i := range len(text) {
		if text[i] > unicode.MaxASCII {
			return false
		}
	}
	return true
}

// maxOpener is how many characters of a line are compared: more than a reserved
// line begins with.
const maxOpener = 64

// visible returns the beginning of a line as a reader takes it: compatibility
// characters as their equivalents, without marks and what is Invisible, and one
// space for several. A line of ASCII is returned as it is.
func visible(line string) string {
	if isASCII(line) {
		return line
	}
	var b strings.Builder
	kept, gap := 0, false
	for _, r := range line {
		if Invisible(r) || unicode.Is(unicode.M, r) {
			continue
		}
		for _, c := range norm.NFKD.String(string(r)) {
			switch {
			case unicode.Is(unicode.M, c) || Invisible(c):
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

// Invisible reports whether r leaves no mark on a page: format and control
// characters, variation selectors, fillers, the empty Braille pattern.
func Invisible(r rune) bool {
	return r > unicode.MaxASCII && (unicode.In(r, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point) || r == 0x2800) ||
		unicode.IsControl(r)
}

// foldPrefix reports whether text begins with prefix: letter case, Invisible
// characters, and whitespace aside, see [openers].
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
		case !Invisible(r):
			return false
		}
	}
	return true
}

// loose reports whether whitespace before prefix[i] is ignored.
func loose(prefix string, i int) bool {
	return prefix[i] == ':' || i > 0 && (prefix[i-1] == '/' || prefix[i-1] == '[')
}

func blank(r rune) bool { return unicode.IsSpace(r) || Invisible(r) }
