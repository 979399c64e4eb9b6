package redact

import (
	"strings"
	"unicode/utf8"
)

var phoneDetector = detector{name: "phone", anchors: []anchor{{"+(" + digits, "+( -." + digits, ""}}, find: findPhone, kind: Phone, named: promisesPhone | promisesMobile, leaf: phoneLeaf}

// findPhone finds a number that begins at i: with its country's code, in a grouping that telephone numbers have, or
// behind a word that says what it is.
func findPhone(s *scan, i int) int {
	switch s.text[i] {
	case '+':
		return s.phone(i, s.international(i, i+1))
	case '(':
		if end := s.parenthesised(i); end > i {
			return s.phone(trunkStart(s.text, i), end)
		}
		return i
	}
	if at(s.text, i-1, digitChar) || !spansNumber(s.text, i, minPhone) || !at(s.text, i+1, digitChar) && s.text[i] != '0' && s.text[i] != '1' || !startsPhone(s.text, i) {
		return i
	}
	if has(s.text, i+1, "(") { // 0(532) 123 45 67
		if end := s.parenthesised(i + 1); end > i+1 {
			return s.phone(i, end)
		}
	}
	groups := s.numberGroups(i)
	if digitsOf(groups) < minPhone {
		return i
	}
	if has(s.text, i, "00") && !has(s.text, i, "000") && len(groups) > 1 { // in groups: a run may be any number
		if end := s.international(i, i+2); end > groups[0].to {
			return s.phone(i, end)
		}
	}
	groups = bound(groups)
	return s.phone(i, max(s.national(groups), s.said(groups), bareMobile(s.text)))
}

// minPhone is the number of digits of a subscriber's number without its area.
const minPhone = 7

// bareMobile returns the length of a text that is nothing but a number of a mobile telephone with its trunk prefix, or 0:
// ten or eleven digits of which the first is zero, as no amount and no JSON number is written. Behind it mobile networks have
// 5 to 9, or 10, 15, 16 and 17.
func bareMobile(text string) int {
	if len(text) != 10 && len(text) != 11 || text[0] != '0' || text[1] == '0' {
		return 0
	}
	for i := range len(text) {
		if !is(text[i], digitChar) {
			return 0
		}
	}
	if text[1] >= '5' || text[1] == '1' && (text[2] == '0' || text[2] >= '5' && text[2] <= '7') {
		return len(text)
	}
	return 0
}

// trunkStart returns where the 0 or 1 of a trunk prefix stands before the parenthesis at i, with one separator between,
// or i.
func trunkStart(text string, i int) int {
	if i < 2 {
		return i
	}
	if _, width := separator(text, i-1); width != 1 || text[i-2] != '0' && text[i-2] != '1' || !startsPhone(text, i-2) {
		return i
	}
	return i - 2
}

// phone records the number from i to end, with its extension; an end of i means none.
func (s *scan) phone(i, end int) int {
	if end <= i {
		return i
	}
	end = s.extensionEnd(end)
	s.hit(Phone, i, end)
	return end
}

// startsPhone reports whether a number may begin at i; a price, a time, a part of an identifier or of a decimal may not.
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
	return text[i-1] != '_' && text[i-1] != '$' && text[i-1] != '+' && !(text[i-1] >= utf8.RuneSelf && hasSuffix(text[:i], "€", "£", "¥"))
}

