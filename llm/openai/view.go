package openai

import (
	"encoding/base64"
	"encoding/hex"
	"html"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A view is a text in another form.
type view struct {
	text string
	at   []span // where each byte of it is in the original
}

// A span is a range of bytes of a text of at most maxServerText bytes.
type span struct{ from, to uint16 }

// escape matches one escaped character of a URL, of JSON or another string
// literal, or of HTML.
var escape = regexp.MustCompile(`%[0-9A-Fa-f]{2}|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}|\\[\\/"'nrt]|&#?[0-9A-Za-z]{1,8};`)

// unescaped returns the view with one layer of escapes removed, and whether it had one.
func (v *view) unescaped() (out view, changed bool) {
	if strings.IndexAny(v.text, `%\&`) < 0 {
		return *v, false
	}
	last := 0
	keep := func(end int) {
		out.text += v.text[last:end]
		out.at = append(out.at, v.at[last:end]...)
	}
	for _, m := range escape.FindAllStringIndex(v.text, -1) {
		char, ok := unescape(v.text[m[0]:m[1]])
		if !ok {
			continue
		}
		keep(m[0])
		out.text += char
		for range len(char) {
			out.at = append(out.at, span{v.at[m[0]].from, v.at[m[1]-1].to})
		}
		last = m[1]
	}
	keep(len(v.text))
	return out, out.text != v.text
}

// escaped maps the letter of a backslash escape to its control character.
var escaped = strings.NewReplacer("n", "\n", "r", "\r", "t", "\t")

// unescape decodes one escape. ok is false if it is not valid.
func unescape(s string) (text string, ok bool) {
	digits := ""
	switch {
	case s[0] == '&':
		char := html.UnescapeString(s)
		return char, char != s && char != ""
	case s[0] == '%':
		digits = s[1:]
	case s[1] == 'u' || s[1] == 'x':
		digits = s[2:]
	default:
		return escaped.Replace(s[1:]), true
	}
	n, err := strconv.ParseUint(digits, 16, 32)
	if err != nil {
		return "", false
	}
	if s[0] == '%' || len(digits) == 2 {
		return string([]byte{byte(n)}), true
	}
	return string(utf8.AppendRune(nil, rune(n))), true
}

// packing matches what may be base64 or hex.
var packing = regexp.MustCompile(`[0-9A-Za-z+/_-]{8,}`)

// standard replaces the letters of base64 for URLs by those of the standard.
var standard = strings.NewReplacer("-", "+", "_", "/")

// appendPacked appends what the view holds in base64 and hex.
func (v *view) appendPacked(all []view) []view {
	for _, m := range packing.FindAllStringIndex(v.text, -1) {
		run := standard.Replace(v.text[m[0]:m[1]])
		for skip := range 4 {
			all = v.appendDecoded(all, run[skip:], m[0]+skip, 4, 3, base64.RawStdEncoding.Decode)
		}
		for skip := range 2 {
			all = v.appendDecoded(all, run[skip:], m[0]+skip, 2, 1, hex.Decode)
		}
	}
	return all
}

// appendDecoded appends a run decoded group by group, unless that is too short to repeat
// anything. Groups that cannot be decoded are left out.
func (v *view) appendDecoded(all []view, run string, at, group, size int, decode func(dst, src []byte) (int, error)) []view {
	text, where := make([]byte, 0, len(run)), make([]span, 0, len(run))
	valid := 0
	for i := 0; i < len(run); i += group {
		end := min(i+group, len(run))
		var chars [3]byte
		var src [4]byte
		n, err := decode(chars[:size], src[:copy(src[:], run[i:end])])
		from := v.at[at+i].from
		if err != nil {
			text, where = append(text, 0), append(where, span{from, from})
			continue
		}
		for k := range n {
			text, where = append(text, chars[k]), append(where, span{from, v.at[at+end-1].to})
		}
		valid += n
	}
	if valid < minSecret {
		return all
	}
	return append(all, view{string(text), where})
}

// squeezed returns the letters and digits of the view, in lower case.
func (v *view) squeezed() view {
	text, at := make([]byte, 0, len(v.text)), make([]span, 0, len(v.text))
	for i := range len(v.text) {
		if b := letters[v.text[i]]; b != 0 {
			text, at = append(text, b), append(at, v.at[i])
		}
	}
	return view{string(text), at}
}

// squeeze returns the letters and digits of a text, in lower case.
func squeeze(s string) string {
	out := make([]byte, 0, len(s))
	for i := range len(s) {
		if b := letters[s[i]]; b != 0 {
			out = append(out, b)
		}
	}
	return string(out)
}

// letters maps each letter and digit to its lower case, and other characters to zero.
// Bytes beyond ASCII count as letters.
var letters = func() (table [256]byte) {
	for i := range table {
		switch b := byte(i); {
		case b >= 'A' && b <= 'Z':
			table[i] = b + 'a' - 'A'
		case b >= 'a' && b <= 'z', b >= '0' && b <= '9', b >= utf8.RuneSelf:
			table[i] = b
		}
	}
	return table
}()

// lower returns a text with its ASCII letters in lower case. The length stays the same.
func lower(s string) string {
	out := []byte(s)
	for i, b := range out {
		if b >= 'A' && b <= 'Z' {
			out[i] = b + 'a' - 'A'
		}
	}
	return string(out)
}
