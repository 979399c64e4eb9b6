package redact

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A frontier says how far the search of a text that still arrives has decided. The text of the
// search is the end of what has arrived, or another form of it; more will follow it, in any form.
//
// Detectors are scanners: they stop at anchors, in the order of the text. Their decision on an
// anchor is final if it does not depend on where the text ends, so the pass stops at the first
// anchor whose decision does. It is open, and so is each later one. A span of an open anchor begins
// at or after it, or in what leads up to it: see [pass.leadStart].
type frontier struct {
	arriving bool
	whole    bool     // nothing precedes the text
	start    int      // anchors before have been decided; their spans end before
	open     int      // spans that begin before are final
	resume   int      // anchors from here on are open
	ties     []extent // parts that no later search may begin in, because the search of their beginning decided on the rest
	shallow  bool     // too little precedes start to decide
}

// lookBehind is how many bytes before an anchor a decision may depend on. [commandBefore] and
// [looseStart] read furthest.
const lookBehind = 768

// farLook is how many bytes detectors may look ahead unless they say so themselves.
const farLook = 16

// in returns the frontier for the search of a view.
func (f *frontier) in(v *view) frontier {
	return frontier{arriving: true, whole: f.whole, start: v.offset(f.start)}
}

// meet adds the result of the search of a view of a text of n bytes. What the view represents as
// one stays in one.
func (f *frontier) meet(d *frontier, v *view, n int) {
	f.open = min(f.open, v.source(d.open, n))
	f.resume = min(f.resume, v.source(d.resume, n))
	f.shallow = f.shallow || d.shallow
	for _, t := range d.ties {
		from, to := v.origin(t.from, t.to)
		f.ties = append(f.ties, extent{from, to})
	}
	for _, p := range v.pieces {
		if p.to != 0 && int(p.from) >= f.start {
			f.ties = append(f.ties, extent{int(p.from), int(p.to)})
		}
	}
}

// offset returns the offset in v of what comes from offset i of the text or later.
func (v *view) offset(i int) int {
	for k, p := range v.pieces {
		switch {
		case int(p.from) >= i:
			return int(p.at)
		case p.to != 0:
		case k+1 == len(v.pieces) || int(p.from)+int(v.pieces[k+1].at)-int(p.at) > i:
			return min(int(p.at)+i-int(p.from), len(v.text))
		}
	}
	return len(v.text)
}

// source returns where in the text, of n bytes, the byte at offset i of v comes from.
func (v *view) source(i, n int) int {
	if i >= len(v.text) {
		return n
	}
	from, _ := v.origin(i, i+1)
	return from
}

// passArriving is [Redactor.pass] for a text that still arrives.
func (r *Redactor) passArriving(s *scan, text string) {
	s.reset(text)
	s.escapes, s.controls = disguises(text)
	s.open, s.resume, s.ties = len(text), len(text), s.ties[:0]
	s.shallow = s.start < lookBehind && !s.whole
	for i := s.start; i < len(text); {
		m := r.possible(text, i)
		if m == 0 {
			i++
			continue
		}
		next, final := r.visitArriving(s, i, m)
		if !final {
			s.resume = i
			s.open = i
			if r.prefilter.after&m == m {
				s.open++
			}
			_, n := utf8.DecodeRuneInString(text[i:])
			s.open = min(s.open, s.leadStart(i+n, s.start))
			return
		}
		i = next
	}
	s.open = s.leadStart(len(text), s.start)
}

// possible returns the detectors that may stop at i, whatever follows the text.
func (r *Redactor) possible(text string, i int) uint64 {
	p := &r.prefilter
	m := p.first[text[i]]
	if i+1 < len(text) {
		m &= p.second[text[i+1]]
	}
	if i+2 < len(text) {
		m &= p.third[text[i+2]]
	}
	return m
}

// visitArriving lets the detectors in m decide on the anchor at i. If the decision is not final,
// there is none.
func (r *Redactor) visitArriving(s *scan, i int, m uint64) (next int, final bool) {
	p := &s.pass
	hits, values, loose, manifest := len(p.hits), p.values.end, p.numbers.loose, p.tokens.manifest
	p.next = i + 1
	for bit, d := range r.detectors {
		if m&(1<<bit) == 0 {
			continue
		}
		final = i+2 < len(p.text)
		if p.read = 0; final {
			d.find(p, i)
		}
		ahead := d.ahead
		if ahead == 0 {
			ahead = farLook
		}
		if !final || max(i, p.read)+ahead > len(p.text) {
			p.hits = p.hits[:hits]
			return i, false
		}
	}
	tie := extent{i, p.next}
	if p.values.end > values {
		tie.to = max(tie.to, p.values.end)
	}
	if p.numbers.loose > loose {
		tie.to = max(tie.to, p.numbers.loose)
	}
	if p.tokens.manifest > manifest {
		tie.to = max(tie.to, p.tokens.manifest)
	}
	for _, h := range p.hits[hits:] {
		tie.from, tie.to = min(tie.from, h.Start), max(tie.to, h.End)
	}
	p.hits = append(p.hits[:hits], since(p.hits[hits:], s.start)...)
	if tie.to > i+1 || tie.from < i {
		s.ties = append(s.ties, extent{max(tie.from, s.start), tie.to})
	}
	return p.next, true
}

// since returns the spans that begin at start or later. A manifest also has values that were found
// before.
func since(spans []span, start int) []span {
	return slices.DeleteFunc(spans, func(s span) bool { return s.Start < start })
}

