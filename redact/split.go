package redact

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A row has the texts of neighboring leaves of one array. A string contributes its redacted text,
// or the beginning and the end of a long one; a whole number contributes its digits.
type row struct {
	text  []byte // the texts of the leaves, one after the other
	parts []part
	joins []byte // the texts to search: the leaves joined in several ways
	cells []cell
	tail  []byte // of a long string, where the next row begins
	edit  int    // of the last leaf of the row before
}

// A part is one leaf of a row.
type part struct {
	extent
	at, end    int  // of its text in the row
	edit       int  // the number of its edit, from 1; 0 for none
	number     bool // the leaf is a number
	digit      bool // there is one in it
	sign       bool // there is an @ in it
	date       bool // it is a date, which is no part of a value
	isRevealed bool // a span of a join with it is revealed
	index      int  // of the leaf in its array
}

// A cell is the text of a leaf within one of the joins.
type cell struct {
	at, end int
	part    int
	join    int // cells of one join have the same number
	spaced  bool
}

const (
	maxPart   = 256 // bytes that a leaf contributes to a join
	maxWindow = 4   // leaves that are joined without their neighbors
	maxPiece  = 64  // bytes of such a window
)

func (r *row) reset() {
	if n := len(r.parts); n > 0 {
		r.edit = r.parts[n-1].edit
	}
	r.text, r.parts = r.text[:0], r.parts[:0]
}

