package redact

import (
	"strings"
	"sync"
)

// nationalEnd returns the end of a number without a country code, in a grouping that few other
// numbers have, or where it begins.
func nationalEnd(p *pass, groups []group) int {
	i := groups[0].from
	if len(groups) < 2 || datedGroups(p.text, groups) {
		return i
	}
	end := groups[len(groups)-1].to
	if !endsPhone(p.text, end) || groups[1].sep == ' ' && !alone(p.text, i, end) {
		return i
	}
	if groups[0].size() == 2 && groups[1].sep == ' ' && inDump(p.text, i, end) {
		return i
	}
	if p.text[i] == '0' && trunk(p.text, groups) || p.text[i] != '0' && (nanp(p.text, groups) || paired(p.text, groups)) {
		return end
	}
	return i
}

// inDump reports whether a byte in hexadecimal digits is one or two spaces away from [from, to).
func inDump(text string, from, to int) bool {
	k := from
	for k > 0 && from-k < 2 && text[k-1] == ' ' {
		k--
	}
	if k > 1 && k < from && hexWord(text[k-2:k]) && !at(text, k-3, alnumChar) {
		return true
	}
	for k = to; k < len(text) && k-to < 2 && text[k] == ' '; {
		k++
	}
	return k > to && k+2 <= len(text) && hexWord(text[k:k+2]) && !at(text, k+2, alnumChar)
}

// bound cuts groups where a space follows dashes or dots, since these belong together more closely,
// unless too few digits precede for a number (070-123 45 67): with a trunk prefix it has an area.
func bound(text string, groups []group) []group {
	least := minPhone
	if text[groups[0].from] == '0' {
		least = minTrunk
	}
	for k := 2; k < len(groups); k++ {
		if groups[k].sep != groups[k-1].sep && groups[k].sep == ' ' && digitsOf(groups[:k]) >= least {
			return groups[:k]
		}
	}
	return groups
}

// datedGroups reports whether groups begin with a date.
func datedGroups(text string, groups []group) bool {
	if len(groups) < 3 || groups[1].sep != groups[2].sep {
		return false
	}
	a, b, c := groups[0], groups[1], groups[2]
	at := func(g group) int { return number(text[g.from:g.to]) }
	if a.size() == 4 && b.size() <= 2 && c.size() <= 2 {
		return year(text[a.from:a.to])
	}
	return a.size() <= 2 && b.size() <= 2 && c.size() == 4 && at(a) <= 31 && at(b) <= 31 && year(text[c.from:c.to])
}

// nanp reports whether groups are those of the North American plan, 3-3-4, with or without a
// country code before them.
func nanp(text string, groups []group) bool {
	n := len(groups)
	if n == 4 && groups[0].size() <= 2 && groups[1].sep != '/' {
		if first := text[groups[0].from:groups[0].to]; first != "1" && groups[1].sep != '-' {
			return false
		}
		groups = groups[1:]
	}
	if len(groups) != 3 || groups[0].size() != 3 || groups[1].size() != 3 || groups[2].size() != 4 {
		return false
	}
	same := groups[1].sep == groups[2].sep || groups[2].sep == '-' && groups[1].sep != '.'
	area, exchange := text[groups[0].from:groups[0].to], text[groups[1].from:groups[1].to]
	if n == 3 && !areaCodes()[number(area)] { // three groups may be any number, so the area must be in use
		return false
	}
	return same && groups[2].sep != '/' && nanpArea(area) && nanpExchange(exchange)
}

