package redact

import (
	"strings"
	"sync"
)

var cardDetector = detector{name: "card", anchors: []anchor{{digits, digits, digits}}, find: findCard, kind: Card, named: promisesCard, leaf: cardLeaf}

// An issuer has numbers of some lengths whose first six digits lie in a range. Rare lengths are believed in groups or
// beside a word for cards: bare runs of that many digits are more often something else.
type issuer struct {
	first, last  int
	usual, spare []int
}

const minCard, maxCard = 12, 19

var (
	long    = []int{17, 18, 19}
	maestro = []int{16, 18, 19}
	spread  = []int{12, 13, 14, 15, 17, 18, 19}
)

// issuers is by first digits, as the networks publish them (ISO/IEC 7812).
var issuers = []issuer{
	{60400, 60499, nil, []int{12}},          // 0604, Maestro
	{100000, 199999, []int{15}, nil},        // UATP, JCB
	{213100, 213199, []int{15}, nil},        // JCB
	{220000, 220599, []int{16}, long},       // Mir, Borica
	{222100, 272099, []int{16}, nil},        // Mastercard
	{300000, 305999, []int{14, 16}, long},   // Diners Club
	{309500, 309599, []int{14, 16}, long},   // Diners Club
	{340000, 349999, []int{15}, nil},        // American Express
	{352800, 358999, []int{16}, long},       // JCB
	{360000, 369999, []int{14, 16}, spread}, // Diners Club
	{370000, 379999, []int{15}, nil},        // American Express
	{380000, 399999, []int{14, 16}, long},   // Diners Club
	{400000, 499999, []int{13, 16}, long},   // Visa
	{500000, 509999, []int{16}, spread},     // Maestro, Dankort, Elo, RuPay, Verve
	{510000, 559999, []int{16}, nil},        // Mastercard
	{560000, 589999, []int{16}, spread},     // Maestro
	{600000, 600999, []int{16}, nil},        // RuPay
	{601100, 601199, []int{16}, long},       // Discover
	{601300, 609999, []int{16}, nil},        // RuPay, Hipercard
	{620000, 629999, []int{16, 19}, long},   // UnionPay
	{630400, 630499, maestro, spread},       // Maestro
	{633100, 633499, []int{16}, long},       // Switch, Solo
	{636000, 639999, []int{16}, spread},     // InterPayment, InstaPayment, Elo, Maestro
	{644000, 659999, []int{16}, long},       // Discover, Troy, Elo
	{670000, 679999, maestro, spread},       // Maestro
	{810000, 829999, []int{16}, long},       // UnionPay, RuPay
	{860000, 860099, []int{16}, nil},        // Uzcard
	{979200, 979299, []int{16}, nil},        // Troy
	{986000, 986099, []int{16}, nil},        // Humo
}

// A lengthSet has a bit for each length of a number.
type lengthSet struct{ usual, spare uint32 }

// cardLengths is by the first four digits, which tell all issuers apart.
var cardLengths = sync.OnceValue(func() *[10000]lengthSet {
	t := new([10000]lengthSet)
	for _, of := range issuers {
		for four := of.first / 100; four <= of.last/100; four++ {
			for _, n := range of.usual {
				t[four].usual |= 1 << n
			}
			for _, n := range of.spare {
				t[four].spare |= 1 << n
			}
		}
	}
	return t
})

// findCard finds a number that begins at i: in one run, or in groups with one sort of separator.
func findCard(p *pass, i int) int {
	if at(p.text, i-1, digitChar) || !at(p.text, i+3, digitChar) {
		return i
	}
	lengths := cardLengths()[number(p.text[i:i+4])]
	if lengths == (lengthSet{}) || !startsNumber(p.text, i) {
		return i
	}
	groups := p.numberGroups(i)
	var all [maxCard]byte
	n, end := 0, i
	for k, g := range groups {
		if n+g.size() > maxCard || !cardGroup(groups, k) {
			break
		}
		n += copy(all[n:], p.text[g.from:g.to])
		issued := lengths.usual&(1<<n) != 0 || lengths.spare&(1<<n) != 0 && (k > 0 && n > minCard || cardWord(p, i))
		if issued && endsCard(p.text, groups, k) && luhn(all[:n]) {
			end = g.to
		}
	}
	if end == i || inTable(p.text, i, end) {
		return i
	}
	p.hit(Card, i, end)
	return end
}

// cardGroup reports whether group k may stand where it does. A run that is long enough has no further groups; groups
// are of four digits, six may be second, or first before all the rest, and the last may be shorter.
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

// endsCard reports whether the number can end with group k. Dashes and dots bind: a further group belongs to it.
func endsCard(text string, groups []group, k int) bool {
	if k+1 < len(groups) && k > 0 && groups[k+1].sep == groups[k].sep && groups[k].sep != ' ' {
		return false
	}
	return endsNumber(text, groups[k].to)
}

// cardWord reports a word for cards before i, on the same line.
func cardWord(p *pass, i int) bool {
	if p.says(promisesCard) {
		return true
	}
	for at, floor := i, max(i-48, 0); ; {
		word, start := p.wordBefore(at, floor)
		if word == "" {
			return false
		}
		if oneOf(word, "pan", "maestro", "visa", "debit", "credit", "kreditkarte", "carte", "tarjeta", "carta", "карта", "卡号") || hasFold(word, 0, "card") ||
			hasFold(word, len(word)-4, "card") || hasFold(word, len(word)-5, "karte") {
			return true
		}
		at = start
	}
}

// inTable reports hexadecimal numbers of four digits beside [from, to), with a letter on one side or without on both: a
// table of code points, a dump of memory.
func inTable(text string, from, to int) bool {
	before, behind := "", ""
	if from > 4 && is(text[from-1], spaceChar) && hexWord(text[from-5:from-1]) && !at(text, from-6, alnumChar) {
		before = text[from-5 : from-1]
	}
	if to+5 <= len(text) && is(text[to], spaceChar) && hexWord(text[to+1:to+5]) && !at(text, to+5, alnumChar) {
		behind = text[to+1 : to+5]
	}
	return before != "" && behind != "" || mixed(before) || mixed(behind)
}

// mixed reports digits and letters together.
func mixed(word string) bool {
	return strings.ContainsAny(word, digits) && strings.ContainsAny(word, lowers+uppers)
}

func hexWord(word string) bool {
	for i := range len(word) {
		if !is(word[i], hexChar) {
			return false
		}
	}
	return true
}

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

// number returns the value of a few digits.
func number(digits string) (n int) {
	for i := range len(digits) {
		n = 10*n + int(digits[i]-'0')
	}
	return n
}
