package redact

import (
	"math"
	"slices"
	"sort"
	"unsafe"
)

// A view is another form of a text, which the detectors search too, with the offsets in the text
// that its parts come from.
type view struct {
	text   []byte
	pieces []piece
	read   int // the text before this offset is in the view
}

// A piece of a view begins at offset at and ends where the next one begins. It represents the text
// from offset from up to offset to as a whole or, where to is 0, shows the text from offset from on
// byte for byte. A hostile text has as many pieces as characters, so they are small.
type piece struct{ at, from, to uint32 }

// newPiece panics for offsets that a piece cannot hold, so that the text is withheld.
func newPiece(at, from, to int) piece {
	if max(at, from, to) > math.MaxUint32 {
		panic("redact: text too long")
	}
	return piece{uint32(at), uint32(from), uint32(to)}
}

func (v *view) reset() { v.text, v.pieces, v.read = v.text[:0], v.pieces[:0], 0 }

// put appends text up to offset from unchanged, and begins a piece that represents text[from:to];
// the caller appends what it shows to v.text. Nothing appended means left out.
func (v *view) put(text string, from, to int) {
	if len(v.pieces)+2 > cap(v.pieces) {
		v.grow(text)
	}
	v.keep(text, from)
	v.begin(to)
	v.read = to
}

// grow makes room for text, and for as many further pieces as the pieces so far suggest, at most
// fifteen times their number. A view that grows by appending would be copied many times.
func (v *view) grow(text string) {
	v.text = slices.Grow(v.text, len(text)-v.read)
	n := len(v.pieces)
	rest := float64(n) / float64(max(v.read, 1)) * float64(len(text)-v.read)
	v.pieces = slices.Grow(v.pieces, 16+min(int(rest), 15*n))
}

// keep appends text up to offset to, unchanged.
func (v *view) keep(text string, to int) {
	if to > v.read {
		v.begin(0)
		v.text = append(v.text, text[v.read:to]...)
		v.read = to
	}
}

// begin begins a piece at the end of the view.
func (v *view) begin(to int) {
	v.end()
	v.pieces = append(v.pieces, newPiece(len(v.text), v.read, to))
}

// end takes away the last piece if it shows nothing.
func (v *view) end() {
	if n := len(v.pieces); n > 0 && int(v.pieces[n-1].at) == len(v.text) {
		v.pieces = v.pieces[:n-1]
	}
}

// shown returns the view, which is valid until the next reset.
func (v *view) shown() string { return text(v.text) }

// text returns b as a string, which is valid until b is written to.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// origin returns where in the text the span from start to end of the view comes from.
func (v *view) origin(start, end int) (from, to int) {
	p := v.piece(start)
	if from = int(p.from); p.to == 0 {
		from += start - int(p.at)
	}
	p = v.piece(end - 1)
	if to = int(p.to); p.to == 0 {
		to = int(p.from) + end - int(p.at)
	}
	return from, to
}

// piece returns the piece that shows the byte at offset i of the view.
func (v *view) piece(i int) piece {
	next := sort.Search(len(v.pieces), func(k int) bool { return int(v.pieces[k].at) > i })
	return v.pieces[next-1]
}
