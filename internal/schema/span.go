package schema

import (
	"cmp"
	"math"
	"regexp/syntax"
	"slices"
	"unicode"
	"unicode/utf8"
)

// A span bounds the texts that a pattern matches. There are at most two to the power of
// words of them, not counting differences in plain parts.
type span struct {
	runes int     // characters of the longest
	words float64 // bits that can spell; 0 if plain
	plain bool    // digits, hexadecimal letters and signs only
	bits  float64 // of all, plain or not
}

// endless exceeds every bound and is small enough to be added and multiplied.
const endless = 1 << 20

// isPlain reports whether texts of such characters spell nothing without a code: ASCII,
// except letters that are no hexadecimal digits.
func isPlain(r rune) bool {
	lower := unicode.ToLower(r)
	return r < utf8.RuneSelf && (lower < 'g' || lower > 'z')
}

// measure returns the widest span that a pattern matches.
func measure(re *syntax.Regexp) span {
	switch re.Op {
	case syntax.OpLiteral, syntax.OpCharClass, syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return characters(re)
	case syntax.OpCapture:
		return measure(re.Sub[0])
	case syntax.OpQuest:
		return repeat(re.Sub[0], 0, 1)
	case syntax.OpStar, syntax.OpPlus:
		return repeat(re.Sub[0], 0, -1)
	case syntax.OpRepeat:
		return repeat(re.Sub[0], re.Min, re.Max)
	case syntax.OpConcat:
		sum := span{plain: true}
		for _, sub := range re.Sub {
			s := measure(sub)
			sum = span{min(sum.runes+s.runes, endless), sum.words + s.words, sum.plain && s.plain, sum.bits + s.bits}
		}
		return sum
	case syntax.OpAlternate:
		return alternate(re.Sub)
	}
	return span{plain: true} // anchors, word boundaries, nothing
}

// characters measures a literal, or a class as one character.
func characters(re *syntax.Regexp) span {
	s := span{plain: true}
	for _, pairs := range classes(re) {
		bits := math.Log2(float64(max(size(pairs), 1)))
		s = span{s.runes + 1, s.words + bits, s.plain && plainOnly(pairs), s.bits + bits}
	}
	if s.plain {
		s.words = 0
	}
	return s
}

// alternate measures a choice. Bits that can spell add up.
func alternate(subs []*syntax.Regexp) span {
	sum := span{words: math.Inf(-1), plain: true, bits: math.Inf(-1)}
	for _, sub := range subs {
		s := measure(sub)
		sum = span{max(sum.runes, s.runes), either(sum.words, s.words), sum.plain && s.plain, either(sum.bits, s.bits)}
	}
	if sum.plain {
		sum.words = 0
	}
	return sum
}

// repeat measures from least to most of a pattern, most -1 being any number.
func repeat(re *syntax.Regexp, least, most int) span {
	s := measure(re)
	if most < 0 {
		most = endless
	}
	s.bits = repeated(s.bits, least, most)
	if s.runes = min(s.runes*most, endless); s.plain {
		return s
	}
	s.words = repeated(s.words, least, most)
	return s
}

// repeated returns how many bits it takes to choose a number from least to
// most, and as often one of two to the power of bits.
func repeated(bits float64, least, most int) float64 {
	if most > maxChecked {
		return math.Inf(1)
	}
	sum := math.Inf(-1)
	for k := least; k <= most; k++ {
		sum = either(sum, float64(k)*bits)
	}
	return sum
}

// maxChecked is more than any number that a pattern can write, or a bounded text can have.
const maxChecked = 1000

// either returns how many bits it takes to choose one of both: of two to the
// power of a, and of b.
func either(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(a, 0) {
		return a
	}
	return a + math.Log2(1+math.Exp2(b-a))
}

// anyLetter returns the bits of one character of a text that a pattern matches.
func anyLetter(re *syntax.Regexp) float64 {
	var all []rune
	var add func(*syntax.Regexp)
	add = func(re *syntax.Regexp) {
		for _, pairs := range classes(re) {
			all = append(all, pairs...)
		}
		for _, sub := range re.Sub {
			add(sub)
		}
	}
	add(re)
	return math.Log2(float64(max(size(all), 1)))
}

// alphabet returns the bits of one character of a text that a pattern matches, counting
// all plain parts as one character.
func alphabet(re *syntax.Regexp) float64 {
	all, plain := letters(re, nil)
	n := size(all)
	if plain {
		n++
	}
	return math.Log2(float64(max(n, 1)))
}

// letters adds the characters of all parts that are not plain, and reports
// whether there are others.
func letters(re *syntax.Regexp, all []rune) (_ []rune, plain bool) {
	for _, pairs := range classes(re) {
		if plainOnly(pairs) {
			plain = true
			continue
		}
		all = append(all, pairs...)
	}
	for _, sub := range re.Sub {
		more, other := letters(sub, all)
		all, plain = more, plain || other
	}
	return all, plain
}

// classes returns the ranges of each character of a literal, or of the one of a class, as
// pairs of first and last.
func classes(re *syntax.Regexp) [][]rune {
	switch re.Op {
	case syntax.OpCharClass:
		return [][]rune{re.Rune}
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		return [][]rune{{0, unicode.MaxRune}}
	case syntax.OpLiteral:
		out := make([][]rune, len(re.Rune))
		for i, r := range re.Rune {
			out[i] = []rune{r, r}
			for f := unicode.SimpleFold(r); re.Flags&syntax.FoldCase != 0 && f != r; f = unicode.SimpleFold(f) {
				out[i] = append(out[i], f, f)
			}
		}
		return out
	}
	return nil
}

// plainOnly reports whether all of the pairs are plain.
func plainOnly(pairs []rune) bool {
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] >= utf8.RuneSelf {
			return false
		}
		for r := pairs[i]; r <= pairs[i+1]; r++ {
			if !isPlain(r) {
				return false
			}
		}
	}
	return true
}

// size returns how many characters the pairs have together.
func size(pairs []rune) int {
	sorted := make([][2]rune, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		sorted = append(sorted, [2]rune{pairs[i], pairs[i+1]})
	}
	slices.SortFunc(sorted, func(a, b [2]rune) int { return cmp.Compare(a[0], b[0]) })
	n, next := 0, rune(0)
	for _, p := range sorted {
		if first := max(p[0], next); first <= p[1] {
			n, next = n+int(p[1]-first)+1, p[1]+1
		}
	}
	return n
}