// areaCodes are the area codes of the North American plan that are in use or about to be, and the
// toll-free ones: two digits, followed by each third digit that makes a code (NANPA, 2026).
var areaCodes = sync.OnceValue(func() *[1000]bool {
	t := new([1000]bool)
	for row := range strings.FieldsSeq(`
20123456789 21023456789 2203456789 2314569 2402689 250123467 260234789 27024679 281349
30123456789 31023456789 3201345679 330124679 34013567 3501234 3601345789 380256
40123456789 41023456789 423458 430124578 440123578 4508 463489 470234589 4804
50123456789 51023456789 520 530149 54018 55179 5612347 570123459 580124567
60123456789 61023456789 6203689 630169 64015679 65016789 66012479 670128 68012349
70123456789 7123456789 720145678 73012478 7402378 753478 76023579 7701234589 780124567
800123456789 81023456789 82015689 830123589 840345789 850456789 86023456789 870236789 888
90123456789 91023456789 920589 930146789 9401235789 9512469 970123589 98034569`) {
		for _, third := range row[2:] {
			t[number(row[:2])*10+int(third-'0')] = true
		}
	}
	return t
})

// minTrunk is the least number of digits of a number with a trunk prefix.
const minTrunk = 9

// trunk reports whether groups are a number with a trunk prefix, 0 and the area: nine to eleven
// digits, or twelve in two groups, with one kind of separator after the first group.
func trunk(text string, groups []group) bool {
	n := 0
	for k, g := range groups {
		if k > 0 && g.size() < 2 || k > 1 && (g.sep != groups[k-1].sep && k > 2 || g.sep == '/') {
			return false
		}
		n += g.size()
	}
	first := groups[0]
	if text[first.from+min(1, first.size()-1)] == '0' && first.size() > 1 || n < minTrunk || n > 12 || n == 12 && len(groups) > 2 {
		return false
	}
	if first.size() == 1 { // 0 532 123 45 67; with dashes it is a book
		return groups[1].sep == ' ' && groups[1].size() >= 2 && len(groups) > 2 && n >= 10
	}
	if len(groups) < 4 && groups[1].sep == '.' && (first.size() < 3 || n == minTrunk) || len(groups) > 2 && first.size() == 2 && groups[1].size() > 4 { // numbers of parts and contracts
		return false
	}
	switch {
	case len(groups) == 2 && first.size() == 5 && groups[1].size() == 4 && groups[1].sep == '-': // a postal code of the USA
		return false
	case len(groups) == 3 && first.size() == 3 && groups[1].size() == 2 && groups[2].size() == 4: // a Social Security number
		return false
	}
	if first.size() == 6 { // 098765 43210 of India
		return len(groups) == 2 && groups[1].size() == 5 && groups[1].sep != '/' && text[first.from+1] >= '6'
	}
	return first.size() <= 5 && !(groups[1].sep == '.' && len(groups) == 4 && first.size() == 3 && groups[3].size() <= 3)
}

// paired reports whether groups are ten or eleven digits that end in two pairs (532-123-45-67), in
// two fours after an area of two (11 98456-5666), or in two fours after the operator of a Chinese
// mobile number (138 0013 8000).
func paired(text string, groups []group) bool {
	sizes := [4]int{}
	if len(groups) > 4 {
		return false
	}
	for k, g := range groups {
		sizes[k] = g.size()
	}
	switch sizes {
	case [4]int{3, 3, 2, 2}:
		return groups[1].sep == groups[3].sep && groups[1].sep != '/' && groups[1].sep != '.'
	case [4]int{3, 4, 4, 0}:
		return text[groups[0].from] == '1' && text[groups[0].from+1] >= '3' && groups[1].sep == groups[2].sep && groups[1].sep != '/' && groups[1].sep != '.'
	case [4]int{2, 5, 4, 0}:
		return text[groups[1].from] == '9' && groups[1].sep == ' ' && groups[2].sep == '-'
	}
	return false
}

