package redact

import "strings"

var macDetector = detector{name: "mac", anchors: []anchor{{hexes, ":-.", hexes}}, find: findMAC, ahead: 4, kind: MAC, named: namesMAC, leaf: macLeaf}

// findMAC finds an EUI-48 or EUI-64 whose first group ends at i: groups of two with colons or
// dashes, or of four with dots. Addresses that no device has (all zeros, all ones) are not found.
func findMAC(p *pass, i int) {
	sep, size := p.text[i+1], 2
	if sep == '.' {
		size = 4
	}
	start := i + 1 - size
	if start < 0 || !startsHex(p.text, start) {
		return
	}
	end, groups := start, 0
	for {
		to := p.runEnd(end, hexChar, end+size+1)
		if to-end != size {
			return
		}
		end, groups = to, groups+1
		if !at(p.text, end+1, hexChar) || p.text[end] != sep {
			break
		}
		if groups == 8 {
			return
		}
		end++
	}
	if digits := groups * size; digits != 12 && digits != 16 || !endsHex(p.text, end) || uniform(p.text[start:end]) || size == 4 && digits == 16 && !strings.ContainsAny(p.text[start:end], "abcdefABCDEF") {
		return
	}
	p.consume(MAC, start, end)
}

// macWordDetector finds an EUI-48 without separators after the word that says what it is.
var macWordDetector = detector{name: "mac behind its word", anchors: []anchor{{"Mm", "Aa", "Cc"}}, find: findMACWord, kind: MAC}

func findMACWord(p *pass, i int) {
	if at(p.text, i-1, lowerChar) || at(p.text, i-1, upperChar) && is(p.text[i], upperChar) {
		return
	}
	k := i + len("mac")
	if has(p.text, k, " ") || has(p.text, k, "_") || has(p.text, k, "-") {
		k++
	}
	for _, word := range [...]string{"address", "addr"} {
		if hasFold(p.text, k, word) {
			k += len(word)
			break
		}
	}
	from := k
	for from < len(p.text) && from < k+4 && strings.IndexByte(" \t:=\"'", p.text[from]) >= 0 {
		from++
	}
	end := p.runEnd(from, hexChar, from+13)
	if end-from != 12 || from == i+len("mac") || at(p.text, end, wordChar) || uniform(p.text[from:end]) {
		return
	}
	p.consume(MAC, from, end)
}

// startsHex reports whether an address may begin at i: it is not the rest of a word or of a longer
// address.
func startsHex(text string, i int) bool {
	switch {
	case i == 0:
		return true
	case insideWord(text, i):
		return false
	case text[i-1] == '-':
		return !at(text, i-2, wordChar)
	case text[i-1] == '.':
		return false
	case text[i-1] == ':':
		return !hexGroupBefore(text, i-1)
	}
	return true
}

// hexGroupBefore reports whether a group of an address ends before i: one to four hexadecimal
// digits that are no part of a word.
func hexGroupBefore(text string, i int) bool {
	k := i
	for k > 0 && i-k < 5 && is(text[k-1], wordChar) {
		if !is(text[k-1], hexChar) {
			return false
		}
		k--
	}
	return k < i && i-k < 5
}

// endsHex reports whether an address may end before i.
func endsHex(text string, i int) bool {
	if at(text, i, wordChar) {
		return false
	}
	return !(has(text, i, ":") || has(text, i, "-") || has(text, i, ".")) || !at(text, i+1, hexChar)
}

// uniform reports whether an address is all zeros or all ones.
func uniform(address string) bool {
	first := toLower(address[0])
	if first != '0' && first != 'f' {
		return false
	}
	for k := range len(address) {
		if is(address[k], hexChar) && toLower(address[k]) != first {
			return false
		}
	}
	return true
}
