package redact

import (
	"strings"
	"sync"
)

var cardDetector = detector{name: "card", anchors: []anchor{{digits, digits, digits}}, find: findCard, ahead: 8, kind: Card, named: namesCard, leaf: cardLeaf}

const minCard, maxCard = 12, 19

// issuers have ranges of the first six digits of numbers, as the networks publish them (ISO/IEC
// 7812), and the lengths of such numbers. Rare lengths follow a slash. They count only in groups or
// next to a word for cards, because bare runs of that many digits are more often something else.
const issuers = `
060400-060499  / 12  # Maestro
100000-199999 15  # UATP, JCB
213100-213199 15  # JCB
220000-220599 16 / 17 18 19  # Mir, Borica
222100-272099 16  # Mastercard
300000-305999 14 / 16 17 18 19  # Diners Club
309500-309599 14 / 16 17 18 19  # Diners Club
340000-349999 15  # American Express
352800-358999 16 / 17 18 19  # JCB
360000-369999 14 / 15 16 17 18 19  # Diners Club
370000-379999 15  # American Express
380000-399999 14 / 16 17 18 19  # Diners Club
400000-499999 13 16 / 17 18 19  # Visa
500000-509999 16 / 12 13 14 15 17 18 19  # Maestro, Dankort, Elo, RuPay, Verve
510000-559999 16  # Mastercard
560000-589999 16 / 12 13 14 15 17 18 19  # Maestro
600000-600999 16  # RuPay
601100-601199 16 / 17 18 19  # Discover
601300-609999 16  # RuPay, Hipercard
620000-629999 16 19 / 17 18 19  # UnionPay
630400-630499 16 18 19 / 12 13 14 15 17 18 19  # Maestro
633100-633499 16 / 17 18 19  # Switch, Solo
636000-639999 16 / 12 13 14 15 17 18 19  # InterPayment, InstaPayment, Elo, Maestro
644000-659999 16 / 17 18 19  # Discover, Troy, Elo
670000-679999 16 18 19 / 12 13 14 15 17 18 19  # Maestro
810000-829999 16 / 17 18 19  # UnionPay, RuPay
860000-860099 16  # Uzcard
979200-979299 16  # Troy
986000-986099 16  # Humo
`

// A lengthSet has a bit for each length of a number.
type lengthSet struct{ usual, spare uint32 }

// cardLengths has the lengths by the first four digits, which identify the issuer.
var cardLengths = sync.OnceValue(func() *[10000]lengthSet {
	t := new([10000]lengthSet)
	for line := range strings.Lines(strings.TrimSpace(issuers)) {
		row, _, _ := strings.Cut(line, "#")
		usual, spare, _ := strings.Cut(row[len("000000-000000"):], "/")
		lengths := lengthSet{lengthBits(usual), lengthBits(spare)}
		for four := number(row[:4]); four <= number(row[7:11]); four++ {
			t[four].usual |= lengths.usual
			t[four].spare |= lengths.spare
		}
	}
	return t
})

// lengthBits returns the bits of the lengths in a text.
func lengthBits(text string) (bits uint32) {
	for length := range strings.FieldsSeq(text) {
		bits |= 1 << number(length)
	}
	return bits
}

// findCard finds a number that begins at i, in one run or in groups with one kind of separator.
func findCard(p *pass, i int) {
	if at(p.text, i-1, digitChar) || !at(p.text, i+3, digitChar) {
		return
	}
	lengths := cardLengths()[number(p.text[i:i+4])]
	if lengths == (lengthSet{}) || !startsNumber(p.text, i) {
		return
	}
	groups := p.numberGroups(i)
	var all [maxCard]byte
	n, end := 0, i
	for k, g := range groups {
		if n+g.size() > maxCard || !cardGroup(groups, k) {
			break
		}
		n += copy(all[n:], p.text[g.from:g.to])
		issued := lengths.usual&(1<<n) != 0 && !barcode(all[:n]) || (lengths.usual|lengths.spare)&(1<<n) != 0 && (k > 0 && n > minCard || cardWord(p, i))
		if issued && endsCard(p.text, groups, k) && luhn(all[:n]) {
			end = g.to
		}
	}
	if end == i || inTable(p.text, i, end) {
		return
	}
	p.consume(Card, i, end)
}

