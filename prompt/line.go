package prompt

import (
	"strings"
	"unicode"

	"github.com/runteam/runteam/internal/brief"
	"github.com/runteam/runteam/internal/naming"
)

// Texts that may be part of a line of the builder, such as messages and errors,
// and get a fence only if they are more than one clean line.

// lines adds a block for each piece that may be part of a line of the builder and
// is not one clean line.
func (f *fencing) lines(pieces []piece) {
	for i := range pieces {
		p := &pieces[i]
		switch {
		case p.silent() || p.Withheld(): // of a failure
		case p.inline(f.layout):
			f.inlined = append(f.inlined, p.text)
		default:
			f.blocks = append(f.blocks, p.block(p.text))
		}
	}
}

// inline reports whether a text may be part of a line of the builder: one
// line, without control or brief.Invisible characters, and no structure of the
// builder's; and nothing to say about it, for which only a fence has room.
func (p *piece) inline(l brief.Layout) bool {
	return marks(p.Decision(), 0) == "" && clean(p.text, l)
}

func clean(text string, l brief.Layout) bool {
	switch {
	case isPlain(text):
		if begins := strings.TrimLeft(text, " "); begins == "" || begins[0] != '#' && begins[0] != '[' {
			return true // it has one line, and each opener begins with one of these
		}
	case strings.ContainsFunc(text, func(r rune) bool {
		return naming.EndsLine(r) || brief.Invisible(r) || r == unicode.ReplacementChar
	}):
		return false
	}
	line, _ := brief.Find(text, l.Reserved())
	return line == 0
}

// isPlain reports whether a text has printable characters of ASCII only, as most have.
func isPlain(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] > '~' {
			return false
		}
	}
	return true
}

// said writes a text behind a colon: in the same line, or in a fence.
func (r *renderer) said(p *piece) {
	if p.inline(r.brief.Layout) {
		r.frame(" ")
		r.put(brief.PartPayload, p.source, p.text)
		return
	}
	r.fenced(p.source, p.text)
}
