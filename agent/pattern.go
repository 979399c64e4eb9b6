package agent

import (
	"fmt"
	"regexp/syntax"
	"unicode"
)

// A bounded text has at most maxText characters, of which at most maxLetters
// are chosen freely.
const (
	maxText    = 64
	maxLetters = 8
)

// Until then a class of characters does not spell words: hexadecimal digits
// have six letters, and a class of digits and signs is small.
const (
	maxClass        = 32
	maxClassLetters = 6
)

// formats are patterns to write in place of a format, which nobody checks.
var formats = map[string]string{
	"date":      `^[0-9]{4}-[0-9]{2}-[0-9]{2}$`,
	"time":      `^[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`,
	"date-time": `^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$`,
	"uuid":      `^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`,
}

// text returns how freely the schema lets texts stand.
func (n *node) text() cell {
	if n.pattern == "" {
		if f, ok := formats[n.format]; ok {
			return cell{free, fmt.Sprintf(`nothing checks "format" in %s: write "pattern": %q`, place(n.at), f)}
		}
		if n.types == allKinds {
			return cell{level: free}
		}
		return cell{free, fmt.Sprintf(`%s lets any text stand there: write "enum", or "pattern" such as "^[A-Z]{2}-[0-9]{1,6}$"`, place(n.at))}
	}
	re, err := syntax.Parse(n.pattern, syntax.Perl) // as the validator reads it
	if err != nil {
		return cell{free, fmt.Sprintf("the pattern of %s cannot be read", place(n.at))}
	}
	if !startsAtText(re) || !endsAtText(re) {
		return cell{free, fmt.Sprintf("the pattern of %s matches anywhere in a text: write ^ before all of it and $ after it", place(n.at))}
	}
	s := measure(re)
	if n.maxLength >= 0 {
		s = span{min(s.runes, n.maxLength), min(s.letters, n.maxLength)}
	}
	switch {
	case s.runes > maxText:
		return cell{free, fmt.Sprintf(`the pattern of %s matches more than %d characters: write repetitions such as {1,8}, or "maxLength"`, place(n.at), maxText)}
	case s.letters > maxLetters:
		return cell{free, fmt.Sprintf(`the pattern of %s lets more than %d letters be chosen freely, which can spell anything: write "enum", or smaller classes and repetitions`, place(n.at), maxLetters)}
	}
	return cell{level: held}
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

// A span is how many characters a pattern matches at most, and how many of
// them are chosen freely.
type span struct{ runes, letters int }

// endless is more than any bound, and small enough to be added and multiplied.
const endless = 1 << 20

func (s span) add(o span) span {
	return span{min(s.runes+o.runes, endless), min(s.letters+o.letters, endless)}
}

func (s span) times(n int) span {
	if n < 0 {
		n = endless
	}
	return span{min(s.runes*n, endless), min(s.letters*n, endless)}
}

// measure returns the widest span that a pattern matches.
func measure(re *syntax.Regexp) span {
	switch re.Op {
	case syntax.OpLiteral:
		return span{runes: len(re.Rune)}
	case syntax.OpCharClass:
		return class(re.Rune)
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return span{1, 1}
	case syntax.OpCapture, syntax.OpQuest:
		return measure(re.Sub[0])
	case syntax.OpStar, syntax.OpPlus:
		return measure(re.Sub[0]).times(-1)
	case syntax.OpRepeat:
		return measure(re.Sub[0]).times(re.Max)
	case syntax.OpConcat:
		var sum span
		for _, sub := range re.Sub {
			sum = sum.add(measure(sub))
		}
		return sum
	case syntax.OpAlternate:
		var widest span
		for _, sub := range re.Sub {
			s := measure(sub)
			widest = span{max(widest.runes, s.runes), max(widest.letters, s.letters)}
		}
		return widest
	}
	return span{} // anchors, word boundaries, nothing
}

// class returns the span of one character out of pairs of first and last.
func class(pairs []rune) span {
	size, letters := 0, map[rune]bool{}
	for i := 0; i < len(pairs); i += 2 {
		if size += int(pairs[i+1]-pairs[i]) + 1; size > maxClass {
			return span{1, 1}
		}
		for r := pairs[i]; r <= pairs[i+1]; r++ {
			if unicode.IsLetter(r) {
				letters[unicode.ToLower(r)] = true
			}
		}
	}
	if len(letters) > maxClassLetters {
		return span{1, 1}
	}
	return span{runes: 1}
}
