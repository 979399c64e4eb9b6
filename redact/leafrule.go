package redact

import "strings"

// A leafRule reports whether a whole text, whose key names a kind, is a value of it although the
// detector of the kind needs more evidence. number means that the text is that of a JSON number.
type leafRule func(text string, number bool) bool

// maxLeaf is the number of digits that a leaf rule reads.
const maxLeaf = 20

// leafDigits returns the digits of a text that has nothing but digits, separators and the bytes of
// also. ok is false for other texts, and for more than maxLeaf digits.
func leafDigits(text, also string, dst *[maxLeaf]byte) (digits []byte, ok bool) {
	n := 0
	for i := 0; i < len(text); {
		if is(text[i], digitChar) {
			if n == maxLeaf {
				return nil, false
			}
			dst[n], n, i = text[i], n+1, i+1
			continue
		}
		width := gapAt(text, i).width
		if width == 0 && strings.IndexByte(also, text[i]) < 0 {
			return nil, false
		}
		i += max(width, 1)
	}
	return dst[:n], n > 0
}

// phoneLeaf accepts seven to fifteen digits in any grouping.
func phoneLeaf(text string, _ bool) bool {
	var room [maxLeaf]byte
	digits, ok := leafDigits(text, "+()", &room)
	return ok && len(digits) >= minPhone && len(digits) <= 15 && !dated(text)
}

// ssnLeaf accepts nine digits in any grouping. A JSON number has no leading zeros, so that fewer
// digits may be left.
func ssnLeaf(text string, number bool) bool {
	var room [maxLeaf]byte
	digits, ok := leafDigits(text, "", &room)
	if !ok || len(digits) > 9 || len(digits) < 9 && (!number || len(digits) < minPhone) {
		return false
	}
	return validSSN("000"[:9-len(digits)] + string(digits))
}

// cardLeaf accepts twelve to nineteen digits in any grouping and of any issuer, whose last one is
// the check digit.
func cardLeaf(text string, _ bool) bool {
	var room [maxLeaf]byte
	digits, ok := leafDigits(text, "", &room)
	return ok && len(digits) >= minCard && len(digits) <= maxCard && strings.Trim(string(digits), "0") != "" && luhn(digits)
}

// ibanLeaf accepts the number of any country, in any grouping and case.
func ibanLeaf(text string, _ bool) bool {
	var account [maxIBAN]byte
	n := 0
	for i := 0; i < len(text); {
		if g := gapAt(text, i); g.width > 0 {
			i += g.width
			continue
		}
		if n == maxIBAN || !is(text[i], alnumChar) {
			return false
		}
		account[n], n, i = toUpper(text[i]), n+1, i+1
	}
	return n >= 15 && is(account[0], upperChar) && is(account[1], upperChar) && is(account[2], digitChar) && is(account[3], digitChar) && mod97(account[:n])
}

// emailLeaf accepts an address whose domain has no top-level domain.
func emailLeaf(text string, _ bool) bool {
	local, domain, ok := strings.Cut(text, "@")
	return ok && local != "" && domain != "" && !strings.ContainsAny(domain, "@:/") && !strings.ContainsAny(text, " \t\r\n,;<>")
}

// macLeaf accepts twelve hexadecimal digits without separators.
func macLeaf(text string, _ bool) bool { return len(text) == 12 && hexWord(text) && !uniform(text) }
