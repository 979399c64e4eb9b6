package terminal

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clean returns a text as it may go to a terminal: what agents wrote cannot
// move the cursor, hide or reorder what a person reads. Control, bidi and
// other invisible characters become escapes such as \x1b and \u202e; line
// feeds and tabs stay, and so do the joiners that scripts and emoji need. A
// text that has none of them is returned as it is.
func Clean(text string) string { return escape(text, "\n\t") }

// CleanLine is clean for a text that has to stay on its line.
func CleanLine(text string) string { return escape(text, "") }

func escape(text, keep string) string {
	first := strings.IndexFunc(text, func(r rune) bool { return r == utf8.RuneError || Hidden(r) && !strings.ContainsRune(keep, r) })
	if first < 0 {
		return text
	}
	var b strings.Builder
	b.WriteString(text[:first])
	for i := first; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case strings.ContainsRune(keep, r) || !Hidden(r):
			b.WriteString(text[i : i+size])
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case r < utf8.RuneSelf:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
		i += size
	}
	return b.String()
}

// Hidden reports characters that a person does not see as themselves: control
// characters, line and paragraph separators, format characters (among them
// the bidi controls, the byte order mark and the tag characters), and what
// Unicode says to draw as nothing. The joiners ZWNJ and ZWJ, the selectors of
// text and emoji style, and signs that precede numbers are what they seem.
func Hidden(r rune) bool {
	switch {
	case r < 0x20 || r == 0x7f:
		return true
	case r < 0x7f:
		return false
	case r == 0x200c || r == 0x200d || r == 0xfe0e || r == 0xfe0f:
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector) &&
		!unicode.Is(unicode.Prepended_Concatenation_Mark, r)
}

// JSONWriter passes a JSON document on, with the same characters as clean
// written as JSON escapes: the document means the same, and cannot play tricks
// on a terminal. The bytes of one rune may arrive in two writes.
type JSONWriter struct {
	W    io.Writer
	rest []byte // the beginning of a rune
	buf  bytes.Buffer
}

// Write escapes p and passes it on.
func (c *JSONWriter) Write(p []byte) (int, error) {
	c.buf.Reset()
	data := p
	if len(c.rest) > 0 {
		data = append(c.rest, p...)
	}
	c.rest = nil
	for len(data) > 0 {
		if plain := plainPrefix(data); plain > 0 {
			c.buf.Write(data[:plain])
			data = data[plain:]
			continue
		}
		if !utf8.FullRune(data) {
			c.rest = bytes.Clone(data)
			break
		}
		r, size := utf8.DecodeRune(data)
		c.rune(r, data[:size])
		data = data[size:]
	}
	if _, err := c.W.Write(c.buf.Bytes()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// plainPrefix counts the leading bytes that stay as they are: ASCII but DEL.
func plainPrefix(data []byte) int {
	for i, c := range data {
		if c >= 0x7f {
			return i
		}
	}
	return len(data)
}

func (c *JSONWriter) rune(r rune, raw []byte) {
	switch {
	case !Hidden(r) && (r != utf8.RuneError || len(raw) > 1):
		c.buf.Write(raw)
	case r > 0xffff: // in the two halves of UTF-16
		r -= 0x10000
		fmt.Fprintf(&c.buf, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
	default:
		fmt.Fprintf(&c.buf, `\u%04x`, r)
	}
}
