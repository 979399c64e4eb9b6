package agent

// A cell says how freely values of one kind can stand somewhere.
type cell struct {
	level level
	why   string // of a free one; empty if nothing was said about it
}

type level uint8

const (
	absent level = iota // none can stand there
	held                // only values that carry little
	free
)

// A reach is what can stand at a place, by kind.
type reach [kindCount]cell

// everything is the reach of a place about which a schema says nothing.
var everything = reach{{level: held}, {level: held}, {level: held}, {level: free}, {level: free}, {level: free}}

// and returns what can stand where both hold: a bound of either is a bound.
func (r reach) and(o reach) reach {
	for k, c := range o {
		if c.level < r[k].level || c.level == r[k].level && r[k].why == "" {
			r[k] = c
		}
	}
	return r
}

// or returns what can stand where one of them holds.
func (r reach) or(o reach) reach {
	for k, c := range o {
		if c.level > r[k].level || c.level == r[k].level && r[k].why == "" {
			r[k] = c
		}
	}
	return r
}

// most returns the highest level, and of which kind.
func (r reach) most() (cell, kind) {
	best := aNull
	for k := range kindCount {
		if r[k].level > r[best].level {
			best = k
		}
	}
	return r[best], best
}

// freely is everything, with the reason why nothing holds it.
func freely(why string) reach {
	r := everything
	for k := range r {
		if r[k].level == free {
			r[k].why = why
		}
	}
	return r
}
