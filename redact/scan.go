package redact

import (
	"context"
	"math/bits"
	"sync"
	"unsafe"

	"golang.org/x/text/unicode/norm"
)

// A detector finds the spans of one sort. The pass stops for it where one of its anchors is.
//
// A detector looks at a bounded number of bytes around an anchor and decides; only after a hit may
// it read on to the end of the span, where the pass then continues. That keeps the whole pass
// linear.
type detector struct {
	name    string
	anchors []anchor
	// find decides on the anchor at i and records spans with p.hit, or with p.consume if the pass
	// continues after them.
	find func(p *pass, i int)

	// What the search of a text that still arrives has to know of find; see [frontier] and, for
	// spans that begin before the anchor, [pass.leadStart].
	ahead int  // how many bytes it may look at from the anchor, or from what it noted with p.readTo; zero means farLook
	after bool // its spans begin after the first byte of the anchor

	// What keys can say of the values that this detector finds, and the rule for a leaf with such a
	// key; nil for none.
	kind  Kind
	named kindSet
	leaf  leafRule
}

// An anchor is three sets of bytes that must be next to each other. An empty set admits every byte.
type anchor [3]string

// prefilter has one bit for each detector, in three tables: the detectors that admit a byte in
// first, second and third place.
//
// At the end of a text, where fewer than three bytes are left, those stop whose anchors admit every
// byte in the places that are missing: open has them for one and for two bytes.
type prefilter struct {
	first, second, third [256]uint64
	open                 [3]uint64
	after                uint64 // the detectors whose spans begin after the first byte of the anchor
}

// build returns a redactor of detectors. There is room for 64.
func build(detectors ...detector) *Redactor {
	detectors = append(detectors, escapeDetector, controlDetector)
	var numbers []detector
	for _, d := range detectors {
		if d.kind == Card || d.kind == Phone || d.kind == SSN {
			numbers = append(numbers, d)
		}
	}
	if len(numbers) > 0 {
		detectors = append(detectors, looseDetector(numbers))
	}
	if len(detectors) > 64 {
		panic("redact: more detectors than bits")
	}
	r := &Redactor{detectors: detectors}
	for bit, d := range detectors {
		if d.after {
			r.prefilter.after |= 1 << bit
		}
		if d.leaf != nil {
			r.leaves = append(r.leaves, d)
		}
		for _, a := range d.anchors {
			mark(&r.prefilter.first, a[0], bit)
			mark(&r.prefilter.second, a[1], bit)
			mark(&r.prefilter.third, a[2], bit)
			if a[2] == "" {
				r.prefilter.open[2] |= 1 << bit
			}
			if a[1] == "" && a[2] == "" {
				r.prefilter.open[1] |= 1 << bit
			}
		}
	}
	return r
}

func mark(table *[256]uint64, set string, bit int) {
	for b := range table {
		if set == "" {
			table[b] |= 1 << bit
		}
	}
	for i := range len(set) {
		table[set[i]] |= 1 << bit
	}
}

// A scan is the search of one text in all its forms. Its buffers are reused by later searches.
type scan struct {
	ctx  context.Context // the search stops when it ends
	pass                 // of the detectors, over the text in one form

	found    []span // the spans of all rounds over one text, see settle
	revealed []span // spans that are in settled, see settle
	clean    string // the text with found replaced

	room   []span // for the revealed spans of one search
	spare  int    // bytes that may still be decoded
	deeper *scan  // searches what is decoded from the text

	view     view // another form of the text
	norm     norm.Iter
	frontier // how far the search has decided, for a text that still arrives

	raw     []byte // decoded run
	lines64 []byte // a run of several lines
}

var scans = sync.Pool{New: func() any { return new(scan) }}

func newScan(ctx context.Context) *scan {
	s := scans.Get().(*scan)
	s.ctx = ctx
	return s
}

// maxKept bounds the bytes of the buffers that one scan keeps for the next text.
const maxKept = 1 << 20

// free gives s back without its texts, unless it has grown large.
func (s *scan) free() {
	size := 0
	for d := s; d != nil; d = d.deeper {
		d.clean, d.ctx = "", nil
		for p := &d.pass; p != nil; p = p.numbers.rewritten {
			p.text, p.lastShape.text, p.location = "", "", location{}
		}
		size += cap(d.hits)*int(unsafe.Sizeof(span{})) + cap(d.view.pieces)*int(unsafe.Sizeof(piece{})) + cap(d.view.text) + cap(d.raw)
	}
	if size <= maxKept {
		scans.Put(s)
	}
}

// passBlock is how many bytes of a text a pass reads before it looks whether its context has ended.
const passBlock = 64 << 10

// pass leaves the hits of text in s.hits.
func (r *Redactor) pass(s *scan, text string) {
	s.reset(text)
	p := &r.prefilter
	i := 0
	for i+2 < len(text) {
		if i >= passBlock && s.ctx.Err() != nil {
			return
		}
		for block := min(i+passBlock, len(text)-2); i < block; i++ {
			if m := p.first[text[i]] & p.second[text[i+1]] & p.third[text[i+2]]; m != 0 {
				i = r.visit(&s.pass, i, m) - 1
			}
		}
	}
	for ; i < len(text); i++ {
		m := p.first[text[i]] & p.open[len(text)-i]
		if i+1 < len(text) {
			m &= p.second[text[i+1]]
		}
		if m != 0 {
			i = r.visit(&s.pass, i, m) - 1
		}
	}
}

// visit lets the detectors in m decide on the anchor at i, and returns where the pass
// continues.
func (r *Redactor) visit(p *pass, i int, m uint64) (next int) {
	for p.next = i + 1; m != 0; m &= m - 1 {
		r.detectors[bits.TrailingZeros64(m)].find(p, i)
	}
	return p.next
}