// namedPhoneEnd returns the end of a number of seven to fifteen digits, in a run or in groups, that
// is next to a word for telephones, or where it begins.
func namedPhoneEnd(p *pass, groups []group) int {
	n := digitsOf(groups)
	for ; n > 15 && len(groups) > 1; groups = groups[:len(groups)-1] {
		n -= groups[len(groups)-1].size()
	}
	i, end, run := groups[0].from, groups[len(groups)-1].to, len(groups) == 1
	switch {
	case n < minPhone || n > 15 || !endsPhone(p.text, end):
		return i
	case len(groups) == 4 && groups[3].sep == '.' && groups[3].size() < 4, datedGroups(p.text, groups): // an IP address, a date
		return i
	case p.keyNames(namesPhone | namesMobile):
		return end
	case run && (n == 8 || n == 14) && has(p.text, i, "20"): // a date, with a time
		return i
	case run && (n == 10 || n == 13) && p.text[i] == '1': // seconds or milliseconds since 1970
		return i
	case phoneWord(p, i, n), phoneWordAfter(p, end):
		return end
	}
	return i
}

// phoneWord reports whether a word for telephones precedes i, with nothing but small words and
// punctuation between. A verb counts for numbers of at least ten digits.
func phoneWord(p *pass, i, digits int) bool {
	const reach, words = 56, 6
	floor := max(i-reach, 0)
	at := i
	for range words {
		word, start := p.wordBefore(at, floor)
		switch cueOf(word) {
		case phoneCue:
			return true
		case callCue:
			return digits >= 10
		case noCue:
			return compoundPhone(p, word)
		}
		at = start
	}
	return false
}

// compoundPhone reports whether a name of several words means a telephone: customerPhone.
func compoundPhone(p *pass, word string) bool {
	p.work += len(word)
	k := 1
	for k < len(word) && !(is(word[k], upperChar) && is(word[k-1], lowerChar)) {
		k++
	}
	if k >= len(word) { // most words are one
		return false
	}
	keyKinds, _ := kindsNamedBy(word)
	return keyKinds&namesPhone != 0
}

// phoneWordAfter reports whether (mobile), (fax) or the like follows a number.
func phoneWordAfter(p *pass, i int) bool {
	k := p.runEnd(i, blankChar, i+2)
	if !has(p.text, k, "(") {
		return false
	}
	end := p.runEnd(k+1, letterChar, k+17)
	return cueOf(p.text[k+1:end]) == phoneCue
}

// countries has the codes of countries whose numbers are of known lengths, each with the shortest
// and the longest national number; others have 7 to 11 digits. A number with its country code has
// at most 15 (E.164).
var countries = sync.OnceValue(func() map[string][2]int {
	t := map[string][2]int{}
	for row := range strings.SplitSeq(`
1 10 10; 7 10 10; 20 8 10; 27 9 9; 30 10 10; 31 9 11; 32 8 9; 33 9 9; 34 9 9; 36 8 9; 39 6 11; 40 9 9; 41 9 9;
43 6 13; 44 9 10; 45 8 8; 46 7 10; 47 8 8; 48 9 9; 49 6 12; 51 8 9; 52 10 11; 53 6 8; 54 10 11; 55 10 11; 56 9 9;
57 8 10; 58 10 10; 60 8 10; 61 9 9; 62 8 12; 63 8 10; 64 8 10; 65 8 8; 66 8 9; 81 9 10; 82 8 10; 84 9 10; 86 10 11;
90 10 10; 91 10 10; 92 9 10; 93 9 9; 94 9 9; 95 7 10; 98 10 10; 351 9 9; 352 6 11; 353 7 9; 358 6 11; 380 9 9;
420 9 9; 421 9 9; 852 8 8; 853 8 8; 880 8 10; 886 8 9; 966 9 9; 971 8 9; 972 8 9
`, ";") {
		fields := strings.Fields(row)
		t[fields[0]] = [2]int{number(fields[1]), number(fields[2])}
	}
	return t
})

// country returns the bounds of the national number after the code that digits begin with, and the
// width of the code; a width of 0 means that there is no such code.
func country(digits string) (least, most, width int) {
	for width = 1; width <= min(3, len(digits)); width++ {
		if bounds, ok := countries()[digits[:width]]; ok {
			return bounds[0], bounds[1], width
		}
	}
	if len(digits) < 3 || !strings.ContainsRune("23456789", rune(digits[0])) {
		return 0, 0, 0
	}
	return 7, 11, 3
}
