package redact

// A reach is how far a value may extend into a leaf from its beginning and from its end.
type reach struct {
	odd    bool // there is a byte in it other than letters, digits, spaces, - . , and _, a flag, or a part of a secret-like name
	dot    bool
	groups bool // two letters and two digits are in a row, as at the beginning of an IBAN, and may begin before it

	solidHead, solidTail   int  // bytes without a space
	numberHead, numberTail int  // digits, with nothing between but the bytes of numbers
	numeric, solid         bool // the same, over the whole leaf

	begins int // 1 + the nearest of the leaves before in which a value may begin that ends in this one; 0 for none
}

// plainBytes are the bytes that do not make a leaf odd.
var plainBytes = func() (t [256]bool) {
	for _, b := range []byte(alnums + " -.,_") {
		t[b] = true
	}
	return t
}()

// measure sets the reach of each leaf.
func (r *row) measure() {
	for to := range r.parts {
		p := &r.parts[to]
		p.measure(r.text[p.at:p.end])
		if p.at > 1 { // a name may be cut
			first, second := hintLetters[r.text[p.at-2]], hintLetters[r.text[p.at-1]]
			for _, b := range r.text[p.at:min(p.at+2, p.end)] {
				p.odd = p.odd || hints[pairOf(first, second)]&(1<<hintLetters[b]) != 0
				first, second = second, hintLetters[b]
			}
			p.groups = p.groups || r.accountStarts(p.at)
		}
		for from := to - 1; from >= 0 && from > to-maxWindow && p.begins == 0; from-- {
			if r.spans(from, to) {
				p.begins = from + 1
			}
		}
	}
}

// measure sets how far a value may extend into a leaf. Dates are no part of values.
func (p *part) measure(text []byte) {
	if len(text) == len("2006-01-02") && isoDate(string(text)) {
		return
	}
	p.numeric, p.solid = true, true
	first, second := byte(noLetter), byte(noLetter)
	for i, b := range text {
		third := hintLetters[b]
		p.odd = p.odd || hints[pairOf(first, second)]&(1<<third) != 0 || b == '-' && (i == 0 || text[i-1] == ' ')
		first, second = second, third
		p.odd = p.odd || !plainBytes[b]
		p.dot = p.dot || b == '.'
		if b == ' ' {
			p.solid, p.solidTail = false, 0
		} else {
			p.solidTail++
		}
		if p.solid {
			p.solidHead++
		}
		if !numberBytes[b] {
			p.numeric, p.numberTail = false, 0
		}
		if is(b, digitChar) {
			p.numberTail++
			if p.numeric {
				p.numberHead++
			}
			p.groups = p.groups || i > 2 && is(text[i-1], digitChar) && is(text[i-2], letterChar) && is(text[i-3], letterChar)
		}
	}
}

// isoDate reports whether t is a date between 1900 and 2099.
func isoDate(t string) bool {
	return dated(t) && year(t[:4]) && number(t[5:7]) <= 12 && number(t[8:]) <= 31 && digitsOnly(t[:4]+t[5:7]+t[8:])
}

// The least that a value over several leaves has at their borders: digits of a telephone number and of an address with
// dots, and bytes of a token, a password in base64 or a hardware address without colons.
const (
	minSpanDigits = minPhone
	minSpanOctets = 4
	minSpanSolid  = 12
)

// spans reports whether a value may begin in the leaf from and end in the leaf to. Words,
// dates and short names have none.
func (r *row) spans(from, to int) bool {
	first, last := &r.parts[from], &r.parts[to]
	number, solid := first.numberTail+last.numberHead, first.solidTail+last.solidHead
	odd, dot, groups := first.odd || last.odd, first.dot || last.dot, first.groups || last.groups
	numbers, whole := true, true
	for k := from + 1; k < to; k++ {
		p := &r.parts[k]
		number, solid, odd, dot, groups = number+p.numberHead, solid+p.solidHead, odd || p.odd, dot || p.dot, groups || p.groups
		numbers, whole = numbers && p.numeric, whole && p.solid
	}
	return odd || groups || numbers && (number >= minSpanDigits || dot && number >= minSpanOctets) || whole && solid >= minSpanSolid
}

// accountStarts reports whether two letters and two digits in a row surround i.
func (r *row) accountStarts(i int) bool {
	for k := max(i-3, 0); k < i && k+3 < len(r.text); k++ {
		if t := r.text[k:]; is(t[0], letterChar) && is(t[1], letterChar) && is(t[2], digitChar) && is(t[3], digitChar) {
			return true
		}
	}
	return false
}
