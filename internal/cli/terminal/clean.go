package terminal

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/runteam/runteam/internal/naming"
)

// Clean returns a text that a terminal can show safely: text of agents cannot move the cursor, or hide
// or reorder what a person reads. Control, bidi and other invisible characters become escapes such as
// \x1b and \u202e. Line feeds, tabs, and the joiners that scripts and emoji need stay.
func Clean(text string) string { return escape(text, "\n\t") }

// CleanLine is [Clean] for a text that must stay on one line.
func CleanLine(text string) string { return escape(text, "") }

func escape(text, keep string) string {
	first := strings.IndexFunc(text, func(r rune) bool { return r == utf8.RuneError || naming.Hidden(r) && !strings.ContainsRune(keep, r) })
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
		case strings.ContainsRune(keep, r) || !naming.Hidden(r):
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

// A JSONWriter writes a JSON document to W with the characters that [Clean] escapes as JSON escapes, so
// that the document is equivalent and a terminal can show it safely. The bytes of one rune may arrive
// in two writes.
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

// plainPrefix counts the leading bytes that need no escape: ASCII except DEL.
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
	case !naming.Hidden(r) && (r != utf8.RuneError || len(raw) > 1):
		c.buf.Write(raw)
	case r > 0xffff: // in the two halves of UTF-16
		r -= 0x10000
		fmt.Fprintf(&c.buf, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
	default:
		fmt.Fprintf(&c.buf, `\u%04x`, r)
	}
}