// add takes the leaf that was just read into the row, if it is one of an array; clean is its text.
// An empty leaf, or one of spaces, does not separate its neighbors.
func (w *walk) add(from int, clean string, number bool) error {
	if w.top().object || w.s.empty(clean) {
		return nil
	}
	p := part{extent: extent{from, w.at}, number: number, index: w.top().index}
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

// empty reports whether a leaf has no visible character.
func (s *scan) empty(clean string) bool {
	if len(clean) > maxPart || clean != "" && clean[0] > ' ' && clean[0] < utf8.RuneSelf {
		return false
	}
	return strings.TrimSpace(s.plain(clean)) == ""
}

func (r *row) push(p part, clean string) {
	p.at = len(r.text)
	r.text = append(r.text, clean...)
	p.end = len(r.text)
	p.date = isoDate(clean)
	for _, b := range r.text[p.at:] {
		p.digit = p.digit || is(b, digitChar) && !p.date
		p.sign = p.sign || b == '@'
	}
	r.parts = append(r.parts, p)
}

// joined searches the row, if there is one, and begins the next.
func (w *walk) joined() error {
	r := &w.row
	if len(r.parts) < 2 {
		r.reset()
		return nil
	}
	r.joins, r.cells = r.joins[:0], r.cells[:0]
	numbers := !slices.ContainsFunc(r.parts, func(p part) bool { return !p.number })
	if !numbers || cardSize(len(r.text)) {
		r.join(0, len(r.parts), false)
	}
	if slices.ContainsFunc(r.parts, func(p part) bool { return p.digit || p.sign }) { // almost every value worth finding has a digit
		if !numbers {
			r.join(0, len(r.parts), true)
		}
		r.windows(numbers || len(w.r.patterns) > 0)
	}
	var err error
	if len(r.cells) > 0 {
		err = w.searchJoins()
	}
	r.reset()
	return err
}

// windows joins two, three and four leaves without their neighbors, whose text would adhere to a
// value in the join of all. The first and the last must have a digit, or one of them an @, and a
// value must be possible where they meet. If all is true, the latter does not count: numbers have
// few digits, and own patterns may match anything.
func (r *row) windows(all bool) {
	for from := range r.parts {
		size, sign, numbers := 0, false, true
		for to := from; to < len(r.parts) && to < from+maxWindow; to++ {
			p := r.parts[to]
			size, sign, numbers = size+p.end-p.at, sign || p.sign, numbers && p.number
			if size > maxPiece {
				break
			}
			whole := from == 0 && to == len(r.parts)-1
			if to > from && !whole && size >= minNumber && (sign || r.parts[from].digit && p.digit) && (!numbers || cardSize(size)) && (sign || all || r.spans(from, to)) {
				r.join(from, to+1, false)
			}
		}
	}
}

// The least that a value has that begins in one leaf and ends in another: digits of a telephone
// number and of an address with dots, and bytes of a token, a password in base64 or a hardware
// address without colons.
const (
	minSpanDigits = minPhone
	minSpanOctets = 4
	minSpanSolid  = 12
)

// spans reports whether a value, or the word next to it, may reach over a border between the leaves
// from from to to. Words, dates and short names do not.
func (r *row) spans(from, to int) bool {
	solid, digits, dot := 0, 0, false               // of the bytes without a space, and of the bytes of a number, that end here
	solidSpans, digitsSpan := false, false          // they reach over a border
	first, second := byte(noLetter), byte(noLetter) // the letters before
	for _, p := range r.parts[from : to+1] {
		solidSpans, digitsSpan = solid > 0, digits > 0
		if p.date {
			solid, digits, first, second = 0, 0, noLetter, noLetter
			continue
		}
		for i := p.at; i < p.end; i++ {
			b, third := r.text[i], hintLetters[r.text[i]]
			if !plainBytes[b] || hints[pairOf(first, second)]&(1<<third) != 0 || b == '-' && (i == p.at || r.text[i-1] == ' ') || r.accountStarts(from, i) {
				return true
			}
			first, second = second, third
			if solid++; b == ' ' {
				solid, solidSpans = 0, false
			}
			switch {
			case is(b, digitChar):
				digits++
			case !numberBytes[b]:
				digits, dot, digitsSpan = 0, false, false
			}
			dot = dot || b == '.'
			if solidSpans && solid >= minSpanSolid || digitsSpan && (digits >= minSpanDigits || dot && digits >= minSpanOctets) {
				return true
			}
		}
	}
	return false
}

// plainBytes are the bytes of words and numbers.
var plainBytes = func() (t [256]bool) {
	for _, b := range []byte(alnums + " -.,_") {
		t[b] = true
	}
	return t
}()

// accountStarts reports whether two letters and two digits end at i, as at the beginning of an
// IBAN.
func (r *row) accountStarts(from, i int) bool {
	t := r.text[max(r.parts[from].at, i-3) : i+1]
	return len(t) == 4 && is(t[0], letterChar) && is(t[1], letterChar) && is(t[2], digitChar) && is(t[3], digitChar)
}

// isoDate reports whether t is a date between 1900 and 2099.
func isoDate(t string) bool {
	return len(t) == len("2006-01-02") && dated(t) && year(t[:4]) && number(t[5:7]) <= 12 && number(t[8:]) <= 31 && digitsOnly(t[:4]+t[5:7]+t[8:])
}

// cardSize reports whether numbers with so many digits together may be a card, the only kind for
// which numbers are joined.
func cardSize(digits int) bool { return digits >= 12 && digits <= 19 }

// join appends the join of the leaves from from to to: directly, or with a dash between leaves that
// meet in digits and a space between others.
func (r *row) join(from, to int, spaced bool) {
	join := len(r.cells)
	for i, p := range r.parts[from:to] {
		if spaced && i > 0 {
			separator := byte(' ')
			if p.at < p.end && is(r.text[p.at], digitChar) && is(r.joins[len(r.joins)-1], digitChar) {
				separator = '-'
			}
			r.joins = append(r.joins, separator)
		}
		at := len(r.joins)
		r.joins = append(r.joins, r.text[p.at:p.end]...)
		r.cells = append(r.cells, cell{at, len(r.joins), from + i, join, spaced})
	}
	r.joins = append(r.joins, "\n\n"...) // an empty line, since some detectors read the adjacent line
}

// searchJoins searches the joins.
func (w *walk) searchJoins() error {
	s, r := w.s, &w.row
	s.location, s.spare = location{}, maxDecoded*len(r.joins)+4096
	w.r.searchForms(s, text(r.joins), 0, given)
	if err := s.stopped(); err != nil {
		return err
	}
	if s.spare < 0 {
		return errDiverged
	}
	for _, h := range merge(s.hits) {
		cells := r.touched(h)
		if !r.takes(h, cells) {
			continue
		}
		if w.isRevealed(h.Kind, cells) {
			if r.markRevealed(cells) {
				w.revealed = count(w.revealed, []span{h})
			}
			continue
		}
		edits := len(w.edits)
		for _, c := range cells {
			w.replace(&r.parts[c.part], h.Kind)
		}
		if len(w.edits) > edits { // otherwise another join has found it
			w.counts = count(w.counts, []span{h})
		}
	}
	return nil
}

// touched returns the cells of the join in which h begins that have a byte of it.
func (r *row) touched(h span) []cell {
	first, _ := slices.BinarySearchFunc(r.cells, h.Start, func(c cell, at int) int { return c.end - 1 - at })
	if first == len(r.cells) {
		return nil
	}
	last := first
	for last+1 < len(r.cells) && r.cells[last+1].join == r.cells[first].join && r.cells[last+1].at < h.End {
		last++
	}
	return r.cells[first : last+1]
}

// takes reports whether h is a value that the join of cells shows. Passwords are found next to
// names: in a leaf of their own after the leaf of the name, or split over leaves without spaces.
// Numbers and telephone numbers are parts of lists too often, so that only whole leaves count, and
// among JSON numbers only cards.
func (r *row) takes(h span, cells []cell) bool {
	if len(cells) == 0 {
		return false
	}
	first, last := cells[0], cells[len(cells)-1]
	if h.End > last.end && !h.Kind.Secret() { // a number that goes on in the next join is none
		return false
	}
	whole := h.Start == first.at && h.End == last.end
	if h.Kind == kindPassword && first.spaced {
		return first.part > 0 && whole
	}
	if len(cells) == 1 {
		return false
	}
	numbers := slices.ContainsFunc(cells, func(c cell) bool { return r.parts[c.part].number })
	switch h.Kind {
	case kindPassword:
		return !bytes.ContainsFunc(r.joins[cells[1].at:last.end], func(c rune) bool { return c <= ' ' })
	case Phone, SSN, IP:
		return whole && !numbers
	}
	return whole && h.Kind == Card || !numbers
}

// isRevealed reports whether spans of kind may stay in each of the leaves.
func (w *walk) isRevealed(kind Kind, cells []cell) bool {
	if w.reveal == nil || kind.Secret() {
		return false
	}
	f := w.top()
	now := f.index
	defer func() { f.index = now }()
	for _, c := range cells {
		f.index = w.row.parts[c.part].index
		if !w.here().permits(kind) {
			return false
		}
	}
	return true
}

// markRevealed marks the leaves of cells as revealed, and reports whether this is the first span of
// one of them. Joins overlap.
func (r *row) markRevealed(cells []cell) (first bool) {
	for _, c := range cells {
		p := &r.parts[c.part]
		first, p.isRevealed = first || !p.isRevealed, true
	}
	return first
}

// replace puts the placeholder of kind in the place of a leaf.
func (w *walk) replace(p *part, kind Kind) {
	if p.edit > 0 {
		w.edits[p.edit-1].text = kind.Placeholder()
		return
	}
	w.edits, w.sorted = append(w.edits, edit{p.extent, kind.Placeholder()}), false
	p.edit = len(w.edits)
}

// here returns the leaf that the walk has reached.
func (w *walk) here() location {
	return location{reveal: w.reveal, walk: w, keyKinds: w.top().kinds}
}

// path returns the tokens of the pointer to the leaf that the walk has reached.
func (w *walk) path() []string {
	path := make([]string, len(w.frames)-1)
	for i, f := range w.frames[1:] {
		if path[i] = f.token; !f.object {
			path[i] = strconv.Itoa(f.index)
		}
	}
	return path
}