// complete reports whether the run of encoded text from from to to, whose spans are from hits on,
// stays as it is.
func (s *scan) complete(from, to, hits int) bool {
	if max(s.read, to)+len("==\r") <= len(s.text) {
		s.ties = append(s.ties, extent{from, max(to, from+1)})
		return true
	}
	s.hits = s.hits[:hits]
	s.open, s.resume = min(s.open, from), min(s.resume, from)
	return false
}

// leadStart returns where a span of an anchor at i or later may begin: at i or later, or in the
// word that leads up to i (of an address, a token, a run of base64), in the number in groups, in
// the quoted name of an address, or in what an AWS key ID or the kind of a Kubernetes manifest
// makes a secret. It does not look back beyond floor.
func (p *pass) leadStart(i, floor int) int {
	return min(p.wordStart(i, floor), p.rowStart(i, floor), p.quoteStart(i, floor), p.awsStart(i, floor), p.manifestStart(i, floor))
}

// wordStart returns the start of the word that ends before i: anything but spaces, quotes and,
// outside of names in addresses, the characters at which an unquoted value ends.
func (p *pass) wordStart(i, floor int) int {
	for i > floor {
		if b := p.text[i-1]; b < utf8.RuneSelf {
			if is(b, whitespaceChar) || b == '"' || b == '`' {
				break
			}
			i--
			continue
		}
		r, n := utf8.DecodeLastRuneInString(p.text[:i])
		if endsValue(r) && !mailRune(r) {
			break
		}
		i -= n
	}
	return max(i, floor)
}

// rowStart returns the start of the number in groups whose last group ends before i; see
// [looseStart].
func (p *pass) rowStart(i, floor int) int {
	if !at(p.text, i-1, digitChar) {
		return i
	}
	k := p.runStart(i, digitChar, floor)
	if to := gapStart(p.text, k); to < k && at(p.text, to-1, digitChar) {
		if row := looseStart(p, i-1, gapAt(p.text, to).sort); row >= 0 {
			k = row
		}
	}
	for k > floor && strings.IndexByte("+(", p.text[k-1]) >= 0 {
		k--
	}
	return max(k, floor)
}

// quoteStart returns where the quotation mark is that may open the local part of an address, or i;
// see [quotedStart].
func (p *pass) quoteStart(i, floor int) int {
	const reach = 68
	from := i
	for k := i - 1; k >= max(floor, i-reach); k-- {
		switch b := p.text[k]; {
		case b == '"':
			closes := k+1 == i || k+2 == i && p.text[k+1] == '@'
			if !at(p.text, k-1, nameChar|quoteChar) && !has(p.text, k-1, `\`) && (k+1 == i || !is(p.text[k+1], whitespaceChar)) {
				from = k
			}
			if !closes {
				return from
			}
		case b < ' ' || strings.IndexByte(":,;{<", b) >= 0: // of another string
			return from
		}
	}
	return from
}

// awsStart returns where 40 characters begin that are a secret if an AWS key ID follows, or i; see
// [secretBeside].
func (p *pass) awsStart(i, floor int) int {
	const length, reach = 40, 256
	for k := max(floor, i-reach); k+length <= i; k++ {
		if !is(p.text[k], awsChar) || at(p.text, k-1, awsChar) {
			continue
		}
		end := p.runEnd(k, awsChar, i)
		if end-k == length && awsSecret(shapeOf(p.text[k:end])) {
			return k
		}
		k = end
	}
	return i
}

// manifestStart returns where the data of a Kubernetes manifest begins that is secret if its kind
// follows, or i; see [findManifest].
func (p *pass) manifestStart(i, floor int) int {
	from := max(floor, i-manifestReach-1)
	from = strings.LastIndexByte(p.text[:from], '\n') + 1
	data := i
	for k := from; k < i; {
		line := p.text[k:i]
		next := i
		if n := strings.IndexByte(line, '\n'); n >= 0 {
			line, next = line[:n], k+n+1
		}
		switch {
		case k > 0 && strings.HasPrefix(line, "---"):
			data = i
		case data == i && opensData(strings.TrimLeft(line, spaces)):
			data = max(k, floor)
		}
		k = next
	}
	return data
}

// seam returns i if a text can be cut there, and each other form of it where i is in that form, and
// an offset before it otherwise: no character combines with the one before, the one at i is not
// left out, and no escape reaches over i.
func seam(text string, i int) int {
	if c, _ := utf8.DecodeRuneInString(text[i:]); !standsAlone(c) {
		_, n := utf8.DecodeLastRuneInString(text[:i])
		return i - n
	}
	for k := i; k > 0; {
		c, n := utf8.DecodeLastRuneInString(text[:k])
		k -= n
		if c >= utf8.RuneSelf {
			to, ok := folding(c)
			if !ok && !unicode.In(c, unicode.Mn, unicode.Me) {
				break
			}
			if c = rune(to); c == 0 {
				continue
			}
		}
		switch b := byte(c); {
		case is(b, escapeChar):
			return k
		case !is(b, hexChar|controlChar) && strings.IndexByte("xXuU{}#;", b) < 0:
			return i
		}
	}
	return i
}

// standsAlone reports whether c is kept in each form of a text and begins a character there.
func standsAlone(c rune) bool {
	if c == utf8.RuneError {
		return false // perhaps the end of the text
	}
	if c < utf8.RuneSelf {
		return !is(byte(c), escapeChar|controlChar)
	}
	if _, folds := folding(c); folds || unicode.In(c, unicode.Mn, unicode.Me) {
		return false
	}
	return norm.NFKC.PropertiesString(string(c)).BoundaryBefore()
}
