package redact

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// A jsonReader reads the tokens of one JSON value.
type jsonReader struct {
	in  string
	at  int
	buf []byte // unescaped string
}

// str reads a string and returns its text, which is valid until the next call.
func (r *jsonReader) str() (string, error) {
	if !r.take('"') {
		return "", r.wrong("a string")
	}
	for from, k := r.at, r.at; k < len(r.in); k++ {
		switch b := r.in[k]; {
		case b == '"':
			r.at = k + 1
			return r.in[from:k], nil
		case b == '\\':
			return r.unescape(from, k)
		case b < ' ':
			r.at = k
			return "", r.wrong("no control character in a string")
		}
	}
	r.at = len(r.in)
	return "", r.wrong("the end of a string")
}

// unescape reads the rest of the string that begins at from and has its first escape at k.
func (r *jsonReader) unescape(from, k int) (string, error) {
	buf := append(r.buf[:0], r.in[from:k]...)
	for k < len(r.in) {
		b := r.in[k]
		switch {
		case b == '"':
			r.at, r.buf = k+1, buf
			// buf is not written to before the text is done with: the next str comes after that.
			return unsafe.String(unsafe.SliceData(buf), len(buf)), nil
		case b < ' ':
			r.at = k
			return "", r.wrong("no control character in a string")
		case b != '\\':
			buf = append(buf, b)
			k++
			continue
		}
		c, n := escaped(r.in[k:])
		if n == 0 {
			r.at = k
			return "", r.wrong("a known escape")
		}
		buf = utf8.AppendRune(buf, c)
		k += n
	}
	r.at = len(r.in)
	return "", r.wrong("the end of a string")
}

// escaped decodes the escape at the beginning of in, and returns how long it is: 0 for none.
func escaped(in string) (r rune, n int) {
	if len(in) < 2 {
		return 0, 0
	}
	if i := strings.IndexByte(`"\/bfnrt`, in[1]); i >= 0 {
		return rune("\"\\/\b\f\n\r\t"[i]), 2
	}
	high, ok := unit(in)
	switch {
	case !ok, high >= 0xdc00 && high < 0xe000:
		return 0, 0
	case high < 0xd800 || high >= 0xe000:
		return high, 6
	}
	low, ok := unit(in[6:])
	if !ok || low < 0xdc00 || low >= 0xe000 {
		return 0, 0
	}
	return (high-0xd800)<<10 | (low - 0xdc00) + 0x10000, 12
}

// unit decodes \uXXXX.
func unit(in string) (rune, bool) {
	if len(in) < 6 || in[0] != '\\' || in[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(in[2:6], 16, 16)
	return rune(n), err == nil && is(in[2], hexChar)
}

// digits reads a number.
func (r *jsonReader) digits() error {
	run := func() bool {
		from := r.at
		for at(r.in, r.at, digitChar) {
			r.at++
		}
		return r.at > from
	}
	r.take('-')
	if !r.take('0') && !run() {
		return r.wrong("a digit")
	}
	if r.take('.') && !run() {
		return r.wrong("a digit behind the point")
	}
	if r.take('e') || r.take('E') {
		if !r.take('+') {
			r.take('-')
		}
		if !run() {
			return r.wrong("a digit in the exponent")
		}
	}
	return nil
}

func (r *jsonReader) has(b byte) bool { return r.at < len(r.in) && r.in[r.at] == b }

func (r *jsonReader) take(b byte) bool {
	if r.has(b) {
		r.at++
		return true
	}
	return false
}

func (r *jsonReader) blanks() {
	for r.at < len(r.in) {
		switch r.in[r.at] {
		case ' ', '\t', '\n', '\r':
			r.at++
		default:
			return
		}
	}
}

func (r *jsonReader) wrong(want string) error {
	return fmt.Errorf("%w: want %s at byte %d", errSyntax, want, r.at)
}
