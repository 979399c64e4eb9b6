package assign

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A word is the first five letters of a run of letters and digits, in lower
// case; or two neighbouring letters of a script that is read in pairs.
// Endings differ more often than beginnings in most languages that are written
// with an alphabet, so a task and an agent share more first letters than words:
// of the 61 tasks in testdata whole words find the right agent of 50, three
// letters of 52, four or five of 56, and six of 53.
type word struct {
	head, tail uint64 // three letters and two, 21 bits each
}

// cut is how many letters of a word count.
const cut = 5

// with returns w with another letter, of which there are that many before.
func (w word) with(c rune, letters int) word {
	switch {
	case letters < 3:
		w.head = w.head<<21 | uint64(c)
	case letters < cut:
		w.tail = w.tail<<21 | uint64(c)
	}
	return w
}

// letter returns one of the first three letters of a word.
func (w word) letter(k, letters int) rune {
	return rune(w.head >> (21 * (min(letters, 3) - 1 - k)) & (1<<21 - 1))
}

// isNumber reports whether all letters of a short word are digits.
func (w word) isNumber(letters int) bool {
	for k := range letters {
		if !unicode.IsNumber(w.letter(k, letters)) {
			return false
		}
	}
	return true
}

// A reader reads the words of a text one by one.
type reader struct {
	text string // in normal form
	at   int    // what has been read
	last rune   // the letter before, if it may begin a pair; else zero
}

// newReader returns a reader of a text. The normal form makes letters the same
// that look the same: composed or not, full or half width.
func newReader(text string) reader {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return reader{text: norm.NFKC.String(text)}
		}
	}
	return reader{text: text}
}

// next returns the next word and how many letters it had before it was cut.
// Texts are mostly ASCII, so words that are have a way of their own.
func (r *reader) next() (w word, letters int, ok bool) {
	for r.at < len(r.text) {
		if b := folded[r.text[r.at]]; b == separator {
			r.at, r.last = r.at+1, 0
		} else if b != unicoded && r.plain(&w, &letters) || r.coded(&w, &letters) {
			return w, letters, true
		}
	}
	return w, 0, false
}

// plain reads a word if it is ASCII to its end.
func (r *reader) plain(w *word, letters *int) bool {
	end := r.at
	for end < len(r.text) && folded[r.text[end]] > unicoded {
		end++
	}
	if end < len(r.text) && folded[r.text[end]] == unicoded {
		return false
	}
	*letters = end - r.at
	for k := range min(*letters, cut) {
		*w = w.with(rune(folded[r.text[r.at+k]]), k)
	}
	r.at, r.last = end, 0
	return true
}

// coded reads a word with other letters, unless there is none or only the first
// half of a pair.
func (r *reader) coded(w *word, letters *int) bool {
	c, size := fold(r.text[r.at:])
	r.at += size
	if c != 0 && inPairs(c) {
		*w, *letters = r.pair(c)
		return *letters > 0
	}
	r.last = 0
	if c == 0 || unicode.IsMark(c) {
		return false // a mark of no letter
	}
	*w, *letters = r.run(c)
	return true
}

// pair returns the pair that ends in c, or c alone if it has no neighbours, or
// nothing if its pair is still to come.
func (r *reader) pair(c rune) (w word, letters int) {
	before := r.last
	r.last = c
	if before != 0 {
		return w.with(before, 0).with(c, 1), 2
	}
	if after, _ := fold(r.text[r.at:]); !inPairs(after) {
		return w.with(c, 0), 1
	}
	return w, 0
}

// run returns the word that begins with c.
func (r *reader) run(c rune) (w word, letters int) {
	for {
		w = w.with(c, letters)
		letters++
		next, size := fold(r.text[r.at:])
		if next == 0 || inPairs(next) {
			return w, letters
		}
		r.at += size
		c = next
	}
}

// folded holds the lower case of ASCII's letters and digits, and what other
// bytes are.
var folded = func() (table [256]byte) {
	for c := range table {
		switch {
		case 'A' <= c && c <= 'Z':
			table[c] = byte(c) + 'a' - 'A'
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			table[c] = byte(c)
		case c >= utf8.RuneSelf:
			table[c] = unicoded
		}
	}
	return table
}()

const (
	separator byte = iota // between words
	unicoded              // a part of some character
)

// fold returns the first letter, digit or mark of a text in lower case, or
// zero if the text begins with anything else, and its size in bytes.
func fold(text string) (c rune, size int) {
	if len(text) == 0 {
		return 0, 0
	}
	if text[0] < utf8.RuneSelf {
		return rune(folded[text[0]]), 1
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

// short is how many letters a word may have that tells nothing, other than in
// a name: articles, prepositions and pronouns are so short in most languages
// whose scripts have letter case.
const short = 3

// isEmpty reports whether a word tells nothing wherever it stands, and isWeak
// whether it tells something in a name only.
func (w word) isEmpty(letters int) bool {
	return letters <= short && w.isNumber(letters) || functionWords[w]>>letters&1 != 0
}

func (w word) isWeak(letters int) bool {
	first := w.letter(0, letters)
	return letters <= short && (first < utf8.RuneSelf || unicode.ToUpper(first) != first)
}

// functionWords are English words that hold sentences together: any two texts
// share some, whatever they are about. Since a word is cut, each comes with the
// numbers of letters, a bit for each, that it has as one of them.
var functionWords = func() map[word]uint32 {
	set := make(map[word]uint32)
	r := newReader(`
		a about after again all also am an and another any are as at be because been before being between both but by
		can could did do does doing down during each either else even ever every few for from further get give given
		gets gives goes going had has have having he her here hers him his how i if in into is it its itself just less let
		like made make makes many may me might mine more most much must my neither never no none nor not now of off often
		on once one only onto or other others our ours out over own per same shall she should since so some still such
		than that the their theirs them then there these they thing things this those though through thus to together
		too two under until up upon us use used uses using very was we well were what whatever when where whether which
		while who whom whose why will with within without would yes yet you your yours yourself`)
	for w, letters, ok := r.next(); ok; w, letters, ok = r.next() {
		set[w] |= 1 << letters
	}
	return set
}()
