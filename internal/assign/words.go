package assign

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// cut is how many letters of a word count. Endings differ more often than beginnings in
// most languages that are written with an alphabet, so a task and an agent share more first
// letters than words: of the 61 tasks in testdata, whole words find the right agent of 50,
// three letters of 52, four or five of 56, and six of 53.
const cut = 5

// words yields the words of a text in lower case, cut, each with the number of letters that
// it had before. A word is a run of letters and digits, or two neighboring letters of a
// script that is read in pairs. The bytes are valid until the next word.
func words(text string) iter.Seq2[[]byte, int] {
	return func(yield func([]byte, int) bool) {
		text := norm.NFKC.String(text) // letters that look the same are the same: composed or not, full or half width
		var word []byte
		letters := 0
		end := func() bool { // of a word, if there is one
			more := letters == 0 || yield(word, letters)
			word, letters = word[:0], 0
			return more
		}
		add := func(c rune) {
			if letters++; letters <= cut {
				word = utf8.AppendRune(word, c)
			}
		}
		last := rune(0) // the letter before, if it may begin a pair
		for at := 0; at < len(text); {
			c, size := fold(text[at:])
			at += size
			if !inPairs(c) {
				last = 0
				if c != 0 && (letters > 0 || !unicode.IsMark(c)) {
					add(c)
				} else if !end() {
					return
				}
				continue
			}
			if !end() {
				return
			}
			next, _ := fold(text[at:])
			if last != 0 {
				add(last)
			}
			if last != 0 || !inPairs(next) { // a letter without neighbors is a word
				add(c)
			}
			if last = c; !end() {
				return
			}
		}
		end()
	}
}

// fold returns the first letter, digit or mark of a text in lower case, or
// zero if the text begins with anything else, and its size in bytes.
func fold(text string) (c rune, size int) {
	if len(text) == 0 {
		return 0, 0
	}
	switch c := text[0]; {
	case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
		return rune(c), 1
	case 'A' <= c && c <= 'Z':
		return rune(c) + 'a' - 'A', 1
	case c < utf8.RuneSelf:
		return 0, 1
	}
	c, size = utf8.DecodeRuneInString(text)
	if c == utf8.RuneError || !unicode.In(c, unicode.L, unicode.M, unicode.N) {
		return 0, size
	}
	return unicode.ToLower(unicode.ToUpper(c)), size // of σ and ς, too, which have one upper case
}

// inPairs reports whether a letter's script does not set words apart, or only
// such long ones that a part of them is what counts.
func inPairs(c rune) bool {
	return c >= 0x0e00 && (c == 'ー' || unicode.In(c, pairScripts...))
}

var pairScripts = []*unicode.RangeTable{
	unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar,
}

// short is the number of letters up to which a word only counts in a name: articles,
// prepositions and pronouns are so short in most languages whose scripts have letter case.
const short = 3

// isEmpty reports whether a word never counts: short numbers and function words.
func isEmpty(word []byte, letters int) bool {
	return letters <= short && strings.TrimFunc(string(word), unicode.IsNumber) == "" || functionWords[string(word)]>>letters&1 != 0
}

// isWeak reports whether a word counts in a name only.
func isWeak(word []byte, letters int) bool {
	first, _ := utf8.DecodeRune(word)
	return letters <= short && (first < utf8.RuneSelf || unicode.ToUpper(first) != first)
}

// functionWords are English words that hold sentences together: any two texts
// share some, whatever they are about. Since a word is cut, each comes with the
// numbers of letters, a bit for each, that it has as one of them.
var functionWords = func() map[string]uint32 {
	set := make(map[string]uint32)
	for word, letters := range words(`
		a about after again all also am an and another any are as at be because been before being between both but by
		can could did do does doing down during each either else even ever every few for from further get give given
		gets gives goes going had has have having he her here hers him his how i if in into is it its itself just less let
		like made make makes many may me might mine more most much must my neither never no none nor not now of off often
		on once one only onto or other others our ours out over own per same shall she should since so some still such
		than that the their theirs them then there these they thing things this those though through thus to together
		too two under until up upon us use used uses using very was we well were what whatever when where whether which
		while who whom whose why will with within without would yes yet you your yours yourself`) {
		set[string(word)] |= 1 << letters
	}
	return set
}()
