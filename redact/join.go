package redact

import (
	"slices"
	"strconv"
)

// A row is the texts of neighbouring leaves of one array, joined as they are looked at. A string contributes its text
// without what was found in it, or the beginning and the end of a long one; a whole number its digits.
type row struct {
	text  []byte
	parts []part
	tail  []byte // of a long string, where the next row begins
	edit  int    // of the last leaf of the row before
}

// A part is one leaf of a row.
type part struct {
	at       int  // offset of its text in the row
	from, to int  // of the leaf in the value
	edit     int  // the number of its edit, from 1; 0 for none
	number   bool // the leaf is a number
	index    int  // of the leaf in its array
}

// maxPart is the number of bytes that a leaf contributes to a join.
const maxPart = 256

func (r *row) reset() {
	if n := len(r.parts); n > 0 {
		r.edit = r.parts[n-1].edit
	}
	r.text, r.parts = r.text[:0], r.parts[:0]
}

// add takes the leaf that was just read into the row, if it is one of an array; clean is its text.
func (w *walk) add(from int, clean string, number bool) error {
	if n := len(w.frames); n == 0 || w.frames[n-1].object {
		return nil
	}
	p := part{from: from, to: w.at, number: number, index: w.frames[len(w.frames)-1].index}
	if n := len(w.edits); n > 0 && w.edits[n-1].from == from {
		p.edit = n
	}
	if len(clean) <= maxPart {
		w.row.push(p, clean)
		return nil
	}
	tail := append(w.row.tail[:0], clean[len(clean)-maxPart:]...)
	w.row.tail = tail
	w.row.push(p, clean[:maxPart])
	err := w.joined()
	p.edit = w.row.edit
	w.row.push(p, text(tail))
	return err
}

func (r *row) push(p part, clean string) {
	p.at = len(r.text)
	r.text = append(r.text, clean...)
	r.parts = append(r.parts, p)
}

// joined rules on the row, if there is one, and begins the next: its leaves joined by nothing, and by what stands between
// digits and between words.
func (w *walk) joined() error {
	r := &w.row
	if len(r.parts) < 2 || w.stop() {
		r.reset()
		return nil
	}
	digits := r.hasDigits()
	if digits || len(r.text) >= minRun {
		if err := w.join(false); err != nil {
			return err
		}
	}
	if digits && !w.stop() && r.space() {
		if err := w.join(true); err != nil {
			return err
		}
	}
	r.reset()
	return nil
}

// hasDigits reports whether there is a digit in the row: with hardly an exception, what is worth finding has one.
func (r *row) hasDigits() bool {
	return slices.ContainsFunc(r.text, func(b byte) bool { return is(b, digitChar) })
}

// space puts a dash between leaves that meet in digits and a blank between others, and reports whether there are words
// or short numbers for which that makes a difference.
func (r *row) space() bool {
	strings := 0
	for _, p := range r.parts {
		if !p.number {
			strings++
		}
	}
	if strings == 0 {
		return false
	}
	old := len(r.text)
	for i, p := range r.parts {
		end := old
		if i+1 < len(r.parts) {
			end = r.parts[i+1].at
		}
		if i > 0 {
			separator := byte(' ')
			if p.at < end && is(r.text[p.at], digitChar) && is(r.text[len(r.text)-1], digitChar) {
				separator = '-'
			}
			r.text = append(r.text, separator)
		}
		r.parts[i].at = len(r.text) - old
		r.text = append(r.text, r.text[p.at:end]...)
	}
	r.text = r.text[:copy(r.text, r.text[old:])]
	return true
}

// join rules on the text of the row; spaced says that its leaves are parted.
func (w *walk) join(spaced bool) error {
	s, r := w.s, &w.row
	s.place, s.spare = place{}, maxDecoded*len(r.text)+4096
	w.r.look(s, text(r.text), 0, given)
	if s.spare < 0 {
		return ErrUnsettled
	}
	for _, h := range merge(s.hits) {
		first, last := r.part(h.Start), r.part(h.End-1)
		if !r.takes(h, first, last, spaced) {
			continue
		}
		if w.stands(h.Kind, first, last) {
			w.stood = count(w.stood, []Span{h})
			continue
		}
		w.dirty = true
		if !w.keep {
			return nil
		}
		w.counts = count(w.counts, []Span{h})
		for i := first; i <= last; i++ {
			w.replace(&r.parts[i], h.Kind)
		}
	}
	return nil
}

// part returns the index of the leaf that the byte at offset i of the row belongs to.
func (r *row) part(i int) int {
	n, _ := slices.BinarySearchFunc(r.parts, i+1, func(p part, at int) int { return p.at - at })
	return n - 1
}

// takes reports whether h, which reaches from leaf first to leaf last, is meant by the join. Passwords are found beside
// names: in a leaf of their own behind the leaf of the name, or cut in a leaf without blanks. Numbers and telephone
// numbers are the parts of lists too often, so that only whole leaves count, and of numbers only cards.
func (r *row) takes(h Span, first, last int, spaced bool) bool {
	end := len(r.text)
	if last+1 < len(r.parts) {
		end = r.parts[last+1].at
		if spaced {
			end--
		}
	}
	whole := h.Start == r.parts[first].at && h.End == end
	if h.Kind == Password && spaced {
		return first > 0 && whole
	}
	if first == last {
		return false
	}
	switch h.Kind {
	case Password:
		return !slices.ContainsFunc(r.text[r.parts[first+1].at:end], func(b byte) bool { return is(b, spaceChar) })
	case Phone, SSN, IP:
		return whole && !r.numbers(first, last)
	}
	return whole && h.Kind == Card || !r.numbers(first, last)
}

// numbers reports whether one of the leaves is a number.
func (r *row) numbers(first, last int) bool {
	return slices.ContainsFunc(r.parts[first:last+1], func(p part) bool { return p.number })
}

// stands reports whether spans of kind may stand in each of the leaves.
func (w *walk) stands(kind Kind, first, last int) bool {
	if w.reveal == nil || kind.Secret() {
		return false
	}
	f := &w.frames[len(w.frames)-1]
	now := f.index
	defer func() { f.index = now }()
	for _, p := range w.row.parts[first : last+1] {
		f.index = p.index
		if !w.here().permits(kind) {
			return false
		}
	}
	return true
}

// replace puts the placeholder of kind in the place of a leaf.
func (w *walk) replace(p *part, kind Kind) {
	if p.edit > 0 {
		w.edits[p.edit-1].text = kind.Placeholder()
		return
	}
	w.edits, w.sorted = append(w.edits, edit{p.from, p.to, kind.Placeholder()}), false
	p.edit = len(w.edits)
}

// here returns the leaf that the walk has come to.
func (w *walk) here() place { return place{w.reveal, w} }

// path returns the tokens of the pointer to the leaf that the walk has come to.
func (w *walk) path() []string {
	path := make([]string, len(w.frames))
	for i, f := range w.frames {
		if path[i] = f.token; !f.object {
			path[i] = strconv.Itoa(f.index)
		}
	}
	return path
}
