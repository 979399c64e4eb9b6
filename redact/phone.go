package redact

import (
	"strings"
	"unicode/utf8"
)

var phoneDetector = detector{name: "phone", anchors: []anchor{{"+(" + digits, "+( -." + digits, ""}}, find: findPhone, ahead: 10, kind: Phone, named: namesPhone | namesMobile, leaf: phoneLeaf}

// findPhone finds a number that begins at i: with its country's code, in a grouping that telephone
// numbers have, or after a word for telephones.
func findPhone(p *pass, i int) {
	switch p.text[i] {
	case '+':
		hitPhone(p, i, internationalEnd(p, i, i+1))
		return
	case '(':
		if end := parenthesizedEnd(p, i); end > i {
			hitPhone(p, trunkStart(p.text, i), end)
			return
		}
		return
	}
	if at(p.text, i-1, digitChar) || !spansNumber(p.text, i, minPhone) || !at(p.text, i+1, digitChar) && p.text[i] != '0' && p.text[i] != '1' || !startsPhone(p.text, i) {
		return
	}
	if has(p.text, i+1, "(") { // 0(532) 123 45 67
		if end := parenthesizedEnd(p, i+1); end > i+1 {
			hitPhone(p, i, end)
			return
		}
	}
	groups := p.numberGroups(i)
	if digitsOf(groups) < minPhone {
		return
	}
	if has(p.text, i, "00") && !has(p.text, i, "000") && len(groups) > 1 { // in groups: a run may be any number
		if end := internationalEnd(p, i, i+2); end > groups[0].to {
			hitPhone(p, i, end)
			return
		}
	}
	groups = bound(p.text, groups)
	hitPhone(p, i, max(nationalEnd(p, groups), namedPhoneEnd(p, groups), bareMobile(p.text)))
}

// minPhone is the number of digits of a subscriber's number without its area.
const minPhone = 7

// bareMobile returns the length of a text that is only a mobile number with its trunk prefix, or 0.
// It has ten or eleven digits and begins with a zero, which amounts and JSON numbers do not. Mobile
// networks have 5 to 9 after the zero, or 10, 15, 16 and 17.
func bareMobile(text string) int {
	if len(text) != 10 && len(text) != 11 || text[0] != '0' || text[1] == '0' || !digitsOnly(text) {
		return 0
	}
	if text[1] >= '5' || text[1] == '1' && (text[2] == '0' || text[2] >= '5' && text[2] <= '7') {
		return len(text)
	}
	return 0
}

// trunkStart returns where the 0 or 1 of a trunk prefix precedes the parenthesis at i, with one
// separator between, or i.
func trunkStart(text string, i int) int {
	if i < 2 {
		return i
	}
	if _, width := separator(text, i-1); width != 1 || text[i-2] != '0' && text[i-2] != '1' || !startsPhone(text, i-2) {
		return i
	}
	return i - 2
}

// hitPhone records the number from i to end, with its extension; an end of i means none.
func hitPhone(p *pass, i, end int) {
	if end <= i {
		return
	}
	end = extensionEnd(p, end)
	p.consume(Phone, i, end)
}

// startsPhone reports whether a number may begin at i: not within a price, a time, an identifier or
// a decimal.
func startsPhone(text string, i int) bool {
	if !startsNumber(text, i) {
		return false
	}
	switch {
	case i == 0:
		return true
	case text[i-1] == '-': // a sign, or a part of a name
		return false
	case text[i-1] == ':':
		return !at(text, i-2, digitChar) && (i < 3 || !hexWord(text[i-3:i-1]) || at(text, i-4, letterChar))
	case text[i-1] == '/':
		return !at(text, i-2, digitChar)
	}
	before, _ := utf8.DecodeLastRuneInString(text[:i])
	return !strings.ContainsRune("_$+€£¥", before)
}

// endsPhone reports whether a number may end before i.
func endsPhone(text string, i int) bool {
	switch {
	case i >= len(text):
		return true
	case strings.IndexByte(".:-,/%", text[i]) >= 0:
		return !at(text, i+1, digitChar) || text[i] == ',' || text[i] == '/'
	case text[i] == 'x':
		return at(text, i+1, digitChar)
	}
	return !is(text[i], wordChar)
}

// extensionEnd returns the end of the extension after the number that ends before i, or i.
func extensionEnd(p *pass, i int) int {
	k := p.runEnd(i, blankChar, i+2)
	if has(p.text, k, ",") {
		k = p.runEnd(k+1, blankChar, k+3)
	}
	word := 0
	for _, w := range [...]string{"extension", "ext.", "ext", "x", "#", "durchwahl", "poste"} {
		if hasFold(p.text, k, w) {
			word = len(w)
			break
		}
	}
	if word == 0 {
		return i
	}
	k += word
	from := p.runEnd(k, blankChar, k+2)
	end := p.runEnd(from, digitChar, from+7)
	if n := end - from; n == 0 || n > 6 || at(p.text, end, wordChar) {
		return i
	}
	return end
}

