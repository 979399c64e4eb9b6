package redact

import (
	"strings"
	"unicode/utf8"
)

// A gap is the text between two groups of digits. Its kind is ' ' for spaces and line breaks, '-'
// for dashes, or one of . / _ , | : ;
type gap struct {
	sort  byte
	width int
	wraps bool // has a line break
}

// Bytes of a gap: of a line break with the indentation after it, and of spaces on one line, more of
// which separate columns.
const maxGap, maxSpaces = 48, 3

// apart reports whether the detectors of numbers would not accept the gap, which begins with b.
func (g gap) apart(b byte) bool { return g.width > 1 || strings.IndexByte("/_,|:;\t\n\v\f\r", b) >= 0 }

// gapAt returns the gap at i, with a width of 0 for none. In addition to what [separator] accepts,
// it may have several spaces, line breaks with the mark of a quoted line, and a dash or a bar with
// spaces around it.
func gapAt(text string, i int) gap {
	g := gap{}
	k := spaceEnd(text, i, &g)
	if k > i {
		g.sort = ' '
	}
	kind, width := separator(text, k)
	switch {
	case kind == '-':
	case width > 0 && kind != ' ':
	case k < len(text) && strings.IndexByte("_,|:;", text[k]) >= 0:
		kind, width = text[k], 1
	default:
		kind = 0
	}
	if kind != 0 && (k == i || kind == '-' || kind == '|') {
		g.sort = kind
		behind := gap{}
		if end := spaceEnd(text, k+width, &behind); kind == '-' || kind == '|' || behind.wraps {
			width, g.wraps = end-k, g.wraps || behind.wraps
		}
		k += width
	}
	if g.width = k - i; g.width > maxGap || g.width > maxSpaces && !g.wraps {
		return gap{}
	}
	return g
}

// gapAt is the function of that name on the text of p.
func (p *pass) gapAt(i int) gap {
	k := i
	for most := i + 2*maxGap + 16; k < min(most, len(p.text)); k++ {
		b := p.text[k]
		if is(b, digitChar) || is(b, letterChar) && p.text[k-1] != '\\' || utf8.RuneStart(b) && b >= utf8.RuneSelf && !gapRune(p.text[k:]) {
			break
		}
	}
	p.readTo(k)
	return gapAt(p.text, i)
}

// gapRune reports whether text begins with a separator or a line break beyond ASCII.
func gapRune(text string) bool {
	_, width := separator(text, 0)
	return width > 0 || strings.HasPrefix(text, "\u0085") || strings.HasPrefix(text, "\u2028") || strings.HasPrefix(text, "\u2029")
}

// spaceEnd returns the end of the spaces and line breaks at i, and sets g.wraps if there is a
// break. Breaks and tabs may be escaped, as in text quoted by JSON.
func spaceEnd(text string, i int, g *gap) int {
	start := i
	for i < len(text) && i-start <= maxGap {
		switch b := text[i]; {
		case b == ' ' || b == '\t':
			i++
		case b >= '\n' && b <= '\r':
			g.wraps = true
			i++
		case b == '>' && g.wraps:
			i++
		case b == '\\' && i+1 < len(text) && escape(text[i+1]):
			g.wraps = g.wraps || text[i+1] != 't'
			i += 2
		case b < utf8.RuneSelf:
			return i
		default:
			r, n := utf8.DecodeRuneInString(text[i:])
			if kind, _ := separator(text, i); kind != ' ' && r != 0x85 && r != 0x2028 && r != 0x2029 {
				return i
			}
			g.wraps = g.wraps || r == 0x85 || r == 0x2028 || r == 0x2029
			i += n
		}
	}
	return i
}

// looseDetector finds numbers whose groups have unusual gaps, such as line breaks or slashes. It
// rewrites each number, with some bytes of context, in the usual form and passes it to the
// detectors of numbers.
func looseDetector(numbers []detector) detector {
	const spaces, breaks = " \t", "\n\v\f\r"
	return detector{
		name:  "loose",
		ahead: 8,
		anchors: []anchor{
			{digits, breaks + "\t", ""}, {digits, " ", spaces + breaks + "|-\\"}, {digits, "/_,|:;", digits + breaks + " \\"}, {digits, "-", spaces + breaks + "\\"},
			{digits, "\\", "nrt"}, {digits, "\xc2\xe2", "\x85\x80"},
		},
		find: func(p *pass, i int) {
			if i >= p.numbers.loose {
				findLoose(p, i, numbers)
			}
		},
	}
}

const maxLoose = 20 // digits of a number in loose groups

