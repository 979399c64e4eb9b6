package redact

import (
	"math/big"
	"strconv"
	"strings"
)

// number searches a number as a text, and checks the name next to it.
func (w *walk) number(class nameClass) error {
	from := w.at
	if err := w.digits(); err != nil {
		return err
	}
	literal := w.in[from:w.at]
	plain, whole := decimal(literal)
	w.s.found, w.s.revealed = w.s.found[:0], w.s.revealed[:0]
	if whole && len(plain) >= minNumber || len(w.r.patterns) > 0 {
		if err := w.r.redact(w.s, plain, w.hereNumber(plain, whole)); err != nil {
			return err
		}
	}
	kind := kindPassword
	switch n := shapeOf(literal).digits; {
	case len(w.s.found) > 0:
		kind = w.s.found[0].Kind
	case class == wordName && n >= 4, class == firmName && n >= 6:
	case whole:
		w.revealed = count(w.revealed, w.s.revealed)
		return w.add(from, plain, true)
	default:
		w.revealed = count(w.revealed, w.s.revealed)
		return w.joined()
	}
	w.counts = count(w.counts, []span{{Kind: kind}})
	w.edits = append(w.edits, edit{extent{from, w.at}, kind.Placeholder()})
	return w.add(from, kind.Placeholder(), false)
}

// hereNumber returns the location of a number. Keys say nothing about fractions.
func (w *walk) hereNumber(plain string, whole bool) location {
	where := w.here()
	where.number = true
	switch {
	case !whole:
		where.keyKinds = 0
	case len(plain) < minMobile:
		where.keyKinds &^= namesMobile
	}
	return where
}

// minMobile is the least number of digits of a telephone number below the key "mobile". Counts of
// visitors have fewer.
const minMobile = 10

// minNumber is the least number of digits of a number that may be a span by itself.
const minNumber = 6

// decimal returns a number as decimal text without its sign and exponent, and whether it is whole.
func decimal(literal string) (plain string, whole bool) {
	literal = strings.TrimPrefix(literal, "-")
	if digitsOnly(literal) {
		return literal, true
	}
	if last := literal[len(literal)-1]; last != '0' && strings.IndexByte(literal, 'e') < 0 && strings.IndexByte(literal, 'E') < 0 {
		return literal, false // most fractions
	}
	if _, exponent, ok := strings.Cut(strings.ToLower(literal), "e"); ok {
		if n, err := strconv.Atoi(exponent); err != nil || n > maxExponent || n < -maxExponent {
			return literal, false
		}
	}
	n, ok := new(big.Rat).SetString(literal)
	if !ok || !n.IsInt() {
		return literal, false
	}
	return n.Num().String(), true
}

func digitsOnly(t string) bool { return allOf(t, digitChar) }

// maxExponent bounds the zeros that an exponent represents.
const maxExponent = 64
