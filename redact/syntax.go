package redact

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
	"unsafe"
)

// str reads a string and returns its text, which is valid until the next call.
func (w *walk) str() (string, error) {
	if !w.take('"') {
		return "", w.wrong("a string")
	}
	for from, k := w.at, w.at; k < len(w.in); k++ {
		switch b := w.in[k]; {
		case b == '"':
			w.at = k + 1
			return w.in[from:k], nil
		case b == '\\':
			return w.unescape(from, k)
		case b < ' ':
			w.at = k
			return "", w.wrong("no control character in a string")
		}
	}
	w.at = len(w.in)
	return "", w.wrong("the end of a string")
}

// unescape reads the rest of the string that begins at from and has its first escape at k.
func (w *walk) unescape(from, k int) (string, error) {
	buf := append(w.s.buf[:0], w.in[from:k]...)
	for k < len(w.in) {
		b := w.in[k]
		switch {
		case b == '"':
			w.at, w.s.buf = k+1, buf
			// buf is not written to before the text is done with: the next str comes after that.
			return unsafe.String(unsafe.SliceData(buf), len(buf)), nil
		case b < ' ':
			w.at = k
			return "", w.wrong("no control character in a string")
		case b != '\\':
			buf = append(buf, b)
			k++
			continue
		}
		r, n := escaped(w.in[k:])
		if n == 0 {
			w.at = k
			return "", w.wrong("a known escape")
		}
		buf = utf8.AppendRune(buf, r)
		k += n
	}
	w.at = len(w.in)
	return "", w.wrong("the end of a string")
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
func (w *walk) digits() error {
	run := func() bool {
		from := w.at
		for at(w.in, w.at, digitChar) {
			w.at++
		}
		return w.at > from
	}
	w.take('-')
	if !w.take('0') && !run() {
		return w.wrong("a digit")
	}
	if w.take('.') && !run() {
		return w.wrong("a digit behind the point")
	}
	if w.take('e') || w.take('E') {
		if !w.take('+') {
			w.take('-')
		}
		if !run() {
			return w.wrong("a digit in the exponent")
		}
	}
	return nil
}

func (w *walk) has(b byte) bool { return w.at < len(w.in) && w.in[w.at] == b }

func (w *walk) take(b byte) bool {
	if w.has(b) {
		w.at++
		return true
	}
	return false
}

func (w *walk) blanks() {
	for w.at < len(w.in) {
		switch w.in[w.at] {
		case ' ', '\t', '\n', '\r':
			w.at++
		default:
			return
		}
	}
}

func (w *walk) wrong(want string) error {
	return fmt.Errorf("%w: want %s at byte %d", errSyntax, want, w.at)
}
