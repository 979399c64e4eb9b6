package redact

import (
	"strings"
	"unicode/utf8"
)

// Sets of bytes for anchors.
const (
	digits  = "0123456789"
	lowers  = "abcdefghijklmnopqrstuvwxyz"
	uppers  = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	alnums  = digits + lowers + uppers
	hexes   = digits + "abcdefABCDEF"
	spaces  = " \t"
	url64   = alnums + "-_"
	base58  = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	nameSet = alnums + "_-.$"

	// Control characters but for tabs and line ends.
	controls = "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x0e\x0f\x10\x11\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f\x7f"
)

// A class is a set of bytes. All classes share one table.
type class uint32

const (
	digitChar class = 1 << iota
	lowerChar
	upperChar
	hexChar
	wordChar       // letters, digits and _
	urlChar        // base64url
	base64Char     // base64, with padding
	nameChar       // bytes of names of variables, keys and flags, bytes beyond ASCII included
	blankChar      // space and tab
	whitespaceChar // space, line ends and other controls
	quoteChar      // " ' `
	dashChar
	dotChar
	awsChar      // AWS secret access keys
	slashChar    // base64url and slashes: the path of a webhook
	operatorChar // bytes that may precede the = of an operator: := != ?= +=
	closerChar   // bytes between a name and its operator: quotes, closing brackets, emphasis, a line continued by \
	maskChar     // bytes that mask a value
	symbolChar   // marks in passwords that identifiers and words do not have
	azureChar    // client secrets of Entra ID
	schemeChar   // token68 of RFC 7235
	cookieChar   // values of cookies, RFC 6265 4.1.1, but for =
	runChar      // runs of base64, base64url and hexadecimal
	controlChar  // control characters but for tabs and line ends
	escapeChar   // bytes that begin an escape
	base58Char   // keys of Bitcoin
	bech32Char   // BIP 173
	stopChar     // bytes that may end a value, quoted or not; see [valueStops]
	letterChar   = lowerChar | upperChar
	alnumChar    = letterChar | digitChar
	baseChar     = upperChar | digitChar
)

var classes = func() (t [256]class) {
	for c, set := range map[class]string{
		digitChar: digits, lowerChar: lowers, upperChar: uppers, hexChar: hexes, wordChar: alnums + "_", urlChar: url64,
		base64Char: alnums + "+/=", nameChar: nameSet, blankChar: spaces, dashChar: "-", dotChar: ".", awsChar: alnums + "+/", runChar: url64 + "+/", slashChar: url64 + "/+",
		operatorChar: ":!?+", closerChar: "\"'`])}*\\?", maskChar: "xX*#.-_?", symbolChar: "!@#$%^&*+?~=|", azureChar: url64 + "~.", schemeChar: url64 + "~.+/=",
		cookieChar: alnums + "!#$%&'()*+-./:<>?@[]^_`{|}~", quoteChar: "\"'`",
		base58Char: base58, bech32Char: "qpzry9x8gf2tvdw0s3jn54khce6mua7l", controlChar: controls, escapeChar: "%\\&", stopChar: "\"'`<>\\&?,;)[",
	} {
		for i := range len(set) {
			t[set[i]] |= c
		}
	}
	for b := range 256 {
		if b <= ' ' || b == 0x7f {
			t[b] |= whitespaceChar | stopChar
		}
		if b >= utf8.RuneSelf {
			t[b] |= nameChar | stopChar
		}
	}
	return t
}()

// bytes returns the bytes of a class.
func (c class) bytes() string {
	var set []byte
	for b := range 256 {
		if classes[b]&c != 0 {
			set = append(set, byte(b))
		}
	}
	return string(set)
}

func is(b byte, c class) bool { return classes[b]&c != 0 }

// at reports whether text has a byte of class c at i. The index may be out of range.
func at(text string, i int, c class) bool { return i >= 0 && i < len(text) && is(text[i], c) }

// runEnd returns the end of the run of class c that begins at i, or limit if it is longer.
func (p *pass) runEnd(i int, c class, limit int) int {
	limit = min(limit, len(p.text))
	start := i
	for i < limit && is(p.text[i], c) {
		i++
	}
	p.work += i - start + 1
	p.readTo(i)
	return i
}

// runStart returns the start of the run of class c that ends before i, going back to floor at most.
func (p *pass) runStart(i int, c class, floor int) int {
	floor = max(floor, 0)
	end := i
	for i > floor && is(p.text[i-1], c) {
		i--
	}
	p.work += end - i + 1
	return i
}

func toLower(b byte) byte {
	if is(b, upperChar) {
		return b + 'a' - 'A'
	}
	return b
}

// allOf reports whether all bytes of text are of class c.
func allOf(text string, c class) bool {
	for i := range len(text) {
		if !is(text[i], c) {
			return false
		}
	}
	return true
}

// capital reports whether name has ASCII letters and none of them is lower-case.
func capital(name string) bool {
	uppers := 0
	for i := range len(name) {
		if is(name[i], lowerChar) {
			return false
		}
		if is(name[i], upperChar) {
			uppers++
		}
	}
	return uppers > 0
}

// hasFold reports whether text has the lower-case ASCII word at i, in any case.
func hasFold(text string, i int, word string) bool {
	if i < 0 || len(text)-i < len(word) {
		return false
	}
	for k := range len(word) {
		if toLower(text[i+k]) != word[k] {
			return false
		}
	}
	return true
}

func has(text string, i int, word string) bool {
	return i >= 0 && i <= len(text) && strings.HasPrefix(text[i:], word)
}

// endsValue reports whether an unquoted value ends before r, a rune beyond ASCII: a space, a
// closing quote, punctuation of CJK, or a letter of a script that is written without spaces.
func endsValue(r rune) bool {
	switch {
	case r < 0x2000:
		return r == 0x85 || r == 0xa0 || r == 0x1680 || r == '«' || r == '»'
	case r < 0x2e80:
		return r <= 0x200a || r >= 0x2018 && r <= 0x201f || r == 0x2028 || r == 0x2029 || r == 0x202f || r == 0x205f || r == '‹' || r == '›'
	}
	return r <= 0x9fff || r >= 0xac00 && r <= 0xd7a3 || r >= 0xff00 && r <= 0xffef || r >= 0x20000 && r <= 0x3ffff
}

// has is the function of that name on the text of p. It notes a text that ends within the word.
func (p *pass) has(i int, word string) bool {
	if i >= 0 && len(p.text)-i < len(word) && strings.HasPrefix(word, p.text[min(i, len(p.text)):]) {
		p.readTo(len(p.text))
	}
	return has(p.text, i, word)
}

const placeholderOpen = "[REDACTED:"

// placeholderEnd is the function of that name on the text of p.
func (p *pass) placeholderEnd(i int) int {
	if p.has(i, placeholderOpen) {
		p.readTo(i + len(placeholderOpen) + 64)
	}
	return placeholderEnd(p.text, i)
}

// placeholderEnd returns the end of the placeholder that begins at i, or i if none does.
func placeholderEnd(text string, i int) int {
	if !has(text, i, placeholderOpen) {
		return i
	}
	k := i + len(placeholderOpen)
	for k < len(text) && k < i+64 && (is(text[k], alnumChar) || text[k] == '-' || text[k] == '_') {
		k++
	}
	if k > i+len(placeholderOpen) && k < len(text) && text[k] == ']' {
		return k + 1
	}
	return i
}
