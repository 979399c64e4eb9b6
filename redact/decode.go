package redact

import (
	"strings"
	"unicode/utf8"
)

const (
	maxLayers  = 3  // nested encodings that are decoded
	maxDecoded = 32 // bytes looked at in other forms for each byte of a text; more is withheld
	minRun     = 12 // characters of a run that are worth a look: nine bytes in base64
	minHex     = 18 // digits: nine bytes
	minDecoded = 6  // bytes of text in what a run decodes to
	minLine    = 40 // characters of a line of base64 that continues in the next

	minBinaryEmail = 12 // bytes of an address of mail in a text that is less than half of what a run decodes to
)

// escapeDetector notes that a text has escapes, so that finding them takes no pass of its own.
var escapeDetector = detector{
	name:    "escape",
	anchors: []anchor{{"%", hexes, hexes}, {"\\", "uUx", hexes + "{"}, {"\\", "0123", "01234567"}, {"\\", "\"\\/bfnrt", ""}, {"&", "#", digits + "xX"}},
	find:    func(p *pass, _ int) { p.escapes = true },
	ahead:   3,
}

// controlDetector notes that a text has control characters, which are then removed like invisible
// characters.
var controlDetector = detector{
	name:    "control",
	anchors: []anchor{{controls, "", ""}},
	find:    func(p *pass, _ int) { p.controls = true },
	ahead:   1,
}

// searchEscapes searches the text with percent-encoding, backslash escapes and numeric character
// references decoded.
func (r *Redactor) searchEscapes(s *scan, layer int) {
	t, v := s.text, &s.view
	v.reset()
	for i := 0; i < len(t); i++ {
		if t[i] != '%' && t[i] != '\\' && t[i] != '&' {
			continue
		}
		c, n, octet := unescape(t[i:])
		if n == 0 {
			continue
		}
		v.put(t, i, i+n)
		if octet {
			v.text = append(v.text, byte(c))
		} else {
			v.text = utf8.AppendRune(v.text, c)
		}
		i += n - 1
	}
	if s.arriving && v.read == 0 {
		return
	}
	v.keep(t, len(t))
	r.searchView(s, layer+1, given)
}

// An escapeForm is one way to write a byte or a character: an opening, digits and a closing.
type escapeForm struct {
	open        string
	least, most int // digits
	base        int
	closing     string
	octet       bool // for a byte rather than for a character
}

