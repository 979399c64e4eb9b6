package redact

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A form is the degree to which a text is normalized.
type form uint8

const (
	given  form = iota // unchanged
	folded             // invisible and control characters left out; dashes, spaces, digits and full-width forms as in ASCII
	normal             // folded, and in NFKC
)

// searchForms leaves in s.hits the spans of text: unchanged, normalized, and with encodings
// decoded. layer counts the encodings that were already decoded.
//
// Encodings are decoded in the folded text. Folding does not change ASCII, which all encodings
// consist of, while NFKC may join the last letter of a run to a mark after it.
func (r *Redactor) searchForms(s *scan, text string, layer int, f form) {
	if s.arriving {
		r.passArriving(s, text)
	} else {
		r.pass(s, text)
	}
	r.matchPatterns(s)
	if s.location.keyKinds != 0 {
		r.applyLeafRules(s)
	}
	if f == given && (s.controls || !ascii(text)) {
		tagged := false
		differs := s.fold(&tagged)
		if differs {
			r.searchView(s, layer, folded)
		}
		if tagged && layer < maxLayers {
			r.searchTags(s, layer)
		}
		if differs {
			return // the folded text was also searched in NFKC and with encodings decoded
		}
		f = folded
	}
	if f == folded && s.compose() {
		r.searchView(s, layer, normal)
	}
	if f != normal && layer < maxLayers {
		if s.escapes {
			r.searchEscapes(s, layer)
		}
		r.searchRuns(s, layer)
	}
}

// searchView adds the spans of the view of s.
func (r *Redactor) searchView(s *scan, layer int, f form) {
	d := s.below()
	if s.arriving {
		d.frontier = s.frontier.in(&s.view)
	}
	for _, h := range r.searchPart(s, s.view.shown(), layer, f).hits {
		from, to := s.view.origin(h.Start, h.End)
		s.hit(h.Kind, from, to)
	}
	if s.arriving {
		s.frontier.meet(&d.frontier, &s.view, len(s.text))
		d.frontier = frontier{}
	}
}

// below returns the scan for other forms of the text of s.
func (s *scan) below() *scan {
	if s.deeper == nil {
		s.deeper = newScan(s.ctx)
	}
	return s.deeper
}

// searchPart searches another form of a part of the text of s, and returns the scan of it.
func (r *Redactor) searchPart(s *scan, text string, layer int, f form) *scan {
	d := s.below()
	d.ctx, d.location, d.spare = s.ctx, s.location, s.spare-len(text)
	if d.spare >= 0 && s.ctx.Err() == nil {
		r.searchForms(d, text, layer, f)
	} else {
		d.reset("")
	}
	s.spare = d.spare
	s.work += d.work + len(text)
	return d
}

// fold leaves the folded text in the view of s, and reports whether it differs. It sets tagged if
// the text has tag characters. Combining marks on a digit or a separator are removed, since they
// form no character with it.
func (s *scan) fold(tagged *bool) bool {
	t, v := s.text, &s.view
	v.reset()
	folds := folds()
	bare := false // the character before is a digit or punctuation of ASCII, with or without marks
	for i := 0; i < len(t); {
		b := t[i]
		if b < utf8.RuneSelf {
			if i++; !s.controls || !is(b, controlChar) {
				bare = !is(b, letterChar)
				continue
			}
			v.put(t, i-1, i)
			continue
		}
		if b >= 0xc0 && i+1 < len(t) && !folds[b-0xc0][t[i+1]&0x3f] {
			bare = false
			i += 2
			for i < len(t) && !utf8.RuneStart(t[i]) {
				i++
			}
			continue
		}
		c, n := utf8.DecodeRuneInString(t[i:])
		to, ok := folding(c)
		if !ok && bare && unicode.In(c, unicode.Mn, unicode.Me) {
			ok = true
		} else if !ok || to != 0 {
			bare = ok && !is(to, letterChar)
		}
		if ok {
			*tagged = *tagged || c >= 0xe0020
			v.put(t, i, i+n)
			if to != 0 {
				v.text = append(v.text, to)
			}
		}
		i += n
	}
	if v.read == 0 {
		return false
	}
	v.keep(t, len(t))
	v.end()
	return len(v.pieces) > 0
}

// plain returns a short text as readers see it and redaction searches it: without invisible and
// control characters, and in NFKC. It is text itself if that is ASCII. The result may be valid only
// until the next call.
func (s *scan) plain(text string) string {
	if !strings.ContainsFunc(text, func(c rune) bool { return c >= utf8.RuneSelf || is(byte(c), controlChar) }) {
		return text
	}
	d, tagged := s.below(), false
	d.reset(text)
	d.controls = true
	if d.fold(&tagged) || d.view.read > 0 { // the result is empty if all characters were invisible
		text = d.view.shown()
	}
	return norm.NFKC.String(text)
}

