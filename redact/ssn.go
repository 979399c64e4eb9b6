package redact

import "strings"

var ssnDetector = detector{name: "ssn", anchors: []anchor{{digits, digits, digits}}, find: findSSN, ahead: 10, kind: SSN, named: namesSSN, leaf: ssnLeaf}

// findSSN finds area, group and serial number, with dashes, spaces or dots between. With fewer
// separators, a word for Social Security must be next to it.
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

// hitSSN decides on nine digits in groups. If word is true, a word for Social Security must be next
// to them.
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

// validSSN reports whether nine digits follow the rules of the Social Security Administration:
// areas 000, 666 and from 900 on, group 00 and serial 0000 are never issued. Numbers that became
// void because advertisements printed them are valid here, since documents use them for persons.
func validSSN(n string) bool {
	area, group, serial := n[:3], n[3:5], n[5:]
	return area != "000" && area != "666" && area[0] != '9' && group != "00" && serial != "0000"
}

// bareSSN reports whether a text is only nine digits that begin with a zero, which amounts and JSON
// numbers do not. Routing numbers of banks do; their check digit excludes them.
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

// ssnWord reports whether a word for Social Security is next to [from, to).
func ssnWord(p *pass, from, to int) bool {
	const before, behind = 48, 12
	near := p.text[max(from-before, 0):from]
	if stop := strings.LastIndexAny(near, "\n]"); stop >= 0 { // a placeholder ends in ]
		near = near[stop:]
	}
	p.work += before + behind
	p.readTo(to + behind)
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
