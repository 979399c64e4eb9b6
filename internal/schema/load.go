package schema

import (
	"fmt"
	"math"
)

// A load bounds what values carry: how many bits can spell words, how many characters
// there are (any other choice counts as one), and how many bits there are in all.
type load struct {
	words float64
	chars int
	bits  float64
}

// maxChars is how many characters bounded values have together: 64 numbers.
const maxChars = maxBoundedItems * MaxNumber

// fewChoices is so few that they spell nothing without a code, like digits.
const fewChoices = 6

// joined is the load of a part of a larger value, where few choices carry no words.
func (l load) joined() load {
	if l.words < math.Log2(fewChoices+0.5) {
		l.words = 0
	}
	return l
}

// plus is the load of two parts together.
func (l load) plus(o load) load {
	l, o = l.joined(), o.joined()
	return load{l.words + o.words, min(l.chars+o.chars, endless), wholeBytes(l.bits) + wholeBytes(o.bits)}
}

// times is the load of n parts, at most [endless].
func (l load) times(n int) load {
	l = l.joined()
	return load{l.words * float64(n), min(l.chars*min(n, endless), endless), wholeBytes(l.bits) * float64(n)}
}

// or is the load of one of two.
func (l load) or(o load) load {
	return load{either(l.words, o.words), max(l.chars, o.chars), either(l.bits, o.bits)}
}

// and is the load of a value that both bound.
func (l load) and(o load) load {
	return load{min(l.words, o.words), min(l.chars, o.chars), min(l.bits, o.bits)}
}

// wholeBytes rounds bits up to whole bytes.
func wholeBytes(bits float64) float64 { return 8 * math.Ceil(bits/8-1e-9) }

// excess returns why a load is more than bounded values may carry together, or "".
func (l load) excess() string {
	switch {
	case l.words > maxWords:
		return fmt.Sprintf(`its parts leave %.0f bits of letters and words to choose together, more than %d, which can spell anything: write a smaller "maxItems", or fewer values and letters`, l.words, maxWords)
	case l.chars > maxChars:
		return fmt.Sprintf(`its parts may have more than %d characters together: write a smaller "maxItems"`, maxChars)
	}
	return ""
}