// findLoose decides on the number that has a group ending with the digit at i. Its gaps must
// be the only ones of their kind in the row; otherwise the number is in a column or a list.
func findLoose(p *pass, i int, numbers []detector) {
	first := p.gapAt(i + 1)
	if first.width == 0 || !at(p.text, i+1+first.width, digitChar) || !first.apart(p.text[i+1]) {
		return // a number whose gaps are all usual is no loose one
	}
	start := looseStart(p, i, first.sort)
	if start < 0 {
		return
	}
	var room [maxLoose + maxGroups]byte
	written, glued := room[:0], false
	var glue [maxLoose]byte
	joined := glue[:0] // the same with line breaks in the middle of groups
	total, end, apart := 0, start, 0
	for k, groups := start, 0; ; groups++ {
		to := p.runEnd(k, digitChar, k+maxLoose+1)
		if total += to - k; total > maxLoose || groups >= maxGroups {
			return
		}
		written = append(written, p.text[k:to]...)
		if len(joined)+to-k <= len(glue) {
			joined = append(joined, p.text[k:to]...)
		}
		end = to
		g := p.gapAt(to)
		if g.width == 0 || !at(p.text, to+g.width, digitChar) {
			p.numbers.loose = end
			break
		}
		if g.sort != first.sort {
			p.numbers.loose = k // a number with the other kind may begin with this group
			break
		}
		if g.apart(p.text[to]) {
			apart++
		}
		glued = glued || g.wraps
		sep := g.sort
		if sep != ' ' {
			sep = '-'
		}
		written = append(written, sep)
		if !g.wraps && len(joined) < len(glue) {
			joined = append(joined, sep)
		}
		k = to + g.width
	}
	p.work += end - start
	if total < 9 {
		return
	}
	listed := strings.IndexByte(",|:;", first.sort) >= 0 || apart > 1 && p.text[start] == '0'
	if has(p.text, start-1, "+") {
		start, listed = start-1, false
	}
	if !findRewritten(p, start, end, text(written), numbers, listed) && glued {
		findRewritten(p, start, end, text(joined), numbers, listed)
	}
}

// looseStart returns where the first of the groups begins that precede the digit at i with gaps of
// one sort, or -1 if they are too many for a number.
func looseStart(p *pass, i int, sort byte) int {
	start := p.runStart(i, digitChar, i-maxLoose)
	for total, groups := i+1-start, 0; total <= maxLoose && groups < maxGroups; groups++ {
		to := gapStart(p.text, start)
		if to == start || !at(p.text, to-1, digitChar) {
			return start
		}
		g := gapAt(p.text, to)
		p.work += start - to
		if g.sort != sort || to+g.width != start {
			return start
		}
		start = p.runStart(to, digitChar, to-maxLoose-1)
		total += to - start
	}
	return -1
}

// gapStart returns where a gap may begin that ends before i; see [gapAt].
func gapStart(text string, i int) int {
	k := i
	for k > 0 && i-k <= maxGap && !is(text[k-1], digitChar) {
		if is(text[k-1], letterChar) {
			if !escape(text[k-1]) || !has(text, k-2, `\`) {
				return i
			}
			k--
		}
		k--
	}
	return k
}

// findRewritten looks at the number from start to end in another form, with some bytes before and
// after it, and reports whether all of it is one. A possible list of numbers is a telephone number
// only next to a word for telephones.
func findRewritten(p *pass, start, end int, number string, numbers []detector, listed bool) bool {
	const before, behind = 48, 12
	from := max(start-before, 0)
	if n := strings.LastIndexByte(p.text[from:start], '\n'); n >= 0 {
		from += n + 1
	}
	p.numbers.near = append(p.numbers.near[:0], p.text[from:start]...)
	at := len(p.numbers.near)
	if p.text[start] == '+' {
		p.numbers.near = append(p.numbers.near, '+')
	}
	p.numbers.near = append(p.numbers.near, number...)
	to := len(p.numbers.near)
	p.numbers.near = append(p.numbers.near, p.text[end:min(end+behind, len(p.text))]...)
	p.readTo(end + behind)
	if p.numbers.rewritten == nil {
		p.numbers.rewritten = new(pass)
	}
	d := p.numbers.rewritten
	d.location = p.location
	d.reset(text(p.numbers.near))
	if len(p.text) > maxLook {
		d.location.keyKinds = 0 // long texts are prose, whatever their key
	}
	for _, n := range numbers {
		switch {
		case !n.admits(d.text[at:]):
		case n.kind == Phone && listed:
			hitPhone(d, at, namedPhoneEnd(d, d.numberGroups(at)))
		default:
			n.find(d, at)
		}
	}
	p.work += d.work + len(p.numbers.near)
	found := false
	for _, h := range d.hits {
		if h.Start == at && h.End >= to {
			p.hit(h.Kind, start, end)
			found = true
		}
	}
	return found
}

// admits reports whether the pass would stop for d at the beginning of text.
func (d *detector) admits(text string) bool {
	for _, a := range d.anchors {
		fits := true
		for i, set := range a {
			fits = fits && (set == "" || i < len(text) && strings.IndexByte(set, text[i]) >= 0)
		}
		if fits {
			return true
		}
	}
	return false
}
