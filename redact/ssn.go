package redact

import "strings"

var ssnDetector = detector{name: "ssn", anchors: []anchor{{digits, digits, digits}}, find: findSSN, kind: SSN, named: namesSSN, leaf: ssnLeaf}

// findSSN finds area, group and serial number, with dashes, spaces or dots between. With fewer separators, what is
// beside has to say what it is.
func findSSN(p *pass, i int) {
	if at(p.text, i-1, digitChar) || !spansNumber(p.text, i, 9) {
		return
	}
	if n := p.runEnd(i, digitChar, i+10) - i; n != 3 && n != 5 && n != 9 || !startsNumber(p.text, i) {
		return
	}
	groups := p.numberGroups(i)
	sizes := [3]int{}
	for k := range min(len(groups), 3) {
		sizes[k] = groups[k].size()
	}
	switch {
	case sizes == [3]int{3, 2, 4} && groups[1].sep == groups[2].sep && groups[1].sep != '/':
		hitSSN(p, i, groups[:3], false)
		return
	case sizes[0] == 3 && sizes[1] == 6 || sizes[0] == 5 && sizes[1] == 4:
		hitSSN(p, i, groups[:2], true)
		return
	case sizes[0] == 9:
		hitSSN(p, i, groups[:1], true)
		return
	}
}

// hitSSN decides on nine digits in groups; word says that a word beside them is needed.
func hitSSN(p *pass, i int, groups []group, word bool) {
	var all [9]byte
	n := 0
	for _, g := range groups {
		n += copy(all[n:], p.text[g.from:g.to])
	}
	end := groups[len(groups)-1].to
	if !validSSN(string(all[:])) || !endsNumber(p.text, end) {
		return
	}
	if word && !p.keyNames(namesSSN) && !ssnWord(p, i, end) && !bareSSN(p.text) || !word && !alone(p.text, i, end) {
		return
	}
	p.consume(SSN, i, end)
}

// validSSN holds nine digits to the rules of the Social Security Administration: areas 000, 666 and from 900 on, group
// 00 and serial 0000 are never given out. The numbers that advertisements made void pass: documents show them as
// someone's.
func validSSN(n string) bool {
	area, group, serial := n[:3], n[3:5], n[5:]
	return area != "000" && area != "666" && area[0] != '9' && group != "00" && serial != "0000"
}

// bareSSN reports a text that is nothing but nine digits of which the first is zero: no amount and no JSON number is
// written so. Routing numbers of banks are, and tell themselves by their check digit.
func bareSSN(text string) bool {
	if len(text) != 9 || text[0] != '0' || text == "078051120" { // void
		return false
	}
	sum := 0
	for k := range len(text) {
		sum += [...]int{3, 7, 1}[k%3] * int(text[k]-'0')
	}
	return sum%10 != 0
}

// ssnWord reports a word beside [from, to) that says Social Security.
func ssnWord(p *pass, from, to int) bool {
	const before, behind = 48, 12
	near := p.text[max(from-before, 0):from]
	if stop := strings.LastIndexAny(near, "\n]"); stop >= 0 { // a placeholder ends in ]
		near = near[stop:]
	}
	p.work += before + behind
	return mentionsSSN(near) || !has(p.text, to, "[") && !has(p.text, to, " [") && mentionsSSN(p.text[to:min(to+behind, len(p.text))])
}

func mentionsSSN(text string) bool {
	for i := range len(text) {
		if b := text[i] | 0x20; b != 's' || at(text, i-1, letterChar) && !(is(text[i], upperChar) && is(text[i-1], lowerChar)) {
			continue
		}
		if hasFold(text, i, "ssn") && (!at(text, i+3, lowerChar) || hasFold(text, i, "ssns") || hasFold(text, i, "ssnum")) ||
			hasFold(text, i, "social") || hasFold(text, i, "soc sec") || hasFold(text, i, "soc. sec") || hasFold(text, i, "ss#") ||
			hasFold(text, i, "ss no") || hasFold(text, i, "s.s.n") {
			return true
		}
	}
	return false
}
