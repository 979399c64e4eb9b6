package redact

import (
	"regexp/syntax"
	"unicode"
	"unicode/utf8"
)

// A reach says where a match of an own pattern can no longer begin once a text goes on.
type reach struct {
	longest int    // bytes of a match, or -1 if there is no bound
	runes   []rune // pairs: the ranges of characters that a match may have
}

// maxReach is the number of bytes from which on a bound helps nothing.
const maxReach = 64 << 10

// reachOf returns the reach of a pattern.
func reachOf(re *syntax.Regexp) reach {
	r := reach{longest: longest(re)}
	r.add(re)
	return r
}

// longest returns the number of bytes of the longest match, or -1 if there is no bound.
func longest(re *syntax.Regexp) (n int) {
	switch re.Op {
	case syntax.OpLiteral:
		return utf8.UTFMax * len(re.Rune)
	case syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return utf8.UTFMax
	case syntax.OpStar, syntax.OpPlus:
		return -1
	case syntax.OpRepeat:
		n = longest(re.Sub[0])
		if n < 0 || re.Max < 0 || n*re.Max > maxReach {
			return -1
		}
		return n * re.Max
	}
	for _, sub := range re.Sub {
		switch of := longest(sub); {
		case of < 0:
			return -1
		case re.Op == syntax.OpAlternate:
			n = max(n, of)
		default:
			n += of
		}
	}
	return n
}

// add adds the characters that a match of re may have.
func (r *reach) add(re *syntax.Regexp) {
	switch re.Op {
	case syntax.OpLiteral:
		for _, c := range re.Rune {
			r.runes = append(r.runes, c, c)
			for f := unicode.SimpleFold(c); re.Flags&syntax.FoldCase != 0 && f != c; f = unicode.SimpleFold(f) {
				r.runes = append(r.runes, f, f)
			}
		}
	case syntax.OpCharClass:
		r.runes = append(r.runes, re.Rune...)
	case syntax.OpAnyChar:
		r.runes = append(r.runes, 0, unicode.MaxRune)
	case syntax.OpAnyCharNotNL:
		r.runes = append(r.runes, 0, '\n'-1, '\n'+1, unicode.MaxRune)
	}
	for _, sub := range re.Sub {
		r.add(sub)
	}
}

// contains reports whether a match may have c.
func (r *reach) contains(c rune) bool {
	for i := 0; i < len(r.runes); i += 2 {
		if r.runes[i] <= c && c <= r.runes[i+1] {
			return true
		}
	}
	return false
}

// stable returns the offset before which each match begins that no further text changes. A match
// ends before the first character that it cannot have, and within its length; it may look at one
// more character.
func (r *reach) stable(text string) int {
	i, floor := len(text), 0
	if r.longest >= 0 {
		floor = max(len(text)-r.longest-utf8.UTFMax, 0)
	}
	for i > floor {
		c, n := utf8.DecodeLastRuneInString(text[:i])
		if !r.contains(c) {
			break
		}
		i -= n
	}
	return i
}