// cardGroup reports whether group k is of a size that it may have. A run that is long enough has no
// further groups; groups are of four digits, six may be second, or first before all the rest, and
// the last may be shorter.
func cardGroup(groups []group, k int) bool {
	if k == 0 {
		return true
	}
	g, first := groups[k], groups[0].size()
	if first >= minCard || g.sep == '/' || g.sep != groups[1].sep {
		return false
	}
	switch k {
	case 1:
		return first == 4 && g.size() <= 6 || first == 6 && g.size() >= 10
	case 2:
		return first == 4 && g.size() <= 6
	}
	return first == 4 && g.size() <= 4 && groups[k-1].size() <= 4
}

// endsCard reports whether the number can end with group k. It cannot if another group follows
// after the same dash or dot.
func endsCard(text string, groups []group, k int) bool {
	if k+1 < len(groups) && k > 0 && groups[k+1].sep == groups[k].sep && groups[k].sep != ' ' {
		return false
	}
	return endsNumber(text, groups[k].to)
}

// cardWords are words for cards. Others begin or end with one.
var cardWords = wordSet("pan maestro visa debit credit carte tarjeta carta карта Карта КАРТА 卡号")

// cardWord reports whether a word for cards precedes i on the same line.
func cardWord(p *pass, i int) bool {
	if p.keyNames(namesCard) {
		return true
	}
	for at, floor := i, max(i-48, 0); ; {
		word, start := p.wordBefore(at, floor)
		if word == "" {
			return false
		}
		if lookUp(cardWords, word) || hasFold(word, 0, "card") ||
			hasFold(word, len(word)-4, "card") || hasFold(word, len(word)-5, "karte") {
			return true
		}
		at = start
	}
}

// inTable reports whether [from, to) is in a table of code points or a memory dump: it has
// hexadecimal numbers of four digits on both sides, or one with a letter on one side.
func inTable(text string, from, to int) bool {
	before, behind := "", ""
	if from > 4 && is(text[from-1], whitespaceChar) && hexWord(text[from-5:from-1]) && !at(text, from-6, alnumChar) {
		before = text[from-5 : from-1]
	}
	if to+5 <= len(text) && is(text[to], whitespaceChar) && hexWord(text[to+1:to+5]) && !at(text, to+5, alnumChar) {
		behind = text[to+1 : to+5]
	}
	return before != "" && behind != "" || mixed(before) || mixed(behind)
}

// mixed reports whether a word has both digits and letters.
func mixed(word string) bool {
	return strings.ContainsAny(word, digits) && strings.ContainsAny(word, lowers+uppers)
}

func hexWord(word string) bool { return allOf(word, hexChar) }

// luhn reports whether the last digit is the check digit of ISO/IEC 7812-1.
func luhn(digits []byte) bool {
	sum := 0
	for k := range digits {
		d := int(digits[len(digits)-1-k] - '0')
		if k%2 == 1 {
			d *= 2
			if d > 9 {
				d -= 9
			}
		}
		sum += d
	}
	return sum%10 == 0
}

// barcode reports whether the last digit is also the check digit of an EAN-13 (ISO/IEC 15420): then
// a number of that length needs further evidence for a card.
func barcode(digits []byte) bool {
	if len(digits) != 13 {
		return false
	}
	sum := 0
	for k := range digits {
		sum += int(digits[k]-'0') * (1 + k%2*2)
	}
	return sum%10 == 0
}

// number returns the value of a few digits.
func number(digits string) (n int) {
	for i := range len(digits) {
		n = 10*n + int(digits[i]-'0')
	}
	return n
}
