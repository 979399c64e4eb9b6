package redact

import (
	"math"
	"unsafe"
)

// A view is another form of a text, in which the detectors look for spans too, with the way back to the text.
type view struct {
	text   []byte
	pieces []piece
	read   int // the text before this offset is in the view
}

// A piece of a view begins at offset at and ends where the next one begins. It shows the text from offset from on: byte
// for byte, or as a whole what stands up to offset to. A hostile text has as many pieces as characters, so they are
// small.
type piece struct {
	at, from, to uint32
	whole        bool
}

// newPiece panics for offsets that a piece cannot hold: then the text is withheld.
func newPiece(at, from, to int, whole bool) piece {
	if max(at, from, to) > math.MaxUint32 {
		panic("redact: text too long")
	}
	return piece{uint32(at), uint32(from), uint32(to), whole}
}

func (v *view) reset() { v.text, v.pieces, v.read = v.text[:0], v.pieces[:0], 0 }

// keep appends text up to offset to as it stands.
func (v *view) keep(text string, to int) {
	if to > v.read {
		v.pieces = append(v.pieces, newPiece(len(v.text), v.read, to, false))
		v.text = append(v.text, text[v.read:to]...)
		v.read = to
	}
}

// put begins a piece that stands for the next bytes of the text up to offset to; the caller appends what it shows to
// v.text. Nothing appended means left out.
func (v *view) put(to int) {
	if n := len(v.pieces); n > 0 && int(v.pieces[n-1].at) == len(v.text) { // the last one was left out
		v.pieces = v.pieces[:n-1]
	}
	v.pieces = append(v.pieces, newPiece(len(v.text), v.read, to, true))
	v.read = to
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
	if from = int(p.from); !p.whole {
		from += start - int(p.at)
	}
	p = v.piece(end - 1)
	if to = int(p.to); !p.whole {
		to = int(p.from) + end - int(p.at)
	}
	return from, to
}

// piece returns the piece that shows the byte at offset i of the view.
func (v *view) piece(i int) piece {
	lo, hi := 0, len(v.pieces)
	for lo < hi { // the first that begins behind i
		mid := (lo + hi) / 2
		if int(v.pieces[mid].at) <= i {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return v.pieces[lo-1]
}
