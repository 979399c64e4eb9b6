package textcall

import (
	"encoding/json"
	"html"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Limits of what is compared in another notation.
const (
	maxEscaped = 16 // times that a text is escaped
	maxDigits  = 400
)

// readings are the words of a text in each notation that it can be read in: as it is, without escapes, and with each number
// as its digits. Two texts are the same if they are in one of them.
type readings [3]words

// words are the words of a text, in order.
type words struct {
	list     []string
	squeezed string // without spaces
}

// readingsOf returns the readings of a text; known is false if it is escaped too often to be read.
func readingsOf(text string) (r readings, known bool) {
	plain := fold(text)
	decoded := fold(unescape(text))
	for times := 0; ; times++ {
		next := fold(unescape(decoded))
		if next == decoded {
			break
		}
		if decoded = next; times == maxEscaped {
			return r, false
		}
	}
	for i, form := range []string{plain, decoded, spellNumbers(decoded)} {
		r[i] = wordsOf(form)
	}
	return r, true
}

// has reports whether two texts stand near each other, with at most so many words between. The second follows the first, or,
// if words may be between, the other way round. An empty text is everywhere.
func (r *readings) has(one, other string, between int) bool {
	ones, known := readingsOf(one)
	others, ok := readingsOf(other)
	for i := range r {
		a, b := ones[i].squeezed, others[i].squeezed
		if r[i].hasNear(a, b, between) || between > 0 && r[i].hasNear(b, a, between) {
			return true
		}
	}
	return !known || !ok
}

// hasLong reports whether a text is long enough to show by itself where it is from, and was read.
func (r *readings) hasLong(text string) bool {
	of, known := readingsOf(text)
	for i := range r {
		if s := of[i].squeezed; utf8.RuneCountInString(s) >= minNotable && strings.Contains(r[i].squeezed, s) {
			return true
		}
	}
	return !known
}

// hasNear reports whether the words of one text are there, and at most so many words behind them those of the other.
func (w *words) hasNear(one, other string, between int) bool {
	if one == "" {
		one, other = other, ""
	}
	for i := range w.list {
		end, found := w.match(i, one)
		if !found {
			continue
		}
		for at := end; at <= min(end+between, len(w.list)); at++ {
			if _, found := w.match(at, other); found {
				return true
			}
		}
	}
	return one == ""
}

// match reports whether the words from one place on are a text without spaces, and returns the place behind them.
func (w *words) match(at int, squeezed string) (end int, found bool) {
	for ; squeezed != ""; at++ {
		if at >= len(w.list) || !strings.HasPrefix(squeezed, w.list[at]) {
			return 0, false
		}
		squeezed = squeezed[len(w.list[at]):]
	}
	return at, true
}

// wordsOf returns the words of a folded text. None is how Python writes null.
func wordsOf(folded string) words {
	list := strings.FieldsFunc(folded, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
	for i, word := range list {
		if word == "none" {
			list[i] = "null"
		}
	}
	return words{list, strings.Join(list, "")}
}

// fold returns a text without what is not compared: case, marks over letters, other forms of the same character, and
// characters that nobody sees.
func fold(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf, unicode.Other_Default_Ignorable_Code_Point) {
			return -1
		}
		return unicode.ToLower(unicode.ToUpper(r))
	}, norm.NFKD.String(text))
}

// escapes finds the escapes of JSON, JavaScript and Python, and those of addresses.
var escapes = sync.OnceValue(func() (f struct{ units, runes, spaces, percent *regexp.Regexp }) {
	f.units = regexp.MustCompile(`(?:\\u[0-9a-fA-F]{4})+`)
	f.runes = regexp.MustCompile(`\\U([0-9a-fA-F]{8})|\\u\{([0-9a-fA-F]{1,6})\}|\\x([0-9a-fA-F]{2})`)
	f.spaces = regexp.MustCompile(`\\[nrtbfv]`)
	f.percent = regexp.MustCompile(`(?:%[0-9a-fA-F]{2})+`)
	return f
})

// unescape decodes the escapes of JSON, HTML and addresses, once.
func unescape(text string) string {
	e := escapes()
	text = e.percent.ReplaceAllStringFunc(html.UnescapeString(text), func(escaped string) string {
		raw := make([]byte, 0, len(escaped)/3)
		for i := 0; i < len(escaped); i += 3 {
			b, _ := strconv.ParseUint(escaped[i+1:i+3], 16, 8) // hexadecimal digits are always read
			raw = append(raw, byte(b))
		}
		return string(raw)
	})
	text = e.units.ReplaceAllStringFunc(text, func(escaped string) string {
		var runes string
		_ = json.Unmarshal([]byte(`"`+escaped+`"`), &runes) // hexadecimal digits are always read
		return runes
	})
	text = e.runes.ReplaceAllStringFunc(text, func(escaped string) string {
		r, _ := strconv.ParseInt(strings.Trim(escaped[2:], "{}"), 16, 64)
		return string(rune(r))
	})
	return e.spaces.ReplaceAllString(text, " ")
}

// numbers finds numbers. The groups of one like 1,000 are words of their own, which are one text without spaces.
var numbers = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`0x[0-9a-f]+|[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]{1,3})?`)
})

// spellNumbers writes each number of a folded text as its digits.
func spellNumbers(folded string) string {
	return numbers().ReplaceAllStringFunc(folded, func(number string) string {
		if len(number) <= maxDigits && strings.ContainsAny(number, "ex") {
			value, _ := new(big.Rat).SetString(number) // what the expression matches is a number
			number = value.FloatString(maxDigits)
		}
		if strings.Contains(number, ".") {
			number = strings.TrimSuffix(strings.TrimRight(number, "0"), ".")
		}
		return number
	})
}
