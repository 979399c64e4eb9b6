package condition

import (
	"math/big"
	"slices"
)

// A Domain is which values a schema allows at a path.
type Domain struct {
	Values   []string // all of them, as canonical JSON, besides the numbers and texts
	Numbers  bool     // any number between the bounds
	Integer  bool     // whole ones only
	Min, Max *float64 // nil for none
	Texts    bool     // texts that are not listed
	Absent   bool     // a result need not have the value
}

// HasNumber reports whether a number is among the values.
func (d *Domain) HasNumber() bool {
	return d.Numbers || slices.ContainsFunc(d.Values, func(v string) bool {
		_, ok := number(v)
		return ok && v[0] != '"'
	})
}

// Words for cases that are no single value.
const (
	anotherText = "another text"
	noValue     = "no value"
)

// Cases returns the values of a domain that conditions on one value can tell apart: each value
// that is listed, each number that they compare with, one between, below and above them, and a
// text that they do not name.
func (d *Domain) Cases(conditions []*Condition) (cases []Case) {
	for _, v := range d.Values {
		cases = append(cases, Case{v, v})
	}
	var named []string
	for _, c := range conditions {
		c.Leaves(func(c *Condition) { named = append(named, c.Values...) })
	}
	if d.Texts {
		for _, v := range named {
			if v != "" && v[0] == '"' {
				cases = append(cases, Case{v, v})
			}
		}
		cases = append(cases, Case{`""`, anotherText})
	}
	if d.Numbers {
		cases = append(cases, d.numbers(named)...)
	}
	if d.Absent {
		cases = append(cases, Case{"", noValue})
	}
	return cases
}

// A Case is one value of a domain, or one that stands for many.
type Case struct {
	Value string // canonical JSON; empty for none
	Name  string // for people
}

// Meets reports whether a condition holds for a case.
func (c Case) Meets(of *Condition) bool { return of.Holds(func(*Condition) string { return c.Value }) }

// numbers returns the numbers that comparisons with those named tell apart.
func (d *Domain) numbers(named []string) (cases []Case) {
	var points []*big.Rat
	for _, v := range named {
		if x, ok := number(v); ok && v[0] != '"' {
			points = append(points, x)
		}
	}
	for _, bound := range []*float64{d.Min, d.Max} {
		if bound != nil {
			points = append(points, new(big.Rat).SetFloat64(*bound))
		}
	}
	slices.SortFunc(points, (*big.Rat).Cmp)
	points = slices.CompactFunc(points, func(a, b *big.Rat) bool { return a.Cmp(b) == 0 })
	all := slices.Clone(points)
	for i, p := range points {
		if !p.IsInt() { // the whole numbers beside it
			below := new(big.Rat).SetInt(new(big.Int).Div(p.Num(), p.Denom()))
			all = append(all, below, new(big.Rat).Add(below, big.NewRat(1, 1)))
		}
		all = append(all, new(big.Rat).Sub(p, big.NewRat(1, 1)), new(big.Rat).Add(p, big.NewRat(1, 1)))
		if i > 0 {
			between := new(big.Rat).Add(points[i-1], p)
			all = append(all, between.Quo(between, big.NewRat(2, 1)))
		}
	}
	if len(all) == 0 {
		all = []*big.Rat{new(big.Rat)}
	}
	slices.SortFunc(all, (*big.Rat).Cmp)
	for _, x := range slices.CompactFunc(all, func(a, b *big.Rat) bool { return a.Cmp(b) == 0 }) {
		if d.has(x) {
			text := decimal(x)
			cases = append(cases, Case{text, text})
		}
	}
	return cases
}

// has reports whether a number is in the domain.
func (d *Domain) has(x *big.Rat) bool {
	switch {
	case d.Integer && !x.IsInt(), d.Min != nil && x.Cmp(new(big.Rat).SetFloat64(*d.Min)) < 0, d.Max != nil && x.Cmp(new(big.Rat).SetFloat64(*d.Max)) > 0:
		return false
	}
	return true
}

// decimal writes a number as JSON does.
func decimal(x *big.Rat) string {
	if x.IsInt() {
		return x.Num().String()
	}
	text, err := canonical(floatOf(x))
	if err != nil {
		return x.FloatString(6)
	}
	return text
}

func floatOf(x *big.Rat) float64 {
	f, _ := x.Float64()
	return f
}