// escapeForms are tried in this order.
var escapeForms = [...]escapeForm{
	{"%", 2, 2, 16, "", true},
	{"&#x", 1, 6, 16, ";", false}, {"&#X", 1, 6, 16, ";", false}, {"&#", 1, 7, 10, ";", false},
	{`\u{`, 1, 6, 16, "}", false}, {`\x{`, 1, 6, 16, "}", false}, {`\U`, 8, 8, 16, "", false},
	{`\x`, 2, 2, 16, "", true}, {`\`, 3, 3, 8, "", true},
}

// unescape decodes the escape at the beginning of t, and returns its length, 0 for none, and
// whether it represents a byte rather than a character.
func unescape(t string) (c rune, n int, octet bool) {
	for _, f := range escapeForms {
		if c, n = f.decode(t); n > 0 {
			return c, n, f.octet
		}
	}
	if t[0] == '\\' {
		c, n = escaped(t)
	}
	return c, n, false
}

// decode decodes an escape of this form at the beginning of t and returns its length, 0 for none.
func (f *escapeForm) decode(t string) (c rune, n int) {
	if !strings.HasPrefix(t, f.open) {
		return 0, 0
	}
	from := len(f.open)
	i := from
	for i < min(len(t), from+f.most) && is(t[i], hexChar) && int(nibbles[t[i]]) < f.base {
		c = c*rune(f.base) + rune(nibbles[t[i]])
		i++
	}
	if i-from < f.least || !has(t, i, f.closing) || c > utf8.MaxRune || f.octet && c > 0xff {
		return 0, 0
	}
	return c, i + len(f.closing)
}

// searchRuns searches runs of base64 and hexadecimal. A run of at least minRun bytes has one at a
// multiple of minRun.
func (r *Redactor) searchRuns(s *scan, layer int) {
	t, floor := s.text, s.start
	for p := floor + minRun - 1; p < len(t); p += minRun {
		if !is(t[p], runChar) {
			continue
		}
		s.read = 0
		from, to := s.runStart(p, runChar, floor), s.runEnd(p+1, runChar, len(t))
		if to-from >= minRun {
			hits := len(s.hits)
			to = r.searchRun(s, from, to, layer)
			if s.arriving && !s.complete(from, to, hits) {
				return
			}
		}
		p, floor = to, to
	}
}

// searchRun decides on the run t[from:to] and returns where it ends, with further lines.
func (r *Redactor) searchRun(s *scan, from, to, layer int) int {
	run := s.text[from:to]
	if to-from >= minLine {
		run, to = s.lined(from, to)
	}
	s.work += len(run)
	base64, hex := promising(run)
	if !base64 && !hex {
		return to
	}
	end := to
	for end < to+2 && has(s.text, end, "=") {
		end++
	}
	var revealed Kind
	for phase := range 6 {
		switch {
		case phase < 4 && base64:
			s.raw = appendBase64(s.raw[:0], run[phase:])
		case phase >= 4 && hex:
			s.raw = appendHex(s.raw[:0], run, phase-4)
		default:
			continue
		}
		kind, isRevealed := r.searchTexts(s, layer)
		if kind != "" && !isRevealed {
			s.hit(kind, from, end)
			return end
		}
		if kind != "" {
			revealed = kind
		}
	}
	if revealed != "" {
		s.hit(revealed, from, end)
	}
	return end
}

// lined returns the run at from joined with the lines that continue it, and where the last one
// ends.
func (s *scan) lined(from, to int) (run string, end int) {
	t := s.text
	run, end = t[from:to], to
	for line := to - from; line >= minLine; {
		next := end
		if has(t, next, "\r") {
			next++
		}
		if !has(t, next, "\n") {
			break
		}
		next = s.runEnd(next+1, blankChar, next+17)
		stop := s.runEnd(next, runChar, len(t))
		if line = stop - next; line == 0 {
			break
		}
		if end == to {
			s.lines64 = append(s.lines64[:0], run...)
		}
		s.lines64, end = append(s.lines64, t[next:stop]...), stop
	}
	if end > to {
		run = text(s.lines64)
	}
	return run, end
}

// searchTexts searches each text in s.raw, and returns the kind of the most specific
// span to redact, or else of a span that is revealed. A short address of mail between bytes that
// are no text is there by chance: images have such.
func (r *Redactor) searchTexts(s *scan, layer int) (kind Kind, isRevealed bool) {
	for raw := s.raw; len(raw) > 0; {
		n := textLen(raw)
		if n >= minDecoded {
			d := r.searchPart(s, text(raw[:n]), layer+1, given)
			revealed := d.splitRevealed()
			for _, h := range d.hits {
				if h.Kind == Email && h.End-h.Start < minBinaryEmail && n < len(s.raw)/2 {
					continue
				}
				if kind == "" || isRevealed || h.Kind.rank() > kind.rank() {
					kind, isRevealed = h.Kind, false
				}
			}
			if len(d.hits) == 0 && kind == "" && len(revealed) > 0 {
				kind, isRevealed = revealed[0].Kind, true
			}
		}
		raw = raw[min(n+1, len(raw)):]
	}
	return kind, isRevealed
}

// textLen returns how many bytes at the beginning of raw are text: UTF-8 without control characters
// other than line ends and tabs.
func textLen(raw []byte) int {
	i := 0
	for i < len(raw) {
		switch b := raw[i]; {
		case b >= utf8.RuneSelf:
			c, n := utf8.DecodeRune(raw[i:])
			if c == utf8.RuneError {
				return i
			}
			i += n - 1
		case b < ' ' && b != '\n' && b != '\r' && b != '\t' || b == 0x7f:
			return i
		}
		i++
	}
	return i
}

// promising reports whether run may be text in base64, because two groups of four characters in a
// row decode to printable ASCII, or in hexadecimal, because of its length.
func promising(run string) (base64, hex bool) {
	var groups [4]int
	digits := 0
	for i := range len(run) {
		if is(run[i], hexChar) {
			digits++
			hex = hex || digits >= minHex
		} else {
			digits = 0
		}
		if i+3 < len(run) && quads[run[i]]&(quads[run[i+1]]>>1)&(quads[run[i+2]]>>2)&1 != 0 {
			groups[i&3]++
			base64 = base64 || groups[i&3] >= 2
		} else {
			groups[i&3] = 0
		}
	}
	return base64, hex
}

const standard64 = uppers + lowers + digits + "+/"

// values maps characters of base64 and base64url to their values; nibbles does the same for
// hexadecimal digits.
var values, nibbles = func() (v, n [256]byte) {
	for i := range len(standard64) {
		v[standard64[i]] = byte(i)
	}
	v['-'], v['_'] = v['+'], v['/']
	for i := range len(digits) {
		n[digits[i]] = byte(i)
	}
	for i := range 6 {
		n['a'+i], n['A'+i] = byte(10+i), byte(10+i)
	}
	return v, n
}()

// quads has three bits for each character: the positions that it may have in a group that decodes
// to three bytes of printable ASCII.
var quads = func() (t [256]byte) {
	for _, b := range []byte(standard64 + "-_") {
		v := values[b]
		if v >= 8 && v < 32 || v == 2 || v == 3 { // 0x20 to 0x7f, or a line end or tab
			t[b] |= 1
		}
		if v&8 == 0 {
			t[b] |= 2
		}
		if v&2 == 0 {
			t[b] |= 4
		}
	}
	return t
}()

// appendBase64 decodes run, whose last group may lack characters.
func appendBase64(out []byte, run string) []byte {
	for ; len(run) >= 4; run = run[4:] {
		a, b, c, d := values[run[0]], values[run[1]], values[run[2]], values[run[3]]
		out = append(out, a<<2|b>>4, b<<4|c>>2, c<<6|d)
	}
	if len(run) >= 2 {
		out = append(out, values[run[0]]<<2|values[run[1]]>>4)
	}
	if len(run) == 3 {
		out = append(out, values[run[1]]<<4|values[run[2]]>>2)
	}
	return out
}

// appendHex decodes the stretches of minHex digits or more in run, each from its digit skip on. A
// zero byte separates them.
func appendHex(out []byte, run string, skip int) []byte {
	for i := 0; i < len(run); {
		to := i
		for to < len(run) && is(run[to], hexChar) {
			to++
		}
		if to-i >= minHex {
			for k := i + skip; k+1 < to; k += 2 {
				out = append(out, nibbles[run[k]]<<4|nibbles[run[k+1]])
			}
			out = append(out, 0)
		}
		i = to + 1
	}
	return out
}

// searchTags searches text written in tag characters, the invisible copies of ASCII.
func (r *Redactor) searchTags(s *scan, layer int) {
	const first, last = 0xe0020, 0xe007e
	t, from := s.text, s.start
	s.raw = s.raw[:0]
	for i := from; i <= len(t); {
		c, n := utf8.DecodeRuneInString(t[i:])
		switch {
		case c >= first && c <= last:
			if len(s.raw) == 0 {
				from = i
			}
			s.raw = append(s.raw, byte(c-first+' '))
		case len(s.raw) > 0:
			hits := len(s.hits)
			if kind, _ := r.searchTexts(s, layer); kind != "" {
				s.hit(kind, from, i)
			}
			if s.read = i; s.arriving && !s.complete(from, i, hits) {
				return
			}
			s.raw = s.raw[:0]
		}
		i += max(n, 1)
	}
}
