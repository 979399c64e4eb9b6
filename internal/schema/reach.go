package schema

import (
	"cmp"
	"math"
)

// A cell is how freely values of one kind can be at a place.
type cell struct {
	level level
	why   string // why it is free; empty if no keyword restricts it
	load  load   // what bounded values of this kind carry
}

type level uint8

const (
	absent  level = iota // none can be there
	bounded              // only values that carry little
	free
)

// A reach is what can be at a place, by kind.
type reach [kindCount]cell

// everything is the reach of a place that no keyword restricts.
var everything = reach{open().scalar(aNull), open().scalar(aBoolean), open().scalar(aNumeric), {level: free}, {level: free}, {level: free}}

// scalar is the cell of null, booleans or numbers.
func (n *node) scalar(k kind) cell {
	if k == aNumeric {
		return cell{level: bounded, load: load{chars: MaxNumber, bits: n.numberBits()}}
	}
	return cell{level: bounded, load: load{chars: 1, bits: 1}}
}

// A number is a double, but for a whole one beyond 2^53, which is delivered with
// all of its digits.
const (
	doubleBits = 64
	exactUpTo  = 1 << 53
)

// numberBits bounds how many bits it takes to choose a number.
func (n *node) numberBits() float64 {
	if n.min == nil || n.max == nil || *n.min < -exactUpTo || *n.max > exactUpTo {
		return math.Ceil(MaxNumber * math.Log2(10))
	}
	if choices := *n.max - *n.min + 1; n.integer && choices < exactUpTo {
		return max(1, math.Log2(max(choices, 1)))
	}
	return doubleBits
}

// and returns what can be where both apply. A bound of either is a bound.
func (r reach) and(o reach) reach {
	own, other := r.bits(), o.bits()
	for k, c := range o {
		both := r[k].load.and(c.load)
		switch {
		case c.level < r[k].level:
			r[k] = c
		case c.level == r[k].level:
			r[k] = cell{c.level, cmp.Or(r[k].why, c.why), both}
		}
	}
	return r.withBits(min(own, other))
}

// bits bounds how many bits it takes to choose a value of any kind, where one bound
// holds for all kinds. It is -Inf at a place that can have no value.
func (r reach) bits() float64 { return r.fold(math.Max) }

// sum is bits for a reach whose kinds were measured one by one.
func (r reach) sum() float64 { return r.fold(either) }

// fold combines the bits of the kinds. It is +Inf where a kind is free, and -Inf
// where there is none.
func (r reach) fold(combine func(a, b float64) float64) float64 {
	bits := math.Inf(-1)
	for _, c := range r {
		switch c.level {
		case free:
			return math.Inf(1)
		case bounded:
			bits = combine(bits, c.load.bits)
		}
	}
	return bits
}

// withBits returns r with so many bits for a value of any kind.
func (r reach) withBits(bits float64) reach {
	for k := range r {
		if r[k].level == bounded {
			r[k].load.bits = bits
		}
	}
	return r
}

// or returns what can be where one of them applies.
func (r reach) or(o reach) reach {
	bits := either(r.bits(), o.bits())
	for k, c := range o {
		one := r[k].load.or(c.load)
		if kind(k) < aString {
			one.words = 0
		}
		switch {
		case c.level > r[k].level:
			r[k] = c
		case c.level == r[k].level && c.level != absent:
			r[k] = cell{c.level, cmp.Or(r[k].why, c.why), one}
		}
	}
	return r.withBits(bits)
}

// plus returns what can be in two places together.
func (r reach) plus(o reach) reach {
	return r.or(o).carrying(r.load().plus(o.load()))
}

// times returns what can be in n such places together.
func (r reach) times(n int) reach { return r.carrying(r.load().times(n)) }

func (r reach) carrying(l load) reach {
	for k := range r {
		if r[k].level == bounded {
			r[k].load = l
		}
	}
	return r
}

// load returns what bounded values of any kind carry. The choice among kinds is one of few.
func (r reach) load() load {
	var most load
	for _, c := range r {
		if c.level == bounded {
			most = load{max(most.words, c.load.words), max(most.chars, c.load.chars), max(most.bits, c.load.bits)}
		}
	}
	return most
}

// most returns the highest level and its kind.
func (r reach) most() (cell, kind) {
	best := aNull
	for k := range kindCount {
		if r[k].level > r[best].level {
			best = k
		}
	}
	return r[best], best
}

// freely returns everything, any number of times, with the reason why nothing bounds it.
func freely(why string) reach {
	r := everything.carrying(load{math.Inf(1), endless, math.Inf(1)})
	for k := range r {
		if r[k].level == free {
			r[k].why = why
		}
	}
	return r
}
