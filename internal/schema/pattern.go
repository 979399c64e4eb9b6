package schema

import (
	"fmt"
	"regexp/syntax"
)

// A bounded text has at most maxText characters, which spell at most maxWords bits: eight
// letters of one case, or eight letters and digits.
const (
	maxText  = 64
	maxWords = 42
)

// formats are patterns to write instead of a format, which is not checked.
var formats = map[string]string{
	"date":      `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`,
	"time":      `^[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`,
	"date-time": `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`,
	"uuid":      `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`,
}

// text returns how freely the schema allows texts.
func (n *node) text() cell {
	if n.pattern == "" {
		if f, ok := formats[n.format]; ok {
			return cell{level: free, why: fmt.Sprintf(`nothing checks "format" in %s: write "pattern": %q`, place(n.at), f)}
		}
		if n.types == allKinds {
			return cell{level: free}
		}
		return cell{level: free, why: fmt.Sprintf(`%s allows any text there: write "enum", or "pattern" such as "^[A-Z]{2}-[0-9]{1,6}$"`, place(n.at))}
	}
	re, err := syntax.Parse(n.pattern, syntax.Perl) // as the validator reads it
	if err != nil || n.matches.limit != nil {
		return cell{level: free, why: fmt.Sprintf("the pattern of %s cannot be read", place(n.at))}
	}
	if !startsAtText(re) || !endsAtText(re) {
		return cell{level: free, why: fmt.Sprintf("the pattern of %s matches anywhere in a text: write ^ before all of it and $ after it", place(n.at))}
	}
	s := measure(re)
	if n.maxLength >= 0 {
		s.runes = min(s.runes, n.maxLength)
	}
	if s.runes > maxText {
		return cell{level: free, why: fmt.Sprintf(`the pattern of %s matches more than %d characters: write repetitions such as {1,8}, or "maxLength"`, place(n.at), maxText)}
	}
	words := min(s.words, repeated(alphabet(re), 0, s.runes))
	if words > maxWords {
		return cell{level: free, why: fmt.Sprintf(`the pattern of %s leaves %.0f bits of letters to choose, more than %d, which can spell anything: write "enum", or smaller classes and repetitions`, place(n.at), words, maxWords)}
	}
	bits := max(1, min(s.bits, repeated(anyLetter(re), 0, s.runes)))
	return cell{level: bounded, load: load{words: words, chars: s.runes, bits: bits}}
}

// startsAtText reports whether a match can only begin where the text begins.
func startsAtText(re *syntax.Regexp) bool { return ends(re, syntax.OpBeginText, false) }

// endsAtText reports whether a match can only end where the text ends.
func endsAtText(re *syntax.Regexp) bool { return ends(re, syntax.OpEndText, true) }

func ends(re *syntax.Regexp, op syntax.Op, last bool) bool {
	switch re.Op {
	case op:
		return true
	case syntax.OpCapture:
		return ends(re.Sub[0], op, last)
	case syntax.OpConcat:
		if last {
			return ends(re.Sub[len(re.Sub)-1], op, last)
		}
		return ends(re.Sub[0], op, last)
	case syntax.OpAlternate:
		for _, sub := range re.Sub {
			if !ends(sub, op, last) {
				return false
			}
		}
		return true
	}
	return false
}