// folds has for the first two bytes of a character whether folding may change it.
var folds = sync.OnceValue(func() *[64][64]bool {
	t := new([64][64]bool)
	add := func(c rune) {
		if _, ok := folding(c); ok || unicode.In(c, unicode.Mn, unicode.Me) {
			var b [utf8.UTFMax]byte
			utf8.EncodeRune(b[:], c)
			t[b[0]-0xc0][b[1]&0x3f] = true
		}
	}
	for c := rune(utf8.RuneSelf); c < 0x20000; c++ {
		add(c)
	}
	for c := rune(0xe0000); c < 0xe1000; c++ {
		add(c)
	}
	return t
})

// folding returns the byte of ASCII that takes the place of c, 0 for none, and whether there is a
// change at all.
func folding(c rune) (to byte, ok bool) {
	switch {
	case c >= 0x2010 && c <= 0x2013, c == 0x2212: // hyphens, figure and en dash, minus; an em dash separates sentences
		return '-', true
	case c >= 0xff01 && c <= 0xff5e:
		return byte(c - 0xff01 + '!'), true
	case c == 0xa0, c == 0x202f, c == 0x2007, c == 0x3000:
		return ' ', true
	case c >= 0x2014 && c < 0x2028, c >= 0x2030 && c < 0x2060:
		return 0, false
	case c < 0xa0 && c != 0x85: // controls
		return 0, true
	case unicode.In(c, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point):
		return 0, true
	case c < 0x1d7ce && unicode.Is(unicode.Nd, c): // ten in a row; those of mathematics have forms in NFKC
		to = '0'
		for unicode.Is(unicode.Nd, c-1) && to < '9' {
			c--
			to++
		}
		return to, true
	}
	return 0, false
}

// compose leaves the text in NFKC in the view of s, and reports whether it differs. Marks in a
// non-canonical order stay where they are.
func (s *scan) compose() bool {
	t, v, unstable := s.text, &s.view, unstable()
	v.reset()
	for i := 0; i < len(t); {
		if t[i] < utf8.RuneSelf {
			i++
			continue
		}
		c, n := utf8.DecodeRuneInString(t[i:])
		if !unstable.has(c) {
			i += n
			continue
		}
		from := segment(t, i, v.read)
		n = norm.NFKC.NextBoundaryInString(t[from:], true)
		v.put(t, from, from+n)
		for s.norm.InitString(norm.NFKC, t[from:from+n]); !s.norm.Done(); {
			v.text = append(v.text, s.norm.Next()...)
		}
		i = max(from+n, i+1)
	}
	if v.read == 0 {
		return false
	}
	v.keep(t, len(t))
	v.end()
	return len(v.pieces) > 0 && v.shown() != t
}

// segment returns the start of the characters that the one at i may combine with, at floor or
// later.
func segment(t string, i, floor int) int {
	for i > floor && t[i] >= utf8.RuneSelf && !norm.NFKC.PropertiesString(t[i:]).BoundaryBefore() {
		_, n := utf8.DecodeLastRuneInString(t[:i])
		i = max(i-n, floor)
	}
	return i
}

// A runeSet holds characters of the first three planes.
type runeSet [0x30000 / 64]uint64

func (s *runeSet) add(c rune)      { s[c>>6] |= 1 << (c & 63) }
func (s *runeSet) has(c rune) bool { return c < 0x30000 && s[c>>6]&(1<<(c&63)) != 0 }

// unstable returns the characters that NFKC may change: by themselves, or because they combine with
// what precedes them. A test checks that there are none outside of the ranges.
var unstable = sync.OnceValue(func() *runeSet {
	var set runeSet
	for _, r := range [...][2]rune{{0x80, 0x33ff}, {0xa640, 0xabff}, {0xf900, 0xffff}, {0x10700, 0x107ff}, {0x10d00, 0x11fff}, {0x16100, 0x16fff},
		{0x1cc00, 0x1ccff}, {0x1d100, 0x1d7ff}, {0x1e000, 0x1e0ff}, {0x1ee00, 0x1eeff}, {0x1f100, 0x1f2ff}, {0x1fb00, 0x1fbff}, {0x2f800, 0x2fa1f}} {
		for c := r[0]; c <= r[1]; c++ {
			if isUnstable(c) {
				set.add(c)
			}
		}
	}
	return &set
})

func isUnstable(c rune) bool {
	var b [utf8.UTFMax]byte
	n := utf8.EncodeRune(b[:], c)
	return norm.NFKC.QuickSpan(b[:n]) != n
}

// ascii reports whether all bytes of a text are ASCII.
func ascii(t string) bool {
	for len(t) >= 8 {
		if (t[0]|t[1]|t[2]|t[3]|t[4]|t[5]|t[6]|t[7])&utf8.RuneSelf != 0 {
			return false
		}
		t = t[8:]
	}
	for i := range len(t) {
		if t[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