func hasSuffix(text string, suffixes ...string) bool {
	for _, suffix := range suffixes {
		if strings.HasSuffix(text, suffix) {
			return true
		}
	}
	return false
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

// extensionEnd returns the end of the extension behind the number that ends before i, or i.
func (s *scan) extensionEnd(i int) int {
	k := s.runEnd(i, blankChar, i+2)
	if has(s.text, k, ",") {
		k = s.runEnd(k+1, blankChar, k+3)
	}
	word := 0
	for _, w := range [...]string{"extension", "ext.", "ext", "x", "#", "durchwahl", "poste"} {
		if hasFold(s.text, k, w) {
			word = len(w)
			break
		}
	}
	if word == 0 {
		return i
	}
	k += word
	from := s.runEnd(k, blankChar, k+2)
	end := s.runEnd(from, digitChar, from+7)
	if n := end - from; n == 0 || n > 6 || at(s.text, end, wordChar) {
		return i
	}
	return end
}

// international returns the end of the number whose country's code begins at code, or i. Groups are taken as long as the
// country has numbers of that length.
func (s *scan) international(i, code int) int {
	if i > 0 && (insideWord(s.text, i) || has(s.text, i-1, "+") || has(s.text, i-1, ".")) {
		return i
	}
	if has(s.text, code, "(") { // (+44) is another way round: this is +(44)
		code++
	}
	n, least, most, width := 0, 0, 0, 0
	end := i
	for k := code; k < len(s.text) && n <= 15; {
		to := s.runEnd(k, digitChar, k+16)
		if to == k {
			break
		}
		size := to - k
		if s.text[code] == '0' || n > 0 && end == i && s.text[i] == '0' && n <= width && s.text[k] == '0' && !has(s.text, k-1, "(") {
			return i // no country's code and, behind 00, no area begins with a zero
		}
		if k == code && size >= 10 && size <= 15 && endsPhone(s.text, to) {
			end = to // whatever its country: a plus sign before so many digits says enough
		}
		if n == 0 {
			if least, most, width = country(s.text[k:to]); width == 0 {
				return end
			}
		}
		trunk := size == 1 && s.text[k] == '0' && has(s.text, k-1, "(") && has(s.text, to, ")") // +44 (0)20 …
		if !trunk {
			n += size
		}
		if n > most+width {
			break
		}
		if n >= least+width && endsPhone(s.text, to) {
			end = to
		}
		k = s.nextGroup(to, n >= least+width)
		if k == to {
			break
		}
	}
	return end
}

// nextGroup returns where the group of digits behind to begins, or to. enough says that the number could end here: then a
// date or a time behind a blank is none of its groups.
func (s *scan) nextGroup(to int, enough bool) int {
	k := to
	if has(s.text, k, ")") {
		k++
	}
	kind, width := separator(s.text, k)
	k += width
	if width > 0 && kind == '-' && has(s.text, k, " ") || kind == ' ' && has(s.text, k, "- ") {
		k++
	}
	if has(s.text, k, "(") {
		k++
	}
	if !at(s.text, k, digitChar) {
		return to
	}
	if enough && kind == ' ' {
		end := s.runEnd(k, digitChar, k+5)
		if end-k > 4 || end < len(s.text)-1 && strings.IndexByte("-./:,", s.text[end]) >= 0 && is(s.text[end+1], digitChar) {
			return to
		}
	}
	return k
}

// parenthesised returns the end of a number that begins with its area, or its country, in parentheses at i; or i.
func (s *scan) parenthesised(i int) int {
	if i > 0 && is(s.text[i-1], wordChar) {
		return i
	}
	if has(s.text, i+1, "+") { // (+98) 914 492 1058; where more stands in the parentheses, they are of the sentence
		if to := s.runEnd(i+2, digitChar, i+6); has(s.text, to, ")") {
			return s.international(i, i+2)
		}
		return i
	}
	to := s.runEnd(i+1, digitChar, i+7)
	area := s.text[i+1 : to]
	if len(area) < 1 || len(area) > 5 || !has(s.text, to, ")") || year(area) {
		return i
	}
	k := to + 1
	if kind, width := separator(s.text, k); kind == ' ' || kind == '-' || kind == '.' || kind == '/' {
		k += width
	}
	if !at(s.text, k, digitChar) {
		return i
	}
	return max(i, parenthesisedEnd(s.text, area, s.numberGroups(k)))
}

// parenthesisedEnd returns the end of the groups that may follow an area in parentheses, or 0.
func parenthesisedEnd(text, area string, groups []group) int {
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

// nanpArea reports an area code of the North American plan: no 0 or 1 first, no 9 second, none of the service codes.
func nanpArea(area string) bool {
	return len(area) == 3 && area[0] >= '2' && area[1] != '9' && area[1:] != "11"
}

// nanpExchange reports an exchange code, which may have a 9.
func nanpExchange(code string) bool { return len(code) == 3 && code[0] >= '2' && code[1:] != "11" }

// year reports a year in parentheses, as citations have it.
func year(n string) bool { return len(n) == 4 && (has(n, 0, "19") || has(n, 0, "20")) }
