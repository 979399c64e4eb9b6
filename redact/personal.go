package redact

import "unicode/utf8"

// The kinds of personal data. They are not in [Secrets].
const (
	Card  Kind = "card"  // number of a payment card: issuer's range and length, Luhn
	IBAN  Kind = "iban"  // International Bank Account Number: country's length and structure, mod 97
	Email Kind = "email" // e-mail address
	Phone Kind = "phone" // telephone number, international or in a national grouping
	SSN   Kind = "ssn"   // Social Security number of the USA
	IP    Kind = "ip"    // IPv4 or IPv6 address, or a prefix of such addresses
	MAC   Kind = "mac"   // EUI-48 or EUI-64 of a network interface
)

// personalDetectors returns the detectors of personal data.
func personalDetectors() []detector {
	return []detector{cardDetector, ibanDetector, emailDetector, phoneDetector, ssnDetector, ipDetector, macDetector, macWordDetector}
}

// A group is a run of digits in a number that is written in groups.
type group struct {
	from, to int
	sep      byte // what precedes it: ' ', '-', '.' or '/'; 0 before the first
}

func (g group) size() int { return g.to - g.from }

// digitsOf returns the number of digits in groups.
func digitsOf(groups []group) (n int) {
	for _, g := range groups {
		n += g.size()
	}
	return n
}

const (
	maxGroups = 9  // a number with more groups is not personal
	maxDigits = 20 // read of one group; one more means that the run is longer
)

// numberGroups returns the groups of digits that begin at i, one separator between each two. The
// result is valid until the next call. The next call does not read the groups that both share
// again, because several detectors look at one number and each group of a column may begin a
// number.
func (p *pass) numberGroups(i int) []group {
	shared := p.numbers.groups[:p.numbers.grouped]
	for len(shared) > 0 && shared[0].from != i {
		shared = shared[1:]
	}
	n := copy(p.numbers.groups[:], shared)
	for more := n == 0 || p.numbers.grouped == maxGroups; more && n < maxGroups; n++ {
		from, sep, width := i, byte(0), 0
		if n > 0 {
			from = p.numbers.groups[n-1].to
			if sep, width = separator(p.text, from); width == 0 {
				break
			}
			from += width
		}
		to := p.runEnd(from, digitChar, from+maxDigits+1)
		if to == from {
			break
		}
		p.numbers.groups[n] = group{from, to, sep}
	}
	p.numbers.groups[0].sep, p.numbers.grouped = 0, n
	if n > 0 {
		p.readTo(p.numbers.groups[n-1].to)
	}
	return p.numbers.groups[:n]
}

// numberBytes are the bytes of numbers in groups: digits, separators, parentheses, and all bytes
// beyond ASCII.
var numberBytes = func() (t [256]bool) {
	for b := range t {
		t[b] = b >= utf8.RuneSelf
	}
	for _, b := range []byte(digits + " -./()") {
		t[b] = true
	}
	return t
}()

// spansNumber reports whether the n bytes at i can all belong to a number. Most digits of a text
// are in shorter ones.
func spansNumber(text string, i, n int) bool {
	if len(text)-i < n {
		return false
	}
	for _, b := range []byte(text[i : i+n]) {
		if !numberBytes[b] {
			return false
		}
	}
	return true
}

// separator returns the separator of groups at i and its length, 0 for none. Every kind of space is
// ' ', every kind of dash '-'.
func separator(text string, i int) (kind byte, width int) {
	if i >= len(text) {
		return 0, 0
	}
	switch b := text[i]; {
	case b == ' ' || b == '-' || b == '.' || b == '/':
		return b, 1
	case b < utf8.RuneSelf:
		return 0, 0
	}
	switch r, n := utf8.DecodeRuneInString(text[i:]); {
	case r == 0xa0 || r >= 0x2000 && r <= 0x200a || r == 0x202f || r == 0x205f || r == 0x3000:
		return ' ', n
	case r >= 0x2010 && r <= 0x2015 || r == 0x2212 || r == 0xfe63 || r == 0xff0d:
		return '-', n
	}
	return 0, 0
}

// startsNumber reports whether digits at i can begin a number: they are not the rest of a longer
// number, a word, a fraction or a UUID.
func startsNumber(text string, i int) bool {
	if i == 0 {
		return true
	}
	before := byte(0)
	if i > 1 {
		before = text[i-2]
	}
	switch b := text[i-1]; {
	case is(b, digitChar):
		return false
	case is(b, letterChar): // an escaped line end or tab, as in text quoted by JSON
		return before == '\\' && (b == 'n' || b == 'r' || b == 't')
	case b == '.':
		return before >= utf8.RuneSelf || is(before, letterChar)
	case b == '-':
		return !is(before, digitChar) && !inUUID(text, i)
	}
	return true
}

// inUUID reports whether a part of four hexadecimal digits between dashes ends before i.
func inUUID(text string, i int) bool {
	return i > 5 && text[i-6] == '-' && hexWord(text[i-5:i-1])
}

// endsNumber reports whether digits that end before i are a whole number: no letter, fraction or
// exponent follows.
func endsNumber(text string, i int) bool {
	if at(text, i, dotChar) {
		return !at(text, i+1, digitChar)
	}
	return !at(text, i, wordChar)
}

// alone reports whether no other number is one separator away from [from, to). Numbers in a row are
// columns of a table.
func alone(text string, from, to int) bool {
	if kind, width := separator(text, to); width > 0 && kind != '/' && at(text, to+width, digitChar) {
		return false
	}
	return from < 2 || text[from-1] != ' ' && text[from-1] != '-' || !is(text[from-2], digitChar)
}

// wordBefore returns the word that ends last before i on its line, looking back to floor, and where
// it begins. No digit and no placeholder may be between. The word is empty if there is none.
func (p *pass) wordBefore(i, floor int) (word string, start int) {
	end := i
	for end > floor && !nameLetter(p.text[end-1]) {
		if b := p.text[end-1]; b == '\n' || b == ';' || b == ']' || is(b, digitChar) { // a placeholder ends in ]
			return "", end
		}
		end--
	}
	start = end
	for start > floor && nameLetter(p.text[start-1]) {
		start--
	}
	p.work += i - start
	return p.text[start:end], start
}

func nameLetter(b byte) bool { return is(b, letterChar) || b >= utf8.RuneSelf }