// internationalEnd returns the end of the number whose country's code begins at code, or i. It
// takes as many groups as numbers of the country may have.
func internationalEnd(p *pass, i, code int) int {
	if i > 0 && (insideWord(p.text, i) || has(p.text, i-1, "+") || has(p.text, i-1, ".")) {
		return i
	}
	if has(p.text, code, "(") { // +(44); the other form is (+44)
		code++
	}
	n, least, most, width := 0, 0, 0, 0
	end := i
	for k := code; k < len(p.text) && n <= 15; {
		to := p.runEnd(k, digitChar, k+16)
		if to == k {
			break
		}
		size := to - k
		if p.text[code] == '0' || n > 0 && end == i && p.text[i] == '0' && n <= width && p.text[k] == '0' && !has(p.text, k-1, "(") {
			return i // no country's code and, after 00, no area begins with a zero
		}
		if k == code && size >= 10 && size <= 15 && endsPhone(p.text, to) {
			end = to // in any country: a plus sign before so many digits is evidence enough
		}
		if n == 0 {
			if least, most, width = country(p.text[k:to]); width == 0 {
				return end
			}
		}
		trunk := size == 1 && p.text[k] == '0' && has(p.text, k-1, "(") && has(p.text, to, ")") // +44 (0)20 …
		if !trunk {
			n += size
		}
		if n > most+width {
			break
		}
		if n >= least+width && endsPhone(p.text, to) {
			end = to
		}
		k = nextGroup(p, to, n >= least+width)
		if k == to {
			break
		}
	}
	return end
}

// nextGroup returns where the group of digits that follows to begins, or to itself. If enough is
// true, the number could end here, and a date or a time after a space is none of its groups.
func nextGroup(p *pass, to int, enough bool) int {
	k := to
	if has(p.text, k, ")") {
		k++
	}
	kind, width := separator(p.text, k)
	k += width
	if width > 0 && kind == '-' && has(p.text, k, " ") || kind == ' ' && has(p.text, k, "- ") {
		k++
	}
	if has(p.text, k, "(") {
		k++
	}
	if !at(p.text, k, digitChar) {
		return to
	}
	if enough && kind == ' ' {
		end := p.runEnd(k, digitChar, k+5)
		if end-k > 4 || end < len(p.text)-1 && strings.IndexByte("-./:,", p.text[end]) >= 0 && is(p.text[end+1], digitChar) {
			return to
		}
	}
	return k
}

// parenthesizedEnd returns the end of a number that begins with its area, or its country, in
// parentheses at i; or i.
func parenthesizedEnd(p *pass, i int) int {
	if i > 0 && is(p.text[i-1], wordChar) {
		return i
	}
	if has(p.text, i+1, "+") { // (+98) 914 492 1058; with more in the parentheses, they belong to the sentence
		if to := p.runEnd(i+2, digitChar, i+6); has(p.text, to, ")") {
			return internationalEnd(p, i, i+2)
		}
		return i
	}
	to := p.runEnd(i+1, digitChar, i+7)
	area := p.text[i+1 : to]
	if len(area) < 1 || len(area) > 5 || !has(p.text, to, ")") || year(area) {
		return i
	}
	k := to + 1
	if kind, width := separator(p.text, k); kind == ' ' || kind == '-' || kind == '.' || kind == '/' {
		k += width
	}
	if !at(p.text, k, digitChar) {
		return i
	}
	return max(i, afterAreaEnd(p.text, area, p.numberGroups(k)))
}

// afterAreaEnd returns the end of the groups that may follow an area in parentheses, or 0.
func afterAreaEnd(text, area string, groups []group) int {
	if nanpArea(area) && len(groups) > 1 && groups[0].size() == 3 && groups[1].size() == 4 && endsPhone(text, groups[1].to) {
		return groups[1].to
	}
	if nanpArea(area) && groups[0].size() == 7 && endsPhone(text, groups[0].to) {
		return groups[0].to
	}
	n := len(area)
	for k, g := range groups {
		if k > 0 && g.sep != ' ' && g.sep != '-' || k > 1 && g.sep != groups[1].sep {
			break
		}
		n += g.size()
		last := k+1 == len(groups) || groups[k+1].sep != g.sep && k > 0
		if n >= 9 && n <= 12 && last && g.size() >= 2 && groups[0].size() >= 2 && endsPhone(text, g.to) && (k > 0 || area[0] == '0') {
			return g.to
		}
	}
	return 0
}

// nanpArea reports whether area is an area code of the North American plan: no 0 or 1 first, no 9
// second, no service code.
func nanpArea(area string) bool {
	return len(area) == 3 && area[0] >= '2' && area[1] != '9' && area[1:] != "11"
}

// nanpExchange reports whether code is an exchange code, which may have a 9.
func nanpExchange(code string) bool { return len(code) == 3 && code[0] >= '2' && code[1:] != "11" }

// year reports whether n is a year from 1900 to 2099.
func year(n string) bool { return len(n) == 4 && (has(n, 0, "19") || has(n, 0, "20")) }
