package redact

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// A jsonReader reads the tokens of one JSON value.
type jsonReader struct {
	in  string
	at  int
	buf []byte // unescaped string
}

// str reads a string and returns its text, which is valid until the next call.
func (r *jsonReader) str() (string, error) {
	from, escapes := r.at, false
	if !r.take('"') {
		return "", r.wrong("a string")
	}
	for k := r.at; k < len(r.in); k++ {
		switch b := r.in[k]; {
		case b == '"':
			r.at = k + 1
			if !escapes {
				return r.in[from+1 : k], nil
			}
			return r.unescape(from)
		case b == '\\':
			escapes = true
			k++
		case b < ' ':
			r.at = k
			return "", r.wrong("no control character in a string")
		}
	}
	r.at = len(r.in)
	return "", r.wrong("the end of a string")
}

// unescape returns the text of the string that begins at from and ends before r.at.
func (r *jsonReader) unescape(from int) (string, error) {
	var err error
	if r.buf, err = jsontext.AppendUnquote(r.buf[:0], r.in[from:r.at]); err != nil {
		r.at = from
		return "", r.wrong("known escapes in the string")
	}
	return text(r.buf), nil // valid until the next call of str writes to the buffer
}

// escaped decodes the escape at the beginning of in, and returns its length, 0 for none.
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

func (r *jsonReader) skipSpaces() {
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
